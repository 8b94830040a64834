import { ConfigError, show } from "../errors.js";
import { checkObserver, type Observer } from "../events.js";
import { text } from "../options.js";
import { consoleObserver } from "./console.js";

/**
 * Ignores all events.
 *
 * @example
 * ```ts
 * import { getObserver, noopObserver } from "waymark";
 *
 * console.log(getObserver("noop") === noopObserver); // true
 * ```
 */
export const noopObserver: Observer = () => {};

const registered = new Map<string, Observer>([["noop", noopObserver]]);

/**
 * Registers an observer under a name that graphs can use. `noop` and `console` are predefined.
 *
 * @throws ConfigError if the name is empty or the observer is invalid.
 *
 * @example
 * ```ts
 * import { registerObserver, State, StateGraph } from "waymark";
 *
 * const types: string[] = [];
 * registerObserver("collect", ({ type }) => types.push(type));
 * const graph = new StateGraph<{ n: number }>({ observer: "collect" })
 *   .addNode("one", (state) => state)
 *   .setEntryPoint("one")
 *   .setExitPoint("one");
 * await graph.execute(State.create({ n: 0 }));
 * console.log(types.join(" ")); // graph.start node.start node.complete graph.complete
 * ```
 */
export function registerObserver(name: string, observer: Observer): void {
  text("name", name);
  checkObserver("observer", observer);
  registered.set(name, observer);
}

/**
 * The observer with this name.
 *
 * @throws ConfigError if no observer has this name.
 *
 * @example
 * ```ts
 * import { getObserver, registerObserver } from "waymark";
 *
 * const quiet = () => {};
 * registerObserver("quiet", quiet);
 * console.log(getObserver("quiet") === quiet); // true
 * ```
 */
export function getObserver(name: string): Observer {
  if (name === "console" && !registered.has(name)) registered.set(name, consoleObserver());
  const found = registered.get(name);
  if (found === undefined) {
    const names = [...new Set(["console", ...registered.keys()])].sort().join(", ");
    throw new ConfigError("observer", `${show(name)} is not registered; there are ${names}`);
  }
  return found;
}
