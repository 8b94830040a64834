import { join } from "node:path";
import { SqliteSaver } from "@langchain/langgraph-checkpoint-sqlite";
import { newFolder } from "../lib/folder.mjs";
import { langgraphCycle } from "../workloads/langgraph-cycle.mjs";

const thread = { configurable: { thread_id: "cycle" } };
let saver;
let filled = false;

export async function prepare({ what = "save", synchronous, saved, ...options }) {
  if (what !== "save" && filled) return;
  saver?.db.close();
  saver = SqliteSaver.fromConnString(join(newFolder(), "checkpoints.sqlite"));
  saver.setup();
  if (synchronous !== undefined) saver.db.pragma(`synchronous=${synchronous}`);
  if (what === "save") return;
  await langgraphCycle(saver, saved, options);
  filled = true;
}

/**
 * The cycle in LangGraph.js, each step kept by its SQLite saver; or what reads such a run.
 * @param {number} steps of all runs together
 * @param {object} options as of cycle-in-store.mjs and langgraph-cycle.mjs, and
 * @param {"FULL"} [options.synchronous] makes SQLite sync each commit; it does not by default
 */
export async function run(steps, { what = "save", runs = 1, ...options }) {
  if (what === "save") {
    const all = Array.from({ length: runs }, (_, index) =>
      langgraphCycle(saver, steps / runs, { ...options, thread: `cycle-${index}` }),
    );
    return (await Promise.all(all)).reduce((sum, n) => sum + n, 0);
  }
  for (let step = 0; step < steps; step++) {
    if (what === "load") await saver.getTuple(thread);
    else for await (const _ of saver.list(thread));
  }
  return steps;
}
