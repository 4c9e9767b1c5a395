import { defineConfig } from "vitest/config";

export default defineConfig({
  define: { FULL: "true" },
  test: { include: ["test/*.test.ts", "test/*.nodetest.ts"], testTimeout: 300_000 },
});
