import { describe, expect, test } from "vitest";
import { MemoryStore, pause, State, StateGraph, type ValuesEvent } from "waymark";

interface Draft {
  text: string;
  score: number;
  note?: string;
}

const first = () => State.create<Draft>({ text: "", score: 0, note: "x" }, { runId: "r" });

const graph = new StateGraph<Draft>({ checkpoint: { store: new MemoryStore(), interval: 1 } })
  .addNode("write", async (state, ctx) => {
    const half = await ctx.checkpoint(state.set("text", "half"), "half");
    return half.update((draft) => {
      draft.text = "whole";
      delete draft.note;
    });
  })
  .addNode("rate", (state) => ({ score: 1, text: state.data.text }))
  .addNode("end", (state) => pause(state, { reason: "look" }))
  .addEdge("write", "rate")
  .addEdge("rate", "end")
  .setEntryPoint("write")
  .setExitPoint("end");

describe("stream with values", () => {
  test("yields the keys that each node changed, after its completion", async () => {
    const values: ValuesEvent<Draft>[] = [];
    const types: string[] = [];
    const stream = graph.stream(first(), { values: true });
    let last = await stream.next();
    for (; !last.done; last = await stream.next()) {
      types.push(last.value.type);
      if (last.value.type === "values") values.push(last.value);
    }
    expect(values).toEqual([
      { type: "values", node: "write", step: 1, changed: { text: "whole", note: undefined } },
      { type: "values", node: "rate", step: 2, changed: { score: 1 } },
      { type: "values", node: "end", step: 3, changed: {} },
    ]);
    for (const [at, type] of types.entries()) {
      if (type === "values") expect(types.slice(0, at)).toContain("node.complete");
    }
    expect(last.value.status).toBe("paused");
  });

  test("yields none by default", async () => {
    for await (const event of graph.stream("r")) expect(event.type).not.toBe("values");
    expect(() => graph.stream("r", { values: 1 as unknown as true })).toThrow(
      "options.values must be true or false; got 1",
    );
  });
});
