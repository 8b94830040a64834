import { describe, expect, test } from "vitest";
import {
  CheckpointConflictError,
  type CheckpointStore,
  END,
  type GraphConfig,
  MemoryStore,
  State,
  StateGraph,
} from "waymark";
import { metrics } from "waymark/observers/metrics";

interface Count {
  readonly n: number;
}

/** A store whose saves wait until they are let through. */
class SlowStore extends MemoryStore {
  readonly begun: number[] = [];
  readonly done: number[] = [];
  #release: (() => void)[] = [];
  failAt = Number.POSITIVE_INFINITY;
  waits = true;

  override async save<D extends object>(state: State<D>): Promise<State<D>> {
    this.begun.push(state.step);
    if (this.waits) await new Promise<void>((resolve) => this.#release.push(resolve));
    if (state.step >= this.failAt) throw new Error("disk full");
    const saved = await super.save(state);
    this.done.push(state.step);
    return saved;
  }

  /** Lets all saves through that are under way. */
  release(): void {
    for (const resolve of this.#release.splice(0)) resolve();
  }
}

const tick = () => new Promise((resolve) => setImmediate(resolve));

function counter(
  steps: number,
  store: CheckpointStore,
  checkpoint: object,
  config: GraphConfig<Count> = {},
) {
  return new StateGraph<Count>({
    checkpoint: { store, interval: 1, preserve: true, ...checkpoint },
    ...config,
  })
    .addNode("count", async (state) => ({ n: state.data.n + 1 }))
    .addEdge("count", "count", (state) => state.data.n < steps)
    .addEdge("count", END)
    .setEntryPoint("count");
}

describe('mode "async"', () => {
  test("aborts the running node when its save finds another writer", async () => {
    const store = new SlowStore();
    store.waits = false;
    let reason: unknown;
    const graph = new StateGraph<Count>({ checkpoint: { store, interval: 1, mode: "async" } })
      .addNode("first", () => {
        store.waits = true;
        return { n: 1 };
      })
      .addNode("second", async (state, { signal, runId }) => {
        // Somebody else saves the run while the save of this one is under way.
        await MemoryStore.prototype.save.call(store, await store.load<Count>(runId));
        store.release();
        await new Promise((resolve) => signal.addEventListener("abort", resolve));
        reason = signal.reason;
        return state;
      })
      .addEdge("first", "second")
      .addEdge("second", END)
      .setEntryPoint("first");
    const error = await graph.execute(State.create({ n: 0 })).catch((error: unknown) => error);
    expect(error).toBeInstanceOf(CheckpointConflictError);
    expect(reason).toBe(error);
  });

  test("starts the next node while the save is under way, and saves one at a time", async () => {
    const store = new SlowStore();
    const running = counter(6, store, { mode: "async" }).execute(State.create({ n: 0 }));
    await tick();
    expect(store.begun).toEqual([0]);
    store.release();
    for (let turn = 0; turn < 5; turn++) await tick();
    // The first node's save is under way; the others ran on, and only the newest of them waits.
    expect(store.begun).toEqual([0, 1]);
    store.waits = false;
    store.release();
    const final = await running;
    expect(final.data.n).toBe(6);
    expect(store.done).toEqual([0, 1, 5, 6]);
    expect((await store.load<Count>(final.runId)).data.n).toBe(6);
  });

  test("stops the run at the next node if a save failed", async () => {
    const store = new SlowStore();
    store.waits = false;
    store.failAt = 2;
    const seen: number[] = [];
    const graph = counter(50, store, { mode: "async" });
    graph.on("node.start", ({ data }) => seen.push(data.step));
    await expect(graph.execute(State.create({ n: 0 }))).rejects.toMatchObject({
      code: "CHECKPOINT_SAVE",
    });
    expect(seen.length).toBeLessThan(6);
    expect(store.done.at(-1)).toBe(1);
  });

  test("stores a result of once before it is used", async () => {
    const store = new MemoryStore();
    let saved: unknown;
    const graph = new StateGraph<Count>({ checkpoint: { store, interval: 1, mode: "async" } })
      .addNode("first", async (state) => ({ n: state.data.n + 1 }))
      .addNode("pay", async (_state, ctx) => {
        const receipt = await ctx.once("pay", () => 7);
        saved = (await store.load(ctx.runId)).toJSON().unfinished?.results;
        return { n: receipt };
      })
      .addEdge("first", "pay")
      .setEntryPoint("first")
      .setExitPoint("pay");
    expect((await graph.execute(State.create({ n: 0 }))).data.n).toBe(7);
    expect(saved).toEqual({ pay: 7 });
  });
});

describe('mode "exit"', () => {
  test("saves only the end", async () => {
    const store = new SlowStore();
    store.waits = false;
    const final = await counter(5, store, { mode: "exit" }).execute(State.create({ n: 0 }));
    expect(store.done).toEqual([5]);
    expect((await store.load(final.runId)).status).toBe("completed");
  });

  test("saves a failure, with results of once, and resumes from it", async () => {
    const store = new SlowStore();
    store.waits = false;
    let fails = true;
    let paid = 0;
    const graph = new StateGraph<Count>({ checkpoint: { store, mode: "exit", preserve: true } })
      .addNode("a", (state) => ({ n: state.data.n + 1 }))
      .addNode("b", async (state, ctx) => {
        await ctx.once("pay", () => ++paid);
        if (fails) throw new Error("broken");
        return { n: state.data.n + 10 };
      })
      .addEdge("a", "b")
      .setEntryPoint("a")
      .setExitPoint("b");
    const state = State.create({ n: 0 });
    await expect(graph.execute(state)).rejects.toThrow("broken");
    expect(store.done).toEqual([1]);
    fails = false;
    expect((await graph.resume(state.runId)).data.n).toBe(11);
    expect(paid).toBe(1);
  });

  test("refuses triggers, which could never save", () => {
    const trigger = { reason: "x", due: () => true };
    expect(() => counter(1, new MemoryStore(), { mode: "exit", triggers: [trigger] })).toThrow(
      'config.checkpoint.mode is "exit"',
    );
  });
});

describe('interval "adaptive"', () => {
  test("does not save after each of many short nodes", async () => {
    const store = new SlowStore();
    store.waits = false;
    await counter(500, store, { interval: "adaptive" }).execute(State.create({ n: 0 }));
    expect(store.done.length).toBeLessThan(20);
    expect(store.done.at(-1)).toBe(500);
  });

  test("reports the inputs of each decision", async () => {
    const graph = counter(3, new MemoryStore(), { interval: "adaptive", maxLoss: { ms: 0 } });
    const decisions: unknown[] = [];
    const meter = metrics();
    graph.on("checkpoint.save", ({ data }) => decisions.push(data.adaptive));
    graph.on("*", (event) => meter.onEvent(event));
    await graph.execute(State.create({ n: 0 }));
    const number = expect.any(Number);
    const numbers = { unsavedMs: number, unsavedUsd: 0, intervalMs: number, dueMs: number };
    const decision = { ...numbers, saveMs: number, failureMs: number };
    expect(decisions.at(-1)).toMatchObject(decision);
    expect(meter.snapshot().checkpoints.adaptive).toEqual(decisions.at(-1));
    expect(meter.prometheus()).toMatch(
      /\nwaymark_checkpoint_adaptive_seconds\{input="interval"\} [\d.e-]+\n/,
    );
  });

  test("never leaves more than maxLoss of money unsaved", async () => {
    const store = new SlowStore();
    store.waits = false;
    const graph = new StateGraph<Count>({
      checkpoint: { store, interval: "adaptive", maxLoss: { costUsd: 1 }, preserve: true },
    })
      .addNode("spend", (state, { ledger }) => {
        ledger.usage({ costUsd: 0.4 });
        return { n: state.data.n + 1 };
      })
      .addEdge("spend", "spend", (state) => state.data.n < 10)
      .addEdge("spend", END)
      .setEntryPoint("spend");
    const rules: unknown[] = [];
    graph.on("checkpoint.save", ({ data }) => rules.push(data.adaptive?.rule));
    await graph.execute(State.create({ n: 0 }));
    // Nothing asked for the first save but the start.
    expect(rules).toEqual([undefined, ...Array(5).fill("maxLoss.costUsd")]);
    const gaps = store.done.map((step, index) => step - (store.done[index - 1] ?? 0));
    expect(Math.max(...gaps)).toBeLessThanOrEqual(2);
  });

  test("is required by maxLoss", () => {
    expect(() => counter(1, new MemoryStore(), { maxLoss: { ms: 5 } })).toThrow(
      'config.checkpoint.maxLoss needs checkpoint.interval: "adaptive"',
    );
  });
});
