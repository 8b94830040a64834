import { Annotation, DeltaChannel, END, START, StateGraph } from "@langchain/langgraph";
import { conversation, message, replaceOne } from "./messages.mjs";

/** What a step of each kind changes: one message replaced, all of them written or only that one; or one more. */
const steps = {
  replaced: (state) => replaceOne(state),
  delta: ({ n, messages }) => {
    const next = replaceOne({ n, messages });
    const at = next.n % messages.length;
    return { n: next.n, messages: { at, message: next.messages[at] } };
  },
  growing: ({ n, messages }) => ({ n: n + 1, messages: [...messages, message(n + 1)] }),
};

/** LangGraph.js's own way to keep only what changed; beta. */
const delta = () =>
  new DeltaChannel((current, writes) =>
    writes.reduce(
      (list, write) => (Array.isArray(write) ? write : list.with(write.at, write.message)),
      current,
    ),
  );

/**
 * The cycle in LangGraph.js, each step kept by its saver.
 * @param {object} saver
 * @param {number} end how many steps
 * @param {object} options
 * @param {number} options.kilobytes the size of the state; of one that grows, 0
 * @param {"replaced" | "delta" | "growing"} [options.kind]
 * @param {string} [options.thread] the id of the run
 */
export async function langgraphCycle(
  saver,
  end,
  { kilobytes, kind = "replaced", thread = "cycle" },
) {
  const data = kind === "growing" ? { n: 0, messages: [] } : conversation(kilobytes);
  const channels = { n: Annotation(), messages: kind === "delta" ? delta : Annotation() };
  const app = new StateGraph(Annotation.Root(channels))
    .addNode("tick", async (state) => steps[kind](state))
    .addNode("done", async () => ({}))
    .addEdge(START, "tick")
    .addConditionalEdges("tick", (state) => (state.n < end ? "tick" : "done"), ["tick", "done"])
    .addEdge("done", END)
    .compile({ checkpointer: saver });
  const configurable = { thread_id: thread };
  const final = await app.invoke(data, { recursionLimit: end + 10, configurable });
  return final.n;
}
