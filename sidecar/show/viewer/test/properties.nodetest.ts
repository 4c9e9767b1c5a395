/// <reference types="node" />
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { ownProperties } from "./properties.ts";

test("properties.txt has the names that are safe to shorten, and no others; npm run properties rewrites it", () => {
  expect(readFileSync("properties.txt", "utf8").trim().split("\n")).toEqual(ownProperties(process.cwd()));
});
