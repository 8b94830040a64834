import { newFolder } from "../folder.mjs";
import { conversation, replaceOne } from "../messages.mjs";
import { entry } from "../waymark.mjs";

const { State, StateGraph } = await import(entry);
const { FileStore } = await import(new URL("../../dist/stores/file.js", import.meta.url));

const runId = "cycle";
let store;
let filled;

export async function prepare({ what = "save", ...options }) {
  if (what === "save") store = new FileStore({ root: newFolder(), ...options.store });
  else filled ??= await fill(options);
}

/**
 * A cycle of a waymark graph that a FileStore keeps each step of; or what reads such a run.
 * @param {number} steps
 * @param {object} options
 * @param {number} options.kilobytes the size of the state
 * @param {"save" | "load" | "history"} [options.what]
 * @param {object} [options.store] options of the store
 * @param {number} [options.saved] how many steps the run that is read has
 */
export async function run(steps, { kilobytes, what = "save" }) {
  if (what === "save") {
    const final = await cycle(steps).execute(State.create(conversation(kilobytes), { runId }));
    await store.close();
    return final.data.n;
  }
  const { graph } = filled;
  for (let step = 0; step < steps; step++) {
    if (what === "load") graph.toMermaid({ state: await store.load(runId) });
    else if ((await graph.history(runId)).length !== filled.kept)
      throw new Error("history is short");
  }
  return steps;
}

/** A run of so many steps, as another process has left it, in a store that has not seen it. */
async function fill({ kilobytes, saved, store: storeOptions = {} }) {
  const root = newFolder();
  store = new FileStore({ root, durability: "os", ...storeOptions });
  await cycle(saved).execute(State.create(conversation(kilobytes), { runId }));
  await store.close();
  store = new FileStore({ root });
  const kept = (await store.history(runId)).length;
  return { graph: cycle(saved), kept };
}

function cycle(steps) {
  const checkpoint = { store, interval: 1, preserve: true };
  return new StateGraph({ name: "cycle", maxIterations: steps + 10, checkpoint })
    .addNode("tick", async (state) => replaceOne(state.data))
    .addNode("done", (state) => state)
    .addEdge("tick", "tick", (state) => state.data.n < steps)
    .addEdge("tick", "done")
    .setEntryPoint("tick")
    .setExitPoint("done");
}
