import { ConfigError, show } from "../errors.js";
import { type AnyGraph, StateGraph } from "./state-graph.js";

/**
 * The graphs of an option by name. In an object, each key is an additional name of its graph.
 *
 * @throws ConfigError if one is not a graph, or a name stands for two of them.
 */
export function graphsByName(
  option: string,
  graphs: readonly AnyGraph[] | Readonly<Record<string, AnyGraph>>,
): ReadonlyMap<string, AnyGraph> {
  const found = new Map<string, AnyGraph>();
  const isList = Array.isArray(graphs);
  for (const [key, graph] of Object.entries<AnyGraph>({ ...graphs })) {
    const place = isList ? `${option}[${key}]` : `${option}.${key}`;
    if (!(graph instanceof StateGraph)) {
      throw new ConfigError(place, `must be a StateGraph; got ${show(graph)}`);
    }
    for (const name of isList ? [graph.name] : [graph.name, key]) {
      if ((found.get(name) ?? graph) !== graph) {
        const problem = `is the second graph named ${show(name)}: give each its own config.name`;
        throw new ConfigError(place, problem);
      }
      found.set(name, graph);
    }
  }
  return found;
}
