import { existsSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

// Not a `file:..` dependency: npm would lock the root's own dependencies into this folder's lock file.
/** The checkout whose build is measured: this one, or in a process of its own the one beside it. */
export const root = process.env.WAYMARK_ROOT ?? fileURLToPath(new URL("../..", import.meta.url));
export const entry = join(root, "dist/index.js");

/** Whether there is a build of waymark to measure; a suite leaves its own rows out until there is. */
export const isBuilt = existsSync(entry);

/** Imports a module of that build. */
export const built = (path) => import(pathToFileURL(join(root, "dist", path)).href);
