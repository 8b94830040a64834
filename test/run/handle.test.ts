import { describe, expect, test } from "vitest";
import {
  type AnyEvent,
  CheckpointConflictError,
  CheckpointNotFoundError,
  CheckpointSaveError,
  ConfigError,
  ExecutionError,
  MemoryStore,
  MigrationError,
  type NodeFunction,
  pause,
  type RunHandle,
  State,
  StateGraph,
} from "waymark";
import {
  bare,
  gate,
  linear,
  mark,
  RecordingStore,
  rejection,
  start,
  type Trail,
} from "../graphs.js";

async function typesOf(events: AsyncIterable<AnyEvent>): Promise<string[]> {
  const types: string[] = [];
  for await (const { type } of events) types.push(type);
  return types;
}

/** A graph whose second node waits until the test lets it go. */
function waiting(store = new MemoryStore(), preserve = true) {
  const [begun, go] = [gate(), gate()];
  const b: NodeFunction<Trail> = async (state, context) => {
    begun.open();
    await Promise.race([
      go.opened,
      new Promise((_resolve, reject) => {
        context.signal.addEventListener("abort", () => reject(context.signal.reason));
      }),
    ]);
    return mark(state, context);
  };
  const config = { name: "abc", checkpoint: { store, interval: 1, preserve } };
  return { graph: linear(["a", "b", "c"], config, { b }), store, begun, go };
}

/** The same graph, in another process. */
const elsewhere = (store: MemoryStore) =>
  linear(["a", "b", "c"], { name: "abc", checkpoint: { store, interval: 1, preserve: true } });

describe("start", () => {
  test("runs in the background and returns what execute returns", async () => {
    const { graph, begun, go } = waiting();
    const run = graph.start(start("r"));
    await begun.opened;
    expect(await run.status()).toEqual({ state: "running", node: "a", step: 1, pauses: [] });
    go.open();
    const final = await run.result();
    expect(final.data.trail).toEqual(["a", "b", "c"]);
    expect(await run.status()).toEqual({ state: "completed", node: "c", step: 3, pauses: [] });
  });

  test("resolves saved once the run is in the store", async () => {
    const store = new RecordingStore();
    const release = gate();
    store.beforeSave = () => release.opened;
    const run = linear(["a"], { checkpoint: { store, interval: 1 } }).start(start("r"));
    let isSaved = false;
    const saved = run.saved.then(() => {
      isSaved = true;
      return store.saved.length;
    });
    await new Promise(setImmediate);
    expect(isSaved).toBe(false);
    release.open();
    expect(await saved).toBeGreaterThan(0);
    await run.result();
  });

  test("resolves saved at once without checkpointing", async () => {
    const run = linear(["a"]).start(start());
    await run.saved;
    await run.result();
  });

  test("rejects saved with the run's error if it failed before", async () => {
    const store = new RecordingStore();
    store.beforeSave = () => {
      throw new Error("full");
    };
    const run = linear(["a"], { checkpoint: { store, interval: 1 } }).start(start("r"));
    await rejection(run.saved, CheckpointSaveError);
    expect((await run.status()).state).toBe("failed");
  });

  test("never causes an unhandled rejection", async () => {
    const seen: unknown[] = [];
    const hear = (error: unknown): void => {
      seen.push(error);
    };
    process.on("unhandledRejection", hear);
    const fails: NodeFunction<Trail> = () => {
      throw new Error("no");
    };
    const graph = linear(["a"], {}, { a: fails });
    const run = graph.start(start("r"));
    await new Promise((resolve) => setTimeout(resolve, 20));
    process.off("unhandledRejection", hear);
    expect(seen).toEqual([]);
    expect(await run.status()).toMatchObject({ state: "failed", error: expect.any(String) });
    await rejection(run.result(), ExecutionError);
  });

  test("checks its arguments at once", () => {
    const graph = linear(["a"]);
    expect(() => graph.start({} as State<Trail>)).toThrow("must start from a State");
    expect(() => graph.start(start(), { sgnal: 1 } as object)).toThrow(ConfigError);
    expect(() => graph.start(start(), { input: 1 })).toThrow(ConfigError);
  });

  test("resumes a paused run by its id, with its input", async () => {
    const store = new MemoryStore();
    const graph = new StateGraph<{ ok: boolean }>({ checkpoint: { store, interval: 1 } })
      .addNode("ask", (state) => pause(state, { reason: "check", ask: "Fine?", into: "ok" }))
      .setEntryPoint("ask")
      .setExitPoint("ask");
    const first = graph.start(State.create({ ok: false }, { runId: "r" }));
    expect((await first.result()).status).toBe("paused");
    expect(await first.status()).toMatchObject({ state: "paused", pauses: [{ ask: "Fine?" }] });
    const second = graph.start("r", { input: true });
    await second.saved;
    expect((await second.result()).data.ok).toBe(true);
  });
});

describe("result", () => {
  test("stops waiting when its signal aborts; the run continues", async () => {
    const { graph, go } = waiting();
    const run = graph.start(start("r"));
    const controller = new AbortController();
    const waited = run.result({ signal: controller.signal });
    controller.abort(new Error("enough"));
    await expect(waited).rejects.toThrow("enough");
    go.open();
    expect((await run.result()).status).toBe("completed");
  });
});

describe("events", () => {
  test("include the past for a late reader, then live ones, until the end", async () => {
    const { graph, begun, go } = waiting();
    const run = graph.start(start("r"));
    await begun.opened;
    const late = typesOf(run.events({ from: "start" }));
    const now = typesOf(run.events());
    go.open();
    const types = await late;
    expect(types[0]).toBe("graph.start");
    expect(types.at(-1)).toBe("graph.complete");
    expect(types.filter((type) => type === "node.complete")).toHaveLength(3);
    expect((await now).filter((type) => type === "node.complete")).toHaveLength(2);
    expect(await typesOf(run.events({ from: "start" }))).toEqual(types);
    expect(await typesOf(run.events())).toEqual([]);
  });

  test("do not cancel the run when their reader stops, even while it waits", async () => {
    const { graph, begun, go } = waiting();
    const run = graph.start(start("r"));
    for await (const _ of run.events({ from: "start" })) break;
    await begun.opened;
    const reader = run.events();
    const next = reader.next();
    await reader.return();
    expect(await next).toEqual({ done: true, value: undefined });
    go.open();
    expect((await run.result()).status).toBe("completed");
  });

  test("stop when their signal aborts", async () => {
    const { graph, begun, go } = waiting();
    const run = graph.start(start("r"));
    await begun.opened;
    const controller = new AbortController();
    const next = run.events({ signal: controller.signal }).next();
    controller.abort(new Error("closed"));
    await expect(next).rejects.toThrow("closed");
    go.open();
    await run.result();
  });

  test("belong to their run only, and no listener is left when all runs have ended", async () => {
    const graph = linear(["a", "b"]);
    const runs = ["x", "y"].map((id) => graph.start(start(id)));
    for (const run of runs) {
      for await (const event of run.events({ from: "start" })) expect(event.runId).toBe(run.runId);
    }
    await Promise.all(runs.map((run) => run.result()));
  });

  test("check their options", () => {
    const run = linear(["a"]).start(start());
    expect(() => run.events({ from: "end" as "now" })).toThrow(
      'options.from must be "start" or "now"; got "end"',
    );
    return run.result();
  });
});

describe("cancel", () => {
  test("resolves when the run has stopped, and leaves it resumable", async () => {
    const { graph, store, begun } = waiting();
    const run = graph.start(start("r"));
    await begun.opened;
    expect(await run.cancel()).toBe(true);
    expect(await run.status()).toEqual({ state: "cancelled", node: "a", step: 1, pauses: [] });
    const error = await rejection(run.result(), ExecutionError);
    expect(error.code).toBe("ABORTED");
    expect(await store.holder?.("r")).toBeUndefined();
    expect((await elsewhere(store).resume("r")).data.trail).toEqual(["a", "b", "c"]);
  });

  test("reports that a run had completed", async () => {
    const run = linear(["a"]).start(start());
    await run.result();
    expect(await run.cancel()).toBe(false);
  });

  test("stops a run that has not started, after its first save", async () => {
    const { graph, store } = waiting();
    const run = graph.start(start("r"));
    expect(await run.cancel()).toBe(true);
    expect((await store.load("r")).step).toBe(0);
  });
});

describe("attach", () => {
  test("returns the same handle for a run of this process, even after it completed", async () => {
    const { graph, begun, go } = waiting();
    const run = graph.start(start("r"));
    expect(graph.attach("r")).toBe(run);
    await begun.opened;
    expect(graph.attach("r")).toBe(run);
    go.open();
    await run.result();
    expect(graph.attach("r")).toBe(run);
  });

  test("finds a run of execute, with its steps, events and cancel", async () => {
    const { graph, begun } = waiting();
    const executed = graph.execute(start("r")).catch((error: unknown) => error);
    await begun.opened;
    const run = graph.attach("r");
    expect(graph.attach("r")).toBe(run);
    await run.saved;
    const events = typesOf(run.events({ from: "start" }));
    expect(await run.cancel()).toBe(true);
    expect(await executed).toMatchObject({ code: "ABORTED" });
    expect((await events)[0]).toBe("node.complete");
  });

  test("follows a run of another process by its checkpoints", async () => {
    const { graph, store, begun, go } = waiting();
    const run = graph.start(start("r"));
    await begun.opened;
    const follower: RunHandle<Trail> = elsewhere(store).attach("r");
    await follower.saved;
    expect(await follower.status()).toEqual({ state: "running", node: "a", step: 1, pauses: [] });
    await rejection(follower.cancel(), CheckpointConflictError);
    const events: AnyEvent[] = [];
    const read = (async () => {
      for await (const event of follower.events({ from: "start" })) events.push(event);
    })();
    const result = follower.result();
    go.open();
    await run.result();
    expect((await result).data.trail).toEqual(["a", "b", "c"]);
    await read;
    expect(events.map(({ type, data }) => [type, "node" in data ? data.node : ""])).toEqual([
      ["graph.start", ""],
      ["node.complete", "a"],
      ["node.complete", "b"],
      ["node.complete", "c"],
      ["graph.complete", ""],
    ]);
    expect(await follower.status()).toMatchObject({ state: "completed", step: 3 });
    expect(await follower.cancel()).toBe(false);
  });

  test("reports an inactive run as cancelled, failed or unknown", async () => {
    const { graph, store, begun } = waiting();
    const run = graph.start(start("r"));
    await begun.opened;
    await run.cancel();
    const follower = elsewhere(store).attach("r");
    expect((await follower.status()).state).toBe("cancelled");
    expect(await follower.cancel()).toBe(true);
    expect((await rejection(follower.result(), ExecutionError)).code).toBe("ABORTED");
    const unknown = graph.attach("nobody");
    expect((await unknown.status()).state).toBe("unknown");
    expect(await unknown.cancel()).toBe(false);
    await rejection(unknown.result(), CheckpointNotFoundError);
    await rejection(unknown.saved, CheckpointNotFoundError);

    const fails: NodeFunction<Trail> = () => {
      throw new RangeError("too far");
    };
    const failing = linear(["a"], { checkpoint: { store, interval: 1 } }, { a: fails });
    await rejection(failing.execute(start("f")), ExecutionError);
    const failed = elsewhere(store).attach("f");
    expect(await failed.status()).toMatchObject({ state: "failed", error: "too far" });
    const error = await rejection(failed.result(), ExecutionError);
    expect(String(error.cause)).toBe("RangeError: too far");
    expect(await typesOf(failed.events({ from: "start" }))).toEqual(["graph.start", "graph.fail"]);
  });

  test("reports that a missing run may have completed", async () => {
    const graph = linear(["a"], { checkpoint: { store: new MemoryStore(), interval: 1 } });
    const error = await rejection(graph.attach("nobody").result(), CheckpointNotFoundError);
    expect(error.message).toContain("removed unless checkpoint.preserve is true");
  });

  test("returns the State of an older version migrated, as a resume does", async () => {
    const store = new MemoryStore();
    await elsewhere(store).execute(start("old"));
    const migrations = { 0: () => ({ trail: ["migrated"] }) };
    const config = { name: "abc", version: 1, checkpoint: { store, interval: 1 } };
    const follower = linear(["a", "b", "c"], { ...config, migrations }).attach("old");
    expect((await follower.result()).data.trail).toEqual(["migrated"]);
    const refused = linear(["a", "b", "c"], config).attach("old").result();
    expect((await rejection(refused, MigrationError)).code).toBe("MIGRATION");
  });

  test("follows a run up to its pause", async () => {
    const store = new MemoryStore();
    const asks: NodeFunction<Trail> = async (state, context) => {
      await context.pause("review", { reason: "needs a review" });
      return state;
    };
    const paused = linear(["a", "b"], { checkpoint: { store, interval: 1 } }, { b: asks });
    await paused.execute(start("p"));
    const follower = elsewhere(store).attach("p");
    expect(await follower.status()).toMatchObject({ state: "paused", node: "a", step: 1 });
    expect((await follower.result()).pauses[0]?.name).toBe("review");
    const events: AnyEvent[] = [];
    for await (const event of follower.events({ from: "start" })) events.push(event);
    expect(events.map(({ type }) => type)).toEqual(["graph.start", "node.complete", "graph.pause"]);
    expect(events.at(-1)?.data).toEqual({ node: "a", step: 1, reason: "needs a review" });
  });

  test("keeps the last 100 runs that ended without a store", async () => {
    const graph = linear(["a"]);
    const runs = Array.from({ length: 101 }, (_, index) => graph.start(start(`r${index}`)));
    for (const run of runs) await run.result();
    expect(graph.attach("r1")).toBe(runs[1]);
    expect(graph.attach("r0")).not.toBe(runs[0]);
  });

  test("follows a run in a store without claims, until its signal aborts", async () => {
    const { graph, store, begun, go } = waiting();
    const run = graph.start(start("r"));
    await begun.opened;
    const plain = linear(["a", "b", "c"], {
      name: "abc",
      checkpoint: { store: bare(store), interval: 1, preserve: true },
    });
    const follower = plain.attach("r");
    expect(await follower.status()).toMatchObject({ state: "running", node: "a", step: 1 });
    expect((await plain.attach("nobody").status()).state).toBe("unknown");
    await rejection(follower.cancel(), CheckpointConflictError);
    const controller = new AbortController();
    const result = follower.result({ signal: controller.signal });
    controller.abort(new RangeError("long enough"));
    await rejection(result, RangeError);
    go.open();
    await run.result();
    expect((await follower.result()).data.trail).toEqual(["a", "b", "c"]);
  });

  test("yields only the last event of a stopped run, unless the start is requested", async () => {
    const { graph, store, begun, go } = waiting();
    const run = graph.start(start("r"));
    await begun.opened;
    go.open();
    await run.result();
    expect(await typesOf(elsewhere(store).attach("r").events())).toEqual(["graph.complete"]);
    expect(await typesOf(elsewhere(store).attach("nobody").events())).toEqual([]);
  });

  test("yields no end for a run that was left unfinished", async () => {
    const { graph, store, begun } = waiting();
    const run = graph.start(start("r"));
    await begun.opened;
    await run.cancel();
    const events = elsewhere(store).attach("r").events({ from: "start" });
    expect(await typesOf(events)).toEqual(["graph.start", "node.complete"]);
  });

  test("reports a claimed run without a checkpoint as running", async () => {
    const store = new MemoryStore();
    const claim = await store.claim("r");
    expect(await elsewhere(store).attach("r").status()).toMatchObject({
      state: "running",
      step: 0,
    });
    await claim?.release();
    expect((await elsewhere(store).attach("r").status()).state).toBe("unknown");
  });

  test("passes on why a store can't be read", async () => {
    const store = new MemoryStore();
    store.load = () => Promise.reject(new RangeError("no disk"));
    await rejection(elsewhere(store).attach("r").status(), RangeError);
  });

  test("finds a run before it has started", async () => {
    const { graph, begun, go } = waiting();
    const executed = graph.execute(start("r"));
    const run = graph.attach("r");
    expect(await run.status()).toEqual({ state: "running", node: "", step: 0, pauses: [] });
    await begun.opened;
    go.open();
    expect((await executed).step).toBe(3);
  });

  test("checks the store for a failed run of this process, which another may have resumed", async () => {
    const store = new MemoryStore();
    let fails = true;
    const b: NodeFunction<Trail> = (state, context) => {
      if (fails) throw new RangeError("too far");
      return mark(state, context);
    };
    const config = { name: "abc", checkpoint: { store, interval: 1, preserve: true } };
    const graph = linear(["a", "b", "c"], config, { b });
    await rejection(graph.start(start("r")).result(), ExecutionError);
    expect((await graph.attach("r").status()).state).toBe("failed");
    fails = false;
    await elsewhere(store).resume("r");
    expect((await graph.attach("r").status()).state).toBe("completed");
  });
});

describe("a handle", () => {
  test("in another process returns what each step used, and a failure without a message", async () => {
    const store = new MemoryStore();
    const config = { name: "abc", checkpoint: { store, interval: 1, preserve: true } };
    const a: NodeFunction<Trail> = (state, context) => {
      context.ledger.usage({ inputTokens: 7 });
      return mark(state, context);
    };
    await linear(["a", "b", "c"], config, { a }).execute(start("r"));
    const used: unknown[] = [];
    for await (const event of elsewhere(store).attach("r").events({ from: "start" })) {
      if (event.type === "node.complete") used.push(event.data.usage?.inputTokens);
    }
    expect(used).toEqual([7, undefined, undefined]);

    await store.save(State.fromJSON<Trail>({ ...start("f").toJSON(), status: "failed" }));
    const events: AnyEvent[] = [];
    for await (const event of elsewhere(store).attach("f").events()) events.push(event);
    expect(events).toMatchObject([{ type: "graph.fail", data: { node: "", step: 0, error: "" } }]);
  });

  test("reports that a run of another process failed", async () => {
    const store = new MemoryStore();
    await store.claim("r");
    const run = linear(["a"], { checkpoint: { store, interval: 1 } }).start(start("r"));
    await rejection(run.result(), CheckpointConflictError);
    expect(await run.status()).toMatchObject({ state: "failed", node: "", step: 0 });
  });

  test("of a run drained before it started leaves it resumable", async () => {
    const { graph, store } = waiting();
    const run = graph.start(start("r"));
    const drained = graph.drain();
    await rejection(run.result(), ExecutionError);
    await drained;
    expect((await run.status()).state).toBe("cancelled");
    expect((await elsewhere(store).resume("r")).data.trail).toEqual(["a", "b", "c"]);
  });
});
