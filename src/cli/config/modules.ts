import { existsSync } from "node:fs";
import { dirname, extname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { problem } from "../exit.js";
import { entryUrl, manifest } from "../package.js";

const typescript = new Set([".ts", ".mts", ".cts", ".tsx"]);

/** What a module exports. */
export type Exports = Readonly<Record<string, unknown>>;

/**
 * The exports of a JavaScript or TypeScript module. A TypeScript module that imports waymark gets this copy of it,
 * because its graphs must recognise the States that this command creates.
 *
 * @throws CommandError if it can't be loaded.
 */
export async function loadModule(file: string): Promise<Exports> {
  const url = pathToFileURL(file).href;
  try {
    if (!typescript.has(extname(file))) return await import(/* @vite-ignore */ url);
    const { createJiti } = await import("jiti");
    const virtualModules = await ownModules();
    const fsCache = cacheFor(file);
    const jiti = createJiti(url, { virtualModules, fsCache, interopDefault: false });
    return await jiti.import<Exports>(file);
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    const [line = ""] = message.split("\n");
    throw problem(`${file} can't be loaded: ${line}`, "--debug shows where it fails", error);
  }
}

/** Where compiled TypeScript is cached, so that the next call starts faster; `false` outside of a project. */
function cacheFor(file: string): string | false {
  for (let folder = dirname(file); ; folder = dirname(folder)) {
    const modules = join(folder, "node_modules");
    if (existsSync(modules)) return join(modules, ".cache/waymark");
    if (folder === dirname(folder)) return false;
  }
}

/** The entry points of this copy of waymark, by the names that others import them by. */
async function ownModules(): Promise<Record<string, unknown>> {
  const { name, exports } = manifest();
  const loaded = Object.entries(exports).map(async ([entry, target]) => {
    if (typeof target === "string") return [];
    try {
      const module = await import(/* @vite-ignore */ entryUrl(target.default));
      return [[`${name}${entry.slice(1)}`, module]] as const;
    } catch {
      // It needs a package that is not installed; importing it will report that.
      return [];
    }
  });
  return Object.fromEntries((await Promise.all(loaded)).flat());
}
