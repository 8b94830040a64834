import { describe, expect, test } from "vitest";
import { append, END, max, State, StateGraph, sum, union } from "waymark";

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

  test("make a key's value of what is there and what a node returned; others replace", async () => {
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

  test("begin with what a node returned where the key is missing", () => {
    expect(append(undefined, ["a"])).toEqual(["a"]);
    expect(union(undefined, ["a", "a"])).toEqual(["a"]);
    expect([max(undefined, -1), max(1, 2), sum(undefined, 2)]).toEqual([-1, 2, 2]);
  });

  test("see undefined where the data lacks the key", async () => {
    const sparse = new StateGraph<{ seen?: readonly string[] }>({ reducers: { seen: append } })
      .addNode("see", () => ({ seen: ["a"] }))
      .addEdge("see", END)
      .setEntryPoint("see");
    expect((await sparse.execute(State.create({}))).data).toEqual({ seen: ["a"] });
  });

  test("leave a State that a node returns as it is", async () => {
    const whole = new StateGraph<Notes>({ reducers: { messages: append } })
      .addNode("set", (state) => state.set("messages", ["only"]))
      .addEdge("set", END)
      .setEntryPoint("set");
    const first = { messages: ["a"], sources: [], best: 0, spent: 0, title: "" };
    expect((await whole.execute(State.create<Notes>(first))).data.messages).toEqual(["only"]);
  });

  test("a reducer that is no function is refused", () => {
    const reducers = { messages: "append" } as unknown as { messages: typeof append };
    expect(() => new StateGraph<Notes>({ reducers })).toThrow(
      'config.reducers.messages must be a function; got "append"',
    );
  });
});
