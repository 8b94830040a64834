import { describe, expect, test } from "vitest";
import {
  CheckpointConflictError,
  CheckpointNotFoundError,
  ConfigError,
  END,
  MemoryStore,
  type NodeFunction,
  pause,
  SerializationError,
  State,
  StateGraph,
} from "waymark";
import { z } from "zod";
import { gate, rejection } from "../graphs.js";

interface Talk {
  said: string[];
}

const first = () => State.create<Talk>({ said: [] }, { runId: "r" });

const hears: NodeFunction<Talk> = async (state, context) => {
  const one = await context.pause("one", { reason: "one", ask: "One?" });
  const two = await context.pause("two", { reason: "two", ask: "Two?" });
  return { said: [...state.data.said, String(one), String(two)] };
};

/** A graph that works until the test lets it go, and then asks. */
function talk(store = new MemoryStore(), mode: "sync" | "exit" = "sync") {
  const [begun, go] = [gate(), gate()];
  const graph = new StateGraph<Talk>({ checkpoint: { store, interval: 1, preserve: true, mode } })
    .addNode("work", async (state) => {
      begun.open();
      await go.opened;
      return state;
    })
    .addNode("hear", hears)
    .addEdge("work", "hear")
    .setEntryPoint("work")
    .setExitPoint("hear");
  return { graph, store, begun, go };
}

describe("an answer", () => {
  test.each(["sync", "exit"] as const)(
    "given before its pause is kept for it (%s)",
    async (mode) => {
      const { graph, begun, go } = talk(new MemoryStore(), mode);
      const run = graph.start(first());
      await begun.opened;
      await Promise.all([run.answer("two", 2), graph.answer("r", "one", 1)]);
      go.open();
      expect((await run.result()).data.said).toEqual(["1", "2"]);
    },
  );

  test("is saved when the promise resolves, so that another process sees it", async () => {
    const { graph, store, begun, go } = talk();
    const run = graph.start(first());
    await begun.opened;
    await run.answer("one", 1);
    await run.answer("two", 2);
    const cancelled = run.cancel();
    go.open();
    await cancelled;
    const other = talk(store);
    other.go.open();
    expect((await other.graph.resume("r")).data.said).toEqual(["1", "2"]);
  });

  test("answers an open pause when the run is resumed", async () => {
    const { graph, go } = talk();
    go.open();
    const paused = await graph.execute(first());
    expect(paused.pauses.map(({ name }) => name)).toEqual(["one"]);
    await graph.answer("r", "one", 1);
    await graph.answer("r", "two", 2);
    const final = await graph.resume("r");
    expect(final.data.said).toEqual(["1", "2"]);
  });

  test("counts even if two are given at once for an inactive run", async () => {
    const { graph, go } = talk();
    go.open();
    await graph.execute(first());
    await Promise.all([graph.answer("r", "one", 1), graph.answer("r", "two", 2)]);
    expect((await graph.resume("r")).data.said).toEqual(["1", "2"]);
  });

  test("is used in the order given, each for one pause", async () => {
    const store = new MemoryStore();
    const graph = new StateGraph<Talk>({ checkpoint: { store, interval: 1 } })
      .addNode("hear", async (state, context) => {
        const said = await context.pause("next", { reason: "next", ask: "Next?" });
        return { said: [...state.data.said, String(said)] };
      })
      .addEdge("hear", "hear", (state) => state.data.said.length < 3)
      .addEdge("hear", END)
      .setEntryPoint("hear");
    await graph.execute(first());
    for (const word of ["a", "b", "c"]) await graph.answer("r", "next", word);
    expect((await graph.resume("r")).data.said).toEqual(["a", "b", "c"]);
  });

  test("to a pause after a node has the empty name", async () => {
    const store = new MemoryStore();
    const graph = new StateGraph<{ ok: boolean }>({ checkpoint: { store, interval: 1 } })
      .addNode("ask", (state) => pause(state, { reason: "ok", ask: "OK?", into: "ok" }))
      .setEntryPoint("ask")
      .setExitPoint("ask");
    await graph.execute(State.create({ ok: false }, { runId: "r" }));
    await graph.answer("r", "", true);
    expect((await graph.resume("r")).data.ok).toBe(true);
  });

  test("given while the run stops is kept", async () => {
    for (let turn = 0; turn < 20; turn++) {
      const { graph, begun, go, store } = talk();
      const run = graph.start(first());
      await begun.opened;
      go.open();
      for (let tick = 0; tick < turn; tick++) await null;
      await run.answer("two", 2);
      await run.result();
      await graph.answer("r", "one", 1);
      expect((await graph.resume("r")).data.said, `after ${turn} ticks`).toEqual(["1", "2"]);
      expect(await store.holder?.("r")).toBeUndefined();
    }
  });

  test("is one of at most 100 kept for a run", async () => {
    const { graph, begun, go } = talk();
    const run = graph.start(first());
    await begun.opened;
    await Promise.all(Array.from({ length: 100 }, (_, at) => run.answer(`x${at}`, at)));
    const error = await rejection(run.answer("one", 1), ConfigError);
    expect(error.message).toBe('answer can\'t be kept: run "r" has 100 that no pause has taken');
    go.open();
    await run.result();
    await rejection(graph.answer("r", "one", 1), ConfigError);
  });

  test("is refused where it can't be used", async () => {
    const { graph, store, begun, go } = talk();
    await rejection(graph.answer("r", "one", 1), CheckpointNotFoundError);
    const run = graph.start(first());
    await begun.opened;
    // Another process, that does not have the run.
    await rejection(talk(store).graph.answer("r", "one", 1), CheckpointConflictError);
    await rejection(
      graph.answer("r", "one", () => {}),
      SerializationError,
    );
    await rejection(graph.answer("r", 5 as unknown as string, 1), ConfigError);
    await run.answer("one", 1);
    await run.answer("two", 2);
    go.open();
    await run.result();
    const error = await rejection(run.answer("one", 1), ConfigError);
    expect(error.message).toBe('answer was given, but run "r" is completed');
  });

  test("of any type that a State holds round-trips", async () => {
    const { graph, store, go } = talk();
    go.open();
    await graph.execute(first());
    const value = new Map([["at", new Date(5)]]);
    await graph.answer("r", "one", value);
    const json = JSON.stringify((await store.load("r")).toJSON());
    expect(State.fromJSON(json).toJSON()).toEqual((await store.load("r")).toJSON());
    expect(json).toContain("$map");
  });

  test("that its pause's schema refuses is dropped, and the pause has the reason", async () => {
    const store = new MemoryStore();
    const graph = new StateGraph<Talk>({ checkpoint: { store, interval: 1, preserve: true } })
      .addNode("ask", async (state, context) => {
        const answer = await context.pause("age", { reason: "age", schema: z.number() });
        return { said: [...state.data.said, String(answer)] };
      })
      .setEntryPoint("ask")
      .setExitPoint("ask");
    await graph.execute(first());
    await graph.answer("r", "age", "forty");
    const asked = await graph.resume("r");
    expect(asked.status).toBe("paused");
    expect(asked.pauses[0]?.refused).toContain("expected number, received string");
    await graph.answer("r", "age", 40);
    expect((await graph.resume("r")).data.said).toEqual(["40"]);
  });
});
