import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { show } from "../../errors.js";
import type { AnyGraph } from "../../run/state-graph.js";
import { StateGraph } from "../../run/state-graph.js";
import { missing, problem } from "../exit.js";
import type { LoadedConfig } from "./config.js";

/**
 * The graph of this name in the config, or in a module: `./article.ts`, `./article.ts#graph`.
 *
 * @throws CommandError if there is none, or if another copy of waymark made it.
 */
export async function loadGraph(
  config: LoadedConfig,
  given: string,
  cwd: string,
): Promise<AnyGraph> {
  const { graphs = {}, folder } = config;
  const entry = Object.hasOwn(graphs, given) ? graphs[given] : undefined;
  if (entry !== undefined) return toGraph(entry, folder, given);
  if (isPath(given)) return toGraph(given, cwd, given);
  // A run records the graph's own name, which may differ from its key in the config.
  for (const [key, value] of Object.entries(graphs)) {
    const graph = await toGraph(value, folder, key);
    if (graph.name === given) return graph;
  }
  const known = Object.keys(graphs).join(", ");
  throw missing(
    `there is no graph "${given}"`,
    known === ""
      ? "name it under graphs in waymark.config.ts, or give its module: ./graph.ts#graph"
      : `the config has ${known}; a module is given as ./graph.ts#graph`,
  );
}

/** All graphs of the config. */
export async function loadGraphs(config: LoadedConfig): Promise<Record<string, AnyGraph>> {
  const { graphs = {}, folder } = config;
  const loaded: Record<string, AnyGraph> = {};
  for (const [key, value] of Object.entries(graphs)) {
    loaded[key] = await toGraph(value, folder, key);
  }
  return loaded;
}

function isPath(text: string): boolean {
  return /[/\\]|\.[cm]?[jt]sx?(#|$)/.test(text);
}

async function toGraph(value: unknown, folder: string, name: string): Promise<AnyGraph> {
  if (typeof value === "string") return toGraph(await exported(value, folder), folder, name);
  if (typeof value === "function" && !isClass(value)) return toGraph(await value(), folder, name);
  if (value instanceof StateGraph) return value;
  if (typeof Reflect.get(Object(value), "toMermaid") === "function") {
    throw problem(
      `graph "${name}" was made by another copy of waymark`,
      "run the command of that copy: npx waymark in its folder",
    );
  }
  throw problem(`graph "${name}" must be a StateGraph; got ${show(value)}`);
}

/**
 * The export that `./module.ts#name` names; without a name, the default export, `graph`, or the module's only
 * graph.
 */
async function exported(text: string, folder: string): Promise<unknown> {
  const [path = "", name] = text.split("#");
  const file = resolve(folder, path);
  if (!existsSync(file)) throw missing(`there is no module ${file}`);
  const { loadModule } = await import("./modules.js");
  const exports = await loadModule(file);
  if (name !== undefined) {
    if (Object.hasOwn(exports, name)) return exports[name];
    throw missing(`${file} exports no "${name}"`, `it has ${Object.keys(exports).join(", ")}`);
  }
  const graphs = Object.values(exports).filter((value) => value instanceof StateGraph);
  const found = exports.default ?? exports.graph ?? (graphs.length === 1 ? graphs[0] : undefined);
  if (found !== undefined) return found;
  throw missing(`${file} has no export that is the graph`, `name it: ${path}#name`);
}

function isClass(value: unknown): boolean {
  return /^class\b/.test(Function.prototype.toString.call(value));
}
