import { describe, expect, test } from "vitest";
import { END, MemoryStore, State, StateGraph, when } from "waymark";

interface Loop {
  readonly seen: readonly number[];
}

/** A loop that ends when its node has completed four times. */
function loop(checkpoint?: object) {
  return new StateGraph<Loop>({ name: "loop", ...(checkpoint && { checkpoint }) })
    .addNode("work", ({ data, visits }) => ({ seen: [...data.seen, visits.work ?? 0] }))
    .addNode("pass", (state) => state)
    .addEdge("work", "pass")
    .addEdge("pass", "work", ({ visits }) => (visits.work ?? 0) < 4)
    .addEdge("pass", END)
    .setEntryPoint("work");
}

const begin = (): State<Loop> => State.create<Loop>({ seen: [] }, { runId: "r" });

describe("visits are exact", () => {
  test.each([0, 1, 2, 3, 5, 100])("in nodes and predicates, with interval %i", async (interval) => {
    const graph = loop({ store: new MemoryStore(), interval });
    const { data, visits } = await graph.execute(begin());
    expect(data.seen).toEqual([0, 1, 2, 3]);
    expect(visits).toEqual({ work: 4, pass: 4 });
  });

  test.each(["sync", "async", "exit"])("in mode %s", async (mode) => {
    const { data } = await loop({ store: new MemoryStore(), interval: 3, mode }).execute(begin());
    expect(data.seen).toEqual([0, 1, 2, 3]);
  });

  test("without checkpoints", async () => {
    expect((await loop().execute(begin())).data.seen).toEqual([0, 1, 2, 3]);
  });

  test("in triggers", async () => {
    const store = new MemoryStore();
    const third = when(({ visits }) => visits.work === 3, "third");
    const graph = loop({ store, triggers: [third], preserve: true });
    await graph.execute(begin());
    const saved = (await graph.history("r")).filter(({ reason }) => reason === "third");
    expect(saved.map(({ step }) => step)).toEqual([6, 5]);
  });

  test.each([1, 2, 3, 4, 5, 6, 7])("in a run that is stopped after step %i", async (last) => {
    const graph = loop({ store: new MemoryStore(), interval: 2 });
    const stop = new AbortController();
    graph.on("node.complete", ({ data }) => {
      if (data.step === last) stop.abort();
    });
    await graph.execute(begin(), { signal: stop.signal }).catch(() => {});
    const { data, visits } = await graph.resume("r");
    expect(data.seen).toEqual([0, 1, 2, 3]);
    expect(visits).toEqual({ work: 4, pass: 4 });
  });
});
