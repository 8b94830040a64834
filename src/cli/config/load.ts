import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { dirname, extname, join, resolve } from "node:path";
import { missing, problem } from "../exit.js";
import { configOf, type LoadedConfig } from "./config.js";

const names = ["ts", "mts", "js", "mjs", "json"].map((ending) => `waymark.config.${ending}`);

/**
 * The config of a folder as far as it is plain data: a JSON file. Executes nothing, since the user may not know
 * what is in the folder.
 */
export async function loadData(cwd: string): Promise<LoadedConfig> {
  const file = find(cwd, undefined);
  return loadConfig(cwd, file !== undefined && extname(file) === ".json" ? file : false);
}

/**
 * The named config, or that of the folder; an empty one if there is none.
 *
 * @param given - the file, `false` for none, `undefined` to look for it.
 * @throws CommandError if it is missing or can't be loaded; ConfigError if it is invalid.
 */
export async function loadConfig(
  cwd: string,
  given: string | false | undefined,
): Promise<LoadedConfig> {
  const file = given === false ? undefined : find(cwd, given);
  if (file === undefined) return { file: "", folder: cwd };
  const value: unknown = extname(file) === ".json" ? await readJson(file) : await module(file);
  return { ...configOf(file, value), file, folder: dirname(file) };
}

function find(cwd: string, given: string | undefined): string | undefined {
  if (given === undefined) return names.map((name) => join(cwd, name)).find(existsSync);
  const file = resolve(cwd, given);
  if (existsSync(file)) return file;
  throw missing(`there is no config ${file}`);
}

async function readJson(file: string): Promise<unknown> {
  try {
    return JSON.parse(await readFile(file, "utf8"));
  } catch (error) {
    throw problem(`${file} can't be read: ${(error as Error).message}`, "", error);
  }
}

async function module(file: string): Promise<unknown> {
  const { loadModule } = await import("./modules.js");
  const exports = await loadModule(file);
  if ("default" in exports) return exports.default;
  throw problem(`${file} has no default export`, "export default { graphs: { … } }");
}
