import { describe, expect, test } from "vitest";
import { ExecutionError, type NodeFunction, type State, StateGraph } from "waymark";
import {
  gate,
  linear,
  listen,
  mark,
  RecordingStore,
  rejection,
  start,
  type Trail,
} from "../graphs.js";

const names = ["a", "b", "c", "d"];

/** The signal's abort listeners that are still there. */
class CountedSignal {
  readonly controller = new AbortController();
  listeners = 0;

  constructor() {
    const { signal } = this.controller;
    const add = signal.addEventListener.bind(signal);
    const remove = signal.removeEventListener.bind(signal);
    signal.addEventListener = (...args: Parameters<typeof add>) => {
      this.listeners++;
      add(...args);
    };
    signal.removeEventListener = (...args: Parameters<typeof remove>) => {
      this.listeners--;
      remove(...args);
    };
  }
}

describe("a run that is cancelled", () => {
  test("before it starts runs nothing, and can be resumed", async () => {
    const store = new RecordingStore();
    const graph = linear(names, { checkpoint: { store, interval: 1 } });
    const reason = new Error("shutting down");
    const error = await rejection(
      graph.execute(start("r"), { signal: AbortSignal.abort(reason) }),
      ExecutionError,
    );
    expect(error).toMatchObject({ code: "ABORTED", nodeName: "a", path: [] });
    expect(error.cause).toBe(reason);
    expect(store.log).toEqual(["start:@0", "abort:@0"]);
    const final = await graph.resume("r");
    expect([final.data.trail, final.crashes]).toEqual([names, 0]);
  });

  test.each([1, 2, 5])("between nodes loses no completed node, interval %i", async (interval) => {
    const store = new RecordingStore();
    const controller = new AbortController();
    const ran: string[] = [];
    const tell: NodeFunction<Trail> = (state, ctx) => {
      ran.push(ctx.node);
      if (ctx.node === "c") controller.abort();
      return mark(state, ctx);
    };
    const nodes = Object.fromEntries(names.map((name) => [name, tell]));
    const graph = linear(names, { checkpoint: { store, interval } }, nodes);
    const { signal } = controller;
    const error = await rejection(graph.execute(start("r"), { signal }), ExecutionError);
    expect(error).toMatchObject({ code: "ABORTED", nodeName: "d", path: ["a", "b", "c"] });
    const left = await store.load<Trail>("r");
    expect(left).toMatchObject({
      step: 3,
      checkpointNode: "c",
      status: "in_progress",
      error: undefined,
      visits: { a: 1, b: 1, c: 1 },
    });
    expect(left.reason).toBe("abort");
    const final = await graph.resume("r");
    expect([final.data.trail, final.crashes]).toEqual([names, 0]);
    expect(ran).toEqual(names);
  });

  test("after a rollback stays rolled back, even if no node completed since", async () => {
    const store = new RecordingStore();
    const ran: string[] = [];
    const controller = new AbortController();
    const b: NodeFunction<Trail> = (state, ctx) => {
      ran.push(ctx.node);
      if (ran.length === 2) {
        controller.abort();
        throw ctx.signal.reason;
      }
      return mark(state, ctx);
    };
    const graph = linear(names, { checkpoint: { store, interval: 1, preserve: true } }, { b });
    await graph.execute(start("r"));
    const { signal } = controller;
    const error = await rejection(graph.resume("r", { step: 1, signal }), ExecutionError);
    expect(error.code).toBe("ABORTED");
    const left = { status: "in_progress", step: 1, checkpointNode: "a", reason: "abort" };
    expect(await store.load<Trail>("r")).toMatchObject(left);
    expect((await graph.resume("r")).data.trail).toEqual(names);
    expect(ran).toEqual(["b", "b", "b"]);
  });

  test("inside a node reaches it through ctx.signal; the node runs again on resume", async () => {
    const store = new RecordingStore();
    const controller = new AbortController();
    const reason = new Error("stop now");
    const inside = gate();
    let visits = 0;
    const b: NodeFunction<Trail> = async (state, ctx) => {
      if (visits++ > 0) return mark(state, ctx);
      inside.open();
      await new Promise((_, reject) =>
        ctx.signal.addEventListener("abort", () => reject(ctx.signal.reason)),
      );
      return state;
    };
    const graph = linear(names, { checkpoint: { store, interval: 5 } }, { b });
    const events = listen(graph);
    const running = rejection(
      graph.execute(start("r"), { signal: controller.signal }),
      ExecutionError,
    );
    await inside.opened;
    controller.abort(reason);
    const error = await running;
    expect(error).toMatchObject({ code: "ABORTED", nodeName: "b", path: ["a", "b"] });
    expect(error.cause).toBe(reason);
    expect(store.log).toEqual(["start:@0", "abort:a@1"]);
    expect(events.at(-1)).toMatchObject({ type: "graph.fail", data: { code: "ABORTED" } });
    expect((await graph.resume("r")).data.trail).toEqual(names);
    expect(visits).toBe(2);
  });

  test.each<[what: string, error: (signal: AbortSignal) => unknown, code: string]>([
    ["the signal's reason", (signal) => signal.reason, "ABORTED"],
    ["an AbortError of its own", () => new DOMException("stopped", "AbortError"), "ABORTED"],
    ["an error that has nothing to do with it", () => new Error("boom"), "NODE_FAILED"],
  ])("inside a node that then throws %s", async (_what, error, code) => {
    const controller = new AbortController();
    const b: NodeFunction<Trail> = (_state, ctx) => {
      controller.abort("enough");
      throw error(ctx.signal);
    };
    const store = new RecordingStore();
    const graph = linear(names, { checkpoint: { store, interval: 1 } }, { b });
    const failure = await rejection(
      graph.execute(start(), { signal: controller.signal }),
      ExecutionError,
    );
    expect(failure.code).toBe(code);
    expect(store.saved.at(-1)?.status).toBe(code === "ABORTED" ? "in_progress" : "failed");
  });

  test("inside a node that runs another graph counts as cancelled, not as failed", async () => {
    const controller = new AbortController();
    const inner = linear(
      ["x", "y"],
      {},
      {
        x: (state) => {
          controller.abort();
          return state;
        },
      },
    );
    const store = new RecordingStore();
    const b: NodeFunction<Trail> = async (state, { signal }) => {
      const { data } = await inner.execute(start(), { signal });
      return state.merge(data as Trail);
    };
    const graph = linear(names, { checkpoint: { store, interval: 1 } }, { b });
    const error = await rejection(
      graph.execute(start(), { signal: controller.signal }),
      ExecutionError,
    );
    expect(error.code).toBe("ABORTED");
    expect(store.saved.at(-1)).toMatchObject({ status: "in_progress", checkpointNode: "a" });
  });

  test("inside a node that ignores it keeps what the node did", async () => {
    const store = new RecordingStore();
    const controller = new AbortController();
    const b: NodeFunction<Trail> = async (state, ctx) => {
      controller.abort();
      return mark(state, ctx);
    };
    const graph = linear(names, { checkpoint: { store, interval: 5 } }, { b });
    const { signal } = controller;
    const error = await rejection(graph.execute(start("r"), { signal }), ExecutionError);
    expect(error).toMatchObject({ code: "ABORTED", nodeName: "c" });
    expect(error.state.data).toEqual({ trail: ["a", "b"] });
    expect(store.log).toEqual(["start:@0", "abort:b@2"]);
  });

  test("in an exit node that ignores it completes", async () => {
    const controller = new AbortController();
    const d: NodeFunction<Trail> = (state, ctx) => {
      controller.abort();
      return mark(state, ctx);
    };
    const final = await linear(names, {}, { d }).execute(start(), { signal: controller.signal });
    expect(final.status).toBe("completed");
  });

  test("while a save is under way keeps that save", async () => {
    const store = new RecordingStore();
    const controller = new AbortController();
    store.beforeSave = ({ step }) => {
      if (step === 2) controller.abort();
    };
    const graph = linear(names, { checkpoint: { store, interval: 1 } });
    const { signal } = controller;
    await rejection(graph.execute(start("r"), { signal }), ExecutionError);
    expect(store.log).toEqual(["start:@0", "interval:a@1", "interval:b@2", "abort:b@2"]);
  });

  test("without checkpointing has its State in the error", async () => {
    const controller = new AbortController();
    const b: NodeFunction<Trail> = (state, ctx) => {
      controller.abort();
      return mark(state, ctx);
    };
    const running = linear(names, {}, { b }).execute(start(), { signal: controller.signal });
    const { state } = await rejection(running, ExecutionError);
    expect((state as State<Trail>).data.trail).toEqual(["a", "b"]);
    expect((state as State<Trail>).visits).toEqual({ a: 1, b: 1 });
  });

  test("can be cancelled again after a resume", async () => {
    const store = new RecordingStore();
    const graph = linear(names, { checkpoint: { store, interval: 1 } });
    const signal = AbortSignal.abort();
    await rejection(graph.execute(start("r"), { signal }), ExecutionError);
    await rejection(graph.resume("r", { signal }), ExecutionError);
    await rejection(graph.resumeOrStart(start("r"), { signal }), ExecutionError);
    const final = await graph.resumeOrStart(start("r"), { signal: new AbortController().signal });
    expect(final.data.trail).toEqual(names);
  });
});

describe("the listener on the caller's signal is removed", () => {
  test.each<[what: string, b: NodeFunction<Trail>]>([
    ["completed", mark],
    [
      "failed",
      () => {
        throw new Error("boom");
      },
    ],
  ])("once the run has %s", async (_what, b) => {
    const counted = new CountedSignal();
    const { signal } = counted.controller;
    const running = linear(
      names,
      {},
      {
        a: (state, ctx) => {
          expect(counted.listeners).toBe(1);
          return mark(state, ctx);
        },
        b,
      },
    ).execute(start(), { signal });
    await running.catch(() => {});
    expect(counted.listeners).toBe(0);
  });

  test("once a save has failed", async () => {
    const store = new RecordingStore();
    store.beforeSave = () => {
      throw new Error("full");
    };
    const counted = new CountedSignal();
    const { signal } = counted.controller;
    const graph = linear(names, { checkpoint: { store, interval: 1 } });
    await graph.execute(start(), { signal }).catch(() => {});
    expect(counted.listeners).toBe(0);
  });
});

test("one signal stops a hundred runs, each leaving its checkpoint", async () => {
  const store = new RecordingStore();
  const controller = new AbortController();
  const warnings: Error[] = [];
  const warn = (warning: Error): unknown => warnings.push(warning);
  process.on("warning", warn);
  const all = gate();
  let waiting = 0;
  const graph = new StateGraph<Trail>({ checkpoint: { store, interval: 1 } })
    .addNode("a", mark)
    .addNode("b", async (state, ctx) => {
      if (++waiting === 100) all.open();
      await all.opened;
      return mark(state, ctx);
    })
    .addNode("c", mark)
    .addEdge("a", "b")
    .addEdge("b", "c")
    .setEntryPoint("a")
    .setExitPoint("c");
  const { signal } = controller;
  const runs = Array.from({ length: 100 }, (_, at) => graph.execute(start(`r${at}`), { signal }));
  const settled = Promise.allSettled(runs);
  await all.opened;
  controller.abort();
  for (const outcome of await settled)
    expect(outcome).toMatchObject({ reason: { code: "ABORTED" } });
  // A warning comes with the next tick.
  await new Promise((resolve) => setImmediate(resolve));
  process.off("warning", warn);
  expect(warnings).toEqual([]);
  const left = await Promise.all((await store.list()).map((runId) => store.load(runId)));
  expect(left.map(({ step }) => step)).toEqual(Array(100).fill(2));
});
