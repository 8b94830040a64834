import { newFolder } from "../lib/folder.mjs";
import { built, entry } from "../lib/waymark.mjs";

const { State, StateGraph } = await import(entry);
const { FileStore } = await built("stores/file.js");

let store;

export async function prepare() {
  await store?.close();
  store = new FileStore({ root: newFolder() });
}

/**
 * A cycle of a node that works for a millisecond, in a file store.
 * @param {number} steps
 * @param {{ interval: number | "adaptive" }} options
 */
export async function run(steps, { interval }) {
  const checkpoint = { store, interval, preserve: true };
  const graph = new StateGraph({ name: "cycle", maxIterations: steps + 10, checkpoint })
    .addNode("tick", async (state) => {
      for (const end = performance.now() + 1; performance.now() < end; );
      return { n: state.data.n + 1 };
    })
    .addNode("done", (state) => state)
    .addEdge("tick", "tick", (state) => state.data.n < steps)
    .addEdge("tick", "done")
    .setEntryPoint("tick")
    .setExitPoint("done");
  return (await graph.execute(State.create({ n: 0 }))).data.n;
}
