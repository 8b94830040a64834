import { describe, expect, test } from "vitest";
import { chain, ExecutionError, type NodeFunction, State, StateGraph } from "waymark";
import { rejection } from "../graphs.js";

interface List {
  items: string[];
  of?: { name: string };
}

function run(node: NodeFunction<List>): Promise<State<List>> {
  return new StateGraph<List>()
    .addNode("change", node)
    .setEntryPoint("change")
    .setExitPoint("change")
    .execute(State.create<List>({ items: ["a"], of: { name: "x" } }));
}

/** The data as a user in a hurry casts it. */
const mutable = (state: State<List>): List => state.data as List;

const mutations: [string, NodeFunction<List>][] = [
  ["pushes to an array", (state) => ({ items: [`${mutable(state).items.push("b")}`] })],
  ["sets a key", (state) => Object.assign(state.data, { items: [] })],
  [
    "deletes a key",
    (state) => {
      delete mutable(state).of;
      return state;
    },
  ],
  ["sets a key of get()", (state) => ({ of: Object.assign(state.get("of") ?? {}, { name: "y" }) })],
  [
    "does so in a chain",
    chain(["b"], (state, item) => {
      mutable(state).items.push(item);
      return state;
    }),
  ],
];

describe("a node that mutates the State", () => {
  test.each(mutations)("%s: the error names it and says what to do", async (_what, node) => {
    const error = await rejection(run(node), ExecutionError);
    expect(error.message).toMatch(/^node "change" failed: .*Cannot /);
    expect(error.message).toContain(
      "State data is frozen: to change it, use state.update or return new values",
    );
    expect(error.nodeName).toBe("change");
    expect(error.cause).toBeInstanceOf(Error);
  });

  test("by setting an entry of a Map fails with a hint at update", async () => {
    const graph = new StateGraph<{ seen: Map<string, number> }>()
      .addNode("change", (state) => {
        state.get("seen").set("a", 1);
        return state;
      })
      .setEntryPoint("change")
      .setExitPoint("change");
    const running = graph.execute(State.create({ seen: new Map<string, number>() }));
    expect((await rejection(running, ExecutionError)).message).toContain("use state.update");
  });

  test("is not suspected because of another TypeError", async () => {
    const error = await rejection(
      run(() => {
        throw new TypeError("x is not a function");
      }),
      ExecutionError,
    );
    expect(error.message).toBe('node "change" failed: x is not a function');
  });
});
