import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { entry, root } from "../lib/waymark.mjs";

const { State, StateGraph } = await import(entry);
const load = (name) => import(join(root, "dist/observers", `${name}.js`));

const folder = mkdtempSync(join(tmpdir(), "waymark-bench-"));
process.once("exit", () => rmSync(folder, { recursive: true, force: true }));

/** Each observer as a program would use it. */
const makers = {
  nothing: async () => () => {},
  metrics: async () => (await load("metrics")).metrics(),
  log: async () => (await load("event-log")).eventLog({ root: folder }),
  markdown: async () => (await load("markdown")).markdownProgress({ root: folder }),
  logger: async () => {
    const nowhere = () => {};
    const logger = { info: nowhere, warn: nowhere, error: nowhere, debug: nowhere };
    return (await load("logger")).loggerObserver(logger);
  },
  bar: async () => {
    const stream = { isTTY: true, columns: 80, write: () => {} };
    return (await load("progress-bar")).progressBar({ stream });
  },
};

/**
 * One node that counts, with observers. Each step is six events.
 * @param {number} steps
 * @param {{ observers: readonly (keyof typeof makers)[] }} options
 */
export async function run(steps, { observers }) {
  const observer = await Promise.all(observers.map((name) => makers[name]()));
  const graph = new StateGraph({ name: "cycle", maxIterations: steps + 10, observer })
    .addNode("tick", async (state) => state.set("n", state.data.n + 1))
    .addNode("done", (state) => state)
    .addEdge("tick", "tick", (state) => state.data.n < steps)
    .addEdge("tick", "done")
    .setEntryPoint("tick")
    .setExitPoint("done");
  const final = await graph.execute(State.create({ n: 0 }));
  for (const one of observer) await one.close?.();
  rmSync(join(folder, final.runId), { recursive: true, force: true });
  return final.data.n;
}
