/// <reference types="node" />
import { defineConfig } from "vitest/config";

export default defineConfig({
  define: { PAYLOADS: process.env["OMNI_PERF_PAYLOADS"] || "4000" },
  test: { include: ["test/*.test.ts", "test/*.nodetest.ts"], testTimeout: 300_000 },
});
