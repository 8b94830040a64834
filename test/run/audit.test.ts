import { expect, test } from "vitest";
import { ConfigError, MemoryStore, State, StateGraph } from "waymark";

test("events of checkpoints name who had to do with them, and what for", async () => {
  const audit = { actor: "ada", purpose: "ticket 7" };
  const store = new MemoryStore();
  const told: unknown[] = [];
  const build = () =>
    new StateGraph<{ n: number }>({ audit, checkpoint: { store, interval: 1 } })
      .addNode("a", () => ({ n: 1 }))
      .addNode("b", () => ({ n: 2 }))
      .addEdge("a", "b")
      .setEntryPoint("a")
      .setExitPoint("b")
      .on("*", ({ type, data }) => {
        if (/^checkpoint\.(save|load|delete)$/.test(type)) told.push([type, data]);
      });
  await State.create({ n: 0 }, { runId: "r" }).checkpoint(store);
  await build().resume("r");
  expect(told).toEqual([
    ["checkpoint.load", expect.objectContaining(audit)],
    ["checkpoint.save", expect.objectContaining(audit)],
    ["checkpoint.save", expect.objectContaining(audit)],
    ["checkpoint.delete", expect.objectContaining(audit)],
  ]);
});

test("an actor is text", () => {
  expect(() => new StateGraph({ audit: { actor: "" } })).toThrow(ConfigError);
});
