import { entry } from "../lib/waymark.mjs";
import { replaceOne } from "./messages.mjs";

const { StateGraph } = await import(entry);

/**
 * The graph that is measured with every store: a cycle of so many steps, each of them saved.
 * @param {import("waymark").CheckpointStore} store
 * @param {number} steps
 * @param {number} [keep] how many checkpoints
 */
export function cycle(store, steps, keep = 5) {
  const checkpoint = { store, interval: 1, preserve: true, keep };
  return new StateGraph({ name: "cycle", maxIterations: steps + 10, checkpoint })
    .addNode("tick", async (state) => replaceOne(state.data))
    .addNode("done", (state) => state)
    .addEdge("tick", "tick", (state) => state.data.n < steps)
    .addEdge("tick", "done")
    .setEntryPoint("tick")
    .setExitPoint("done");
}
