import { expect, test } from "vitest";
import { CheckpointConflictError, ConfigError, MemoryStore, State, StateGraph } from "waymark";
import { linear, rejection, start } from "../graphs.js";

test("checkpoint events name the actor and the purpose", async () => {
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

test("delete and prune events name the actor", async () => {
  const store = new MemoryStore();
  const graph = linear(["a"], {
    audit: { actor: "ada" },
    checkpoint: { store, interval: 1, preserve: true },
  });
  const deleted: unknown[] = [];
  graph.on("checkpoint.delete", ({ runId, data }) =>
    deleted.push([runId, data.actor, data.purpose]),
  );
  for (const id of ["r1", "r2", "r3", "r4"]) await graph.execute(start(id));
  await graph.delete("r1");
  await graph.delete("r2", { audit: { actor: "bob", purpose: "asked to" } });
  expect(await graph.prune({ maxRuns: 0, dryRun: true })).toHaveLength(2);
  expect(await graph.prune({ maxRuns: 1 }, { audit: { actor: "cron" } })).toEqual(["r3"]);
  expect(deleted).toEqual([
    ["r1", "ada", undefined],
    ["r2", "bob", "asked to"],
    ["r3", "cron", undefined],
  ]);
  expect(await store.list()).toEqual(["r4"]);
  const claim = await store.claim("r4");
  await rejection(graph.delete("r4"), CheckpointConflictError);
  await claim?.release();
  await graph.delete("r4");
  await graph.delete("r4");
  expect(await store.list()).toEqual([]);
  await rejection(graph.delete(""), ConfigError);
  await rejection(graph.prune({}, { audit: { actor: "" } }), ConfigError);
});

test("refuses an empty actor", () => {
  expect(() => new StateGraph({ audit: { actor: "" } })).toThrow(ConfigError);
});
