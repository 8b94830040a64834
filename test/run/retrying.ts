import { type NodeFunction, type NodeOptions, StateGraph } from "waymark";
import { mark, type RecordingStore, type Trail } from "../graphs.js";

/** a → b, of which `b` has these options. */
export function graphOf(
  node: NodeFunction<Trail>,
  options: NodeOptions<Trail>,
  store?: RecordingStore,
) {
  return new StateGraph<Trail, string>(store && { checkpoint: { store, interval: 1 } })
    .addNode("a", mark)
    .addNode("b", node, options)
    .addEdge("a", "b")
    .setEntryPoint("a")
    .setExitPoint("b");
}

/** A node that fails so often, and then works. */
export function failing(
  times: number,
  error: (attempt: number) => unknown = () => new Error("down"),
) {
  const attempts: number[] = [];
  const node: NodeFunction<Trail> = (state, context) => {
    attempts.push(context.attempt);
    if (attempts.length <= times) throw error(attempts.length);
    return mark(state, context);
  };
  return { node, attempts };
}
