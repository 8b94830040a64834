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
