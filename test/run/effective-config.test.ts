import { expect, test } from "vitest";
import { MemoryStore, State } from "waymark";
import { report } from "waymark/report";
import { linear, start } from "../graphs.js";

test("each run has the settings that it ran with, even if two graphs are otherwise the same", async () => {
  const store = new MemoryStore();
  const graph = (maxIterations: number) =>
    linear(["a", "b"], {
      ...{ name: "g", maxIterations },
      checkpoint: { store, interval: 1, preserve: true },
    });
  await graph(10).execute(start("one"));
  await graph(20).execute(start("two"));
  const reports = await Promise.all(["one", "two"].map((runId) => report(runId, { store })));
  expect(reports.map(({ config }) => config.maxIterations)).toEqual([10, 20]);
});

test("a run that another graph continues has that one's settings from there on", async () => {
  const store = new MemoryStore();
  const graph = (maxIterations: number, before: string[]) =>
    linear(["a", "b"], {
      ...{ name: "g", maxIterations, breakpoints: { before } },
      checkpoint: { store, interval: 1, preserve: true },
    });
  await graph(10, ["b"]).execute(start("r"));
  expect((await report("r", { store })).config.maxIterations).toBe(10);
  await graph(20, []).resume("r");
  expect((await report("r", { store })).config.maxIterations).toBe(20);
  const loaded = await store.load("r");
  expect(State.fromJSON(loaded.toJSON()).toJSON().config).toEqual(loaded.toJSON().config);
});
