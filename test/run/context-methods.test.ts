import { expect, test } from "vitest";
import { END, MemoryStore, type NodeContext, parallel, State, StateGraph } from "waymark";

interface Data {
  readonly done: readonly string[];
}

/** Does everything that a node can do, by methods that were taken out of its context. */
async function work(context: NodeContext<Data>): Promise<string[]> {
  const { once, recall, remember, forget, sleep, progress, emit, pause } = context;
  const first = await once("first", () => "once");
  await remember("second", "remembered");
  const second = String(recall("second"));
  forget("second");
  await sleep("a moment", 0);
  progress({ title: "Work", summary: "done" });
  emit("progress", { node: context.node, step: 0, title: "More", summary: "too", sources: [] });
  const answer = await pause("sure", { reason: "needs a person" });
  return [first, second, String(recall("second")), String(answer)];
}

test("the methods of a node's context can be destructured", async () => {
  const graph = new StateGraph<Data>({ checkpoint: { store: new MemoryStore(), interval: 1 } })
    .addNode("work", async (state, context) => {
      const { checkpoint } = context;
      const done = await work(context);
      return (await checkpoint(state, "milestone")).set("done", done);
    })
    .addEdge("work", END)
    .setEntryPoint("work");
  const { runId } = await graph.execute(State.create<Data>({ done: [] }));
  const { data } = await graph.resume(runId, { input: "yes" });
  expect(data.done).toEqual(["once", "remembered", "undefined", "yes"]);
});

test("the methods of an item's context can be destructured", async () => {
  const graph = new StateGraph<Data>({ checkpoint: { store: new MemoryStore(), interval: 1 } })
    .addNode(
      "work",
      parallel<Data, string, string[]>(["a"], (_state, _item, context) => work(context), {
        merge: (state, results) => state.set("done", results.flat()),
      }),
    )
    .addEdge("work", END)
    .setEntryPoint("work");
  const { runId } = await graph.execute(State.create<Data>({ done: [] }));
  const { data } = await graph.resume(runId, { input: "yes" });
  expect(data.done).toEqual(["once", "remembered", "undefined", "yes"]);
});
