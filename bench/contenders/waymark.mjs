import { entry } from "../lib/waymark.mjs";
import { conversation, replaceOne } from "../workloads/messages.mjs";

const { MemoryStore, State, StateGraph } = await import(entry);

const ticks = {
  set: async (state) => state.set("n", state.data.n + 1),
  shorthand: async (state) => ({ n: state.data.n + 1 }),
  replace: async (state) => replaceOne(state.data),
};

/**
 * The cycle as a waymark graph.
 * @param {number} steps
 * @param {object} options
 * @param {"set" | "shorthand" | "replace"} [options.tick] what the node does
 * @param {boolean} [options.saved] whether each step is saved in a MemoryStore
 * @param {number} [options.kilobytes] the size of the conversation beside the counter
 * @param {number} [options.listeners] how many listen to every event
 * @param {boolean} [options.amongOthers] whether the process has run graphs of other kinds before
 */
export async function run(steps, { amongOthers = false, ...options }) {
  if (amongOthers) await runOthers();
  return cycle(steps, options);
}

async function cycle(steps, { tick = "set", saved = false, kilobytes, listeners = 0 }) {
  const graph = cycleGraph(steps, ticks[tick], saved);
  const heard = new Array(listeners).fill(0);
  for (let index = 0; index < listeners; index++) {
    graph.on("*", () => {
      heard[index]++;
    });
  }
  const data = kilobytes === undefined ? { n: 0 } : conversation(kilobytes);
  const final = await graph.execute(State.create(data));
  // node.start and node.complete of each step at the least: a listener that hears nothing is cheap, and wrong.
  if (heard.some((count) => count < 2 * steps))
    throw new Error(`listeners heard ${heard} events in ${steps} steps`);
  return final.data.n;
}

/** One node that counts to `steps`, then an exit. */
export function cycleGraph(steps, tick, saved) {
  const checkpoint = saved ? { checkpoint: { store: new MemoryStore(), interval: 1 } } : {};
  return new StateGraph({ name: "cycle", maxIterations: steps + 10, ...checkpoint })
    .addNode("tick", tick)
    .addNode("done", (state) => state)
    .addEdge("tick", "tick", (state) => state.data.n < steps)
    .addEdge("tick", "done")
    .setEntryPoint("tick")
    .setExitPoint("done");
}

let othersRan = false;

/** Once per process, in its first warm-up, so that no sample that counts contains it. */
async function runOthers() {
  if (othersRan) return;
  othersRan = true;
  for (const tick of Object.keys(ticks)) {
    for (const saved of [false, true])
      await cycle(5_000, { tick, saved, kilobytes: 1, listeners: saved ? 1 : 0 });
  }
}
