import { describe, expect, test } from "vitest";
import { append, END, MemoryStore, max, State, StateGraph, sum, union } from "waymark";

interface Notes {
  readonly messages: readonly string[];
  readonly sources: readonly string[];
  readonly best: number;
  readonly spent: number;
  readonly title: string;
}

describe("reducers", () => {
  const graph = new StateGraph<Notes>({
    reducers: { messages: append, sources: union, best: max, spent: sum },
  })
    .addNode("work", () => ({
      messages: ["b"],
      sources: ["x", "y"],
      best: 2,
      spent: 3,
      title: "new",
    }))
    .addEdge("work", END)
    .setEntryPoint("work");

  test("combine a key's value with what a node returned; other keys are replaced", async () => {
    const first = { messages: ["a"], sources: ["x"], best: 5, spent: 4, title: "old" };
    const { data } = await graph.execute(State.create<Notes>(first));
    expect(data).toEqual({
      messages: ["a", "b"],
      sources: ["x", "y"],
      best: 5,
      spent: 7,
      title: "new",
    });
  });

  test("start with what a node returned if the key is missing", () => {
    expect(append(undefined, ["a"])).toEqual(["a"]);
    expect(union(undefined, ["a", "a"])).toEqual(["a"]);
    expect([max(undefined, -1), max(1, 2), sum(undefined, 2)]).toEqual([-1, 2, 2]);
  });

  test("get undefined if the data lacks the key", async () => {
    const sparse = new StateGraph<{ seen?: readonly string[] }>({ reducers: { seen: append } })
      .addNode("see", () => ({ seen: ["a"] }))
      .addEdge("see", END)
      .setEntryPoint("see");
    expect((await sparse.execute(State.create({}))).data).toEqual({ seen: ["a"] });
  });

  test.each<[what: string, returned: object, message: string]>([
    [
      "append of a text",
      { messages: "abc" },
      'config.reducers.messages can\'t take it: append must be given arrays; got "abc"',
    ],
    [
      "union of a number",
      { sources: 5 },
      "config.reducers.sources can't take it: union must be given arrays; got 5",
    ],
    [
      "max of undefined",
      { best: undefined },
      "config.reducers.best can't take it: max must be given numbers; got undefined",
    ],
    [
      "sum of a text",
      { spent: "5" },
      'config.reducers.spent can\'t take it: sum must be given numbers; got "5"',
    ],
    [
      "an async reducer",
      { title: "b" },
      "config.reducers.title must return a value; got a promise",
    ],
  ])("refuse %s before it is saved", async (_what, returned, message) => {
    const store = new MemoryStore();
    const refusing = new StateGraph<Notes>({
      reducers: {
        ...{ messages: append, sources: union, best: max, spent: sum },
        title: (async () => Promise.reject(new Error("late"))) as never,
      },
      checkpoint: { store, interval: 1 },
    })
      .addNode("work", () => returned)
      .addEdge("work", END)
      .setEntryPoint("work");
    const first = { messages: ["a"], sources: ["x"], best: 5, spent: 1, title: "old" };
    const state = State.create<Notes>(first, { runId: "r" });
    await expect(refusing.execute(state)).rejects.toMatchObject({
      code: "NODE_RESULT",
      message: `node "work" returned a value that its reducer rejects: ${message}`,
    });
    expect((await store.load("r")).data).toEqual(first);
  });

  test("leave a returned State unchanged", async () => {
    const whole = new StateGraph<Notes>({ reducers: { messages: append } })
      .addNode("set", (state) => state.set("messages", ["only"]))
      .addEdge("set", END)
      .setEntryPoint("set");
    const first = { messages: ["a"], sources: [], best: 0, spent: 0, title: "" };
    expect((await whole.execute(State.create<Notes>(first))).data.messages).toEqual(["only"]);
  });

  test("must be functions", () => {
    const reducers = { messages: "append" } as unknown as { messages: typeof append };
    expect(() => new StateGraph<Notes>({ reducers })).toThrow(
      'config.reducers.messages must be a function; got "append"',
    );
  });
});
