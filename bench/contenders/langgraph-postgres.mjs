import { PostgresSaver } from "@langchain/langgraph-checkpoint-postgres";
import pg from "pg";
import { langgraphCycle } from "../workloads/langgraph-cycle.mjs";

// What measures has no more to ask.
process.on("disconnect", () => process.exit());

let saver;
let threads = 0;

export async function prepare({ url }) {
  if (saver !== undefined) return;
  const pool = new pg.Pool({ connectionString: url, max: 10 });
  saver = new PostgresSaver(pool, undefined, { schema: `langgraph_${process.pid}` });
  await saver.setup();
}

/**
 * The cycle in LangGraph.js, each step kept by its Postgres saver.
 * @param {number} steps of all runs together
 * @param {object} options as of raw-postgres.mjs
 */
export async function run(steps, { kilobytes, runs = 1 }) {
  const all = Array.from({ length: runs }, () =>
    langgraphCycle(saver, steps / runs, { kilobytes, thread: `cycle-${++threads}` }),
  );
  return (await Promise.all(all)).reduce((sum, n) => sum + n, 0);
}
