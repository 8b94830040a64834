import { Annotation, END, START, StateGraph } from "@langchain/langgraph";
import { PostgresSaver } from "@langchain/langgraph-checkpoint-postgres";
import pg from "pg";
import { conversation, replaceOne } from "../messages.mjs";

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
  const all = Array.from({ length: runs }, () => cycle(steps / runs, kilobytes));
  return (await Promise.all(all)).reduce((sum, n) => sum + n, 0);
}

async function cycle(steps, kilobytes) {
  const data = conversation(kilobytes);
  const channels = Object.fromEntries(Object.keys(data).map((key) => [key, Annotation()]));
  const app = new StateGraph(Annotation.Root(channels))
    .addNode("tick", async (state) => replaceOne(state))
    .addNode("done", async () => ({}))
    .addEdge(START, "tick")
    .addConditionalEdges("tick", (state) => (state.n < steps ? "tick" : "done"), ["tick", "done"])
    .addEdge("done", END)
    .compile({ checkpointer: saver });
  const thread = { configurable: { thread_id: `cycle-${++threads}` } };
  const final = await app.invoke(data, { recursionLimit: steps + 10, ...thread });
  return final.n;
}
