/// <reference types="node" />
// npm run properties: rewrites properties.txt.

import { writeFileSync } from "node:fs";
import { ownProperties } from "./properties.ts";

const folder = process.cwd();
writeFileSync(folder + "/properties.txt", ownProperties(folder).join("\n") + "\n");
