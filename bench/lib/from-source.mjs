import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { build } from "esbuild";
import { newFolder } from "./folder.mjs";

const source = fileURLToPath(new URL("../../src", import.meta.url));

/**
 * A module of what no entry point exports.
 * @param {string} contents what it exports, by paths in src/
 */
export async function fromSource(contents) {
  const { outputFiles } = await build({
    stdin: { contents, resolveDir: source, loader: "ts" },
    bundle: true,
    format: "esm",
    platform: "node",
    target: "node20",
    external: ["#*"],
    tsconfigRaw: {},
    write: false,
    logLevel: "error",
  });
  const file = join(newFolder(), "module.mjs");
  writeFileSync(file, outputFiles[0].contents);
  return import(pathToFileURL(file).href);
}
