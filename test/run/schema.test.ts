import { type } from "arktype";
import * as v from "valibot";
import { describe, expect, test } from "vitest";
import { END, MemoryStore, pause, SchemaError, State, StateGraph } from "waymark";
import { z } from "zod";

const shape = z.object({ topic: z.string(), score: z.number().min(0).default(0) });

function graphWith(store: MemoryStore, validate?: "nodes") {
  return new StateGraph({
    schema: shape,
    ...(validate && { validate }),
    checkpoint: { store, interval: 1, preserve: true },
  })
    .addNode("review", (state) => ({ score: state.data.score - 1 }))
    .addEdge("review", END)
    .setEntryPoint("review");
}

describe("a graph with a schema", () => {
  test("refuses bad data with all issues and paths, before anything is saved", async () => {
    const store = new MemoryStore();
    const bad = State.create({ topic: 7, score: -1 } as unknown as z.infer<typeof shape>);
    const error = await graphWith(store)
      .execute(bad)
      .catch((caught: unknown) => caught);
    expect(error).toBeInstanceOf(SchemaError);
    expect(error).toMatchObject({
      code: "SCHEMA",
      issues: [{ path: "topic" }, { path: "score" }],
    });
    expect(await store.list()).toEqual([]);
  });

  test("fills in the schema's defaults", async () => {
    const state = State.create({ topic: "cairns" } as z.infer<typeof shape>);
    const final = await graphWith(new MemoryStore()).execute(state);
    expect(final.data).toEqual({ topic: "cairns", score: -1 });
  });

  test("describes its data as JSON Schema, in the store too, if the library provides one", async () => {
    const store = new MemoryStore();
    const graph = graphWith(store);
    const schema = { properties: { topic: { type: "string" } }, required: ["topic"] };
    expect(graph.topology).toMatchObject({ schema });
    await graph.execute(State.create({ topic: "cairns", score: 1 }));
    expect(await store.topology(graph.fingerprint)).toMatchObject({ schema });
    const none = new StateGraph({ schema: v.object({ topic: v.string() }) });
    expect(none.topology).not.toHaveProperty("schema");
  });

  test('with validate: "nodes" fails a node whose result is invalid', async () => {
    const store = new MemoryStore();
    const state = State.create({ topic: "cairns", score: 0 });
    await expect(graphWith(store, "nodes").execute(state)).rejects.toMatchObject({
      code: "NODE_FAILED",
      cause: { code: "SCHEMA" },
    });
    expect((await store.load(state.runId)).status).toBe("failed");
  });

  test("checks loaded and migrated data", async () => {
    const store = new MemoryStore();
    const { runId } = await graphWith(store).execute(State.create({ topic: "cairns", score: 1 }));
    const next = new StateGraph({
      schema: shape.extend({ words: z.number() }),
      version: 1,
      migrations: { 0: (data: object) => ({ ...data, words: "many" }) },
      checkpoint: { store, interval: 1 },
    })
      .addNode("review", (state) => ({ words: state.data.words }))
      .addEdge("review", END)
      .setEntryPoint("review");
    await expect(next.resume(runId)).rejects.toMatchObject({
      code: "SCHEMA",
      issues: [{ path: "words" }],
    });
  });

  test("refuses a fork with invalid changes before it is saved", async () => {
    const store = new MemoryStore();
    const graph = graphWith(store);
    const { runId } = await graph.execute(State.create({ topic: "cairns", score: 1 }));
    await expect(graph.fork(runId, 1, { score: -1 })).rejects.toMatchObject({
      code: "SCHEMA",
      issues: [{ path: "score" }],
    });
    expect(await store.list()).toEqual([runId]);
  });

  test("refuses an answer that does not fit the data, and accepts another", async () => {
    const graph = new StateGraph({
      schema: shape,
      checkpoint: { store: new MemoryStore(), interval: 1 },
    })
      .addNode("ask", (state) => pause(state, { reason: "a score", ask: "?", into: "score" }))
      .addEdge("ask", END)
      .setEntryPoint("ask");
    const { runId, sequence } = await graph.execute(State.create({ topic: "cairns", score: 0 }));
    await expect(graph.resume(runId, { input: "high" })).rejects.toMatchObject({
      code: "SCHEMA",
      issues: [{ path: "score" }],
    });
    expect((await graph.history(runId))[0]).toMatchObject({ sequence, status: "paused" });
    expect((await graph.resume(runId, { input: 3 })).data.score).toBe(3);
  });

  test("accepts schemas of valibot and arktype", async () => {
    const graphs = [
      new StateGraph({ schema: v.object({ n: v.number() }) }),
      new StateGraph({ schema: type({ n: "number" }) }),
    ];
    for (const graph of graphs) {
      graph
        .addNode("one", (state) => ({ n: state.data.n + 1 }))
        .addEdge("one", END)
        .setEntryPoint("one");
      expect((await graph.execute(State.create({ n: 1 }))).data.n).toBe(2);
      const bad = State.create({ n: "1" } as unknown as { n: number });
      await expect(graph.execute(bad)).rejects.toMatchObject({ code: "SCHEMA" });
    }
  });
});
