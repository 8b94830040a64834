import { describe, expect, test } from "vitest";
import { append, chain, dag, parallel, State, StateGraph, sum } from "waymark";
import { eventsOf, only } from "./nodes.js";

interface Talk {
  readonly messages: readonly string[];
  readonly total: number;
}

const start = (): State<Talk> => State.create<Talk>({ messages: ["hello"], total: 1 });
const reducers = { messages: append, total: sum };

describe("a graph's reducers", () => {
  test("apply to results of a chain's steps", async () => {
    const node = chain<Talk, string>(["a", "b"], (_state, word) => ({
      messages: [word],
      total: 1,
    }));
    const final = await only(node, { reducers }).execute(start());
    expect(final.data).toEqual({ messages: ["hello", "a", "b"], total: 3 });
  });

  test("apply to objects returned by items, in the order of the list", async () => {
    const node = parallel<Talk, number, object | number>([30, 10, 20], async (_state, item) => {
      await new Promise((resolve) => setTimeout(resolve, item / 10));
      return item === 10 ? item : { messages: [String(item)], total: item };
    });
    const final = await only(node, { reducers }).execute(start());
    expect(final.data).toEqual({ messages: ["hello", "30", "20"], total: 51 });
  });

  test("apply to the result of merge, once", async () => {
    const node = parallel<Talk, number, object>([1, 2], (_state, item) => ({ total: item }), {
      merge: () => ({ messages: ["done"] }),
    });
    const final = await only(node, { reducers }).execute(start());
    expect(final.data).toEqual({ messages: ["hello", "done"], total: 1 });
  });

  test("apply to the result of a task", async () => {
    const final = await dag<Talk>({ messages: () => ["a"] }, { reducers }).execute(start());
    expect(final.data.messages).toEqual(["hello", "a"]);
  });

  test.each(["layers", "eager"] as const)(
    "have been applied before a dependent task runs (%s)",
    async (schedule) => {
      const tasks = dag<Talk>(
        {
          messages: () => ["a"],
          total: { dependsOn: ["messages"], run: ({ data }) => data.messages.length },
        },
        { reducers, schedule },
      );
      const final = await tasks.execute(start());
      expect(final.data).toEqual({ messages: ["hello", "a"], total: 3 });
    },
  );

  test("are required for items to change the State by themselves", async () => {
    const node = parallel<Talk, number, object>([1], () => ({ total: 5 }));
    expect((await only(node).execute(start())).data.total).toBe(1);
  });
});

test("events name the item and its duration", async () => {
  const graph = new StateGraph<Talk, string>()
    .addNode(
      "list",
      parallel<Talk, unknown, number>(["x", 7, { id: 1 }], () => 1, { concurrency: 1 }),
    )
    .addNode(
      "steps",
      chain<Talk, string>(["a"], (state) => state),
    )
    .addEdge("list", "steps")
    .setEntryPoint("list")
    .setExitPoint("steps");
  const events = eventsOf(graph, "worker", "step");
  await graph.execute(start());
  const ended = events.flatMap((event) =>
    event.type === "worker.complete" || event.type === "step.complete" ? [event.data] : [],
  );
  expect(ended.map(({ item }) => item)).toEqual(["x", "7", "#2", "a"]);
  for (const { durationMs } of ended) expect(durationMs).toBeGreaterThanOrEqual(0);
});
