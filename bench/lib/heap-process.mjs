/** node --expose-gc heap-process.mjs <bare | plain | saved> <steps>: prints the live heap of one run, in MB. */
const [kind, steps] = [process.argv[2], Number(process.argv[3])];
let inLastStep = 0;

function liveHeap() {
  globalThis.gc();
  return process.memoryUsage().heapUsed / 1e6;
}

async function bareRun() {
  const { oneKey } = await import("../contenders/bare.mjs");
  return oneKey(steps);
}

async function waymarkRun() {
  const { cycleGraph } = await import("../contenders/waymark.mjs");
  const { entry } = await import("./waymark.mjs");
  const { State } = await import(entry);
  // What a run gathers on its way is released when it ends, so it is looked at from inside.
  const tick = async (state) => {
    if (state.data.n === steps - 1) inLastStep = liveHeap();
    return state.set("n", state.data.n + 1);
  };
  const graph = cycleGraph(steps, tick, kind === "saved");
  const final = await graph.execute(State.create({ n: 0 }));
  if (final.data.n !== steps) throw new Error(`made ${final.data.n} of ${steps} steps`);
  return { graph, final };
}

const held = await (kind === "bare" ? bareRun() : waymarkRun());
const afterwards = liveHeap();
process.stdout.write(String(Math.max(inLastStep, afterwards)));
// Read after the measurement, so that the graph, its store and the final state are still on the heap in it.
if (held === undefined) process.exitCode = 1;
