import { join } from "node:path";
import { Annotation, END, START, StateGraph } from "@langchain/langgraph";
import { SqliteSaver } from "@langchain/langgraph-checkpoint-sqlite";
import { newFolder } from "../folder.mjs";
import { conversation, replaceOne } from "../messages.mjs";

const thread = { configurable: { thread_id: "cycle" } };
let saver;
let filled = false;

export async function prepare({ kilobytes, what = "save", synchronous, saved }) {
  if (what !== "save" && filled) return;
  saver?.db.close();
  saver = SqliteSaver.fromConnString(join(newFolder(), "checkpoints.sqlite"));
  saver.setup();
  if (synchronous !== undefined) saver.db.pragma(`synchronous=${synchronous}`);
  if (what === "save") return;
  await cycle(saved, kilobytes);
  filled = true;
}

/**
 * The cycle in LangGraph.js, each step kept by its SQLite saver; or what reads such a run.
 * @param {number} steps
 * @param {object} options as of file-store.mjs, and
 * @param {"FULL"} [options.synchronous] makes SQLite sync each commit; it does not by default
 */
export async function run(steps, { kilobytes, what = "save" }) {
  if (what === "save") return cycle(steps, kilobytes);
  for (let step = 0; step < steps; step++) {
    if (what === "load") await saver.getTuple(thread);
    else for await (const _ of saver.list(thread));
  }
  return steps;
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
  const final = await app.invoke(data, { recursionLimit: steps + 10, ...thread });
  return final.n;
}
