import { Annotation, END, MemorySaver, START, StateGraph } from "@langchain/langgraph";
import { conversation, replaceOne } from "../workloads/messages.mjs";

/** The cycle in LangGraph.js; with `kilobytes`, over a conversation of that size, saved by MemorySaver. */
export async function run(steps, { kilobytes }) {
  const [data, tick] =
    kilobytes === undefined ? [{ n: 0 }, count] : [conversation(kilobytes), replaceOne];
  const channels = Object.fromEntries(Object.keys(data).map((key) => [key, Annotation()]));
  const app = new StateGraph(Annotation.Root(channels))
    .addNode("tick", async (state) => tick(state))
    .addNode("done", async () => ({}))
    .addEdge(START, "tick")
    .addConditionalEdges("tick", (state) => (state.n < steps ? "tick" : "done"), ["tick", "done"])
    .addEdge("done", END)
    .compile(kilobytes === undefined ? {} : { checkpointer: new MemorySaver() });
  const final = await app.invoke(data, {
    recursionLimit: steps + 10,
    configurable: { thread_id: "cycle" },
  });
  return final.n;
}

const count = (state) => ({ n: state.n + 1 });
