import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";

// Not a `file:..` dependency: npm would lock the root's own dependencies into this folder's lock file.
export const root = fileURLToPath(new URL("../..", import.meta.url));
export const entry = fileURLToPath(new URL("../../dist/index.js", import.meta.url));

/** Whether there is a build of waymark to measure; a suite leaves its own rows out until there is. */
export const isBuilt = existsSync(entry);
