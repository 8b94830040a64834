import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { ExecutionError, type NodeFunction, type NodeOptions, StateGraph } from "waymark";
import { type FakeClock, useFakeClock } from "waymark/testing";
import { gate, mark, RecordingStore, rejection, start, type Trail } from "../graphs.js";

let clock: FakeClock;
beforeEach(() => {
  clock = useFakeClock();
});
afterEach(() => clock.restore());

/** Only `a`, then `b`, of which `a` has these options. */
function graphOf(node: NodeFunction<Trail>, options: NodeOptions<Trail>, store?: RecordingStore) {
  return new StateGraph<Trail, string>(store && { checkpoint: { store, interval: 1 } })
    .addNode("a", node, options)
    .addNode("b", mark)
    .addEdge("a", "b")
    .setEntryPoint("a")
    .setExitPoint("b");
}

/** Ends when its signal aborts, with the signal's reason. */
const obedient: NodeFunction<Trail> = (_state, { signal }) =>
  new Promise((_resolve, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason));
  });

describe("an attempt that takes too long", () => {
  test("is aborted through its signal, and fails the node", async () => {
    const store = new RecordingStore();
    const ended = rejection(
      graphOf(obedient, { timeout: 50 }, store).execute(start("r")),
      ExecutionError,
    );
    await clock.advance(50);
    const error = await ended;
    expect(error.code).toBe("NODE_FAILED");
    expect(error.message).toBe('node "a" failed: node "a" took longer than its timeout of 50 ms');
    expect(error.cause).toMatchObject({ name: "TimeoutError" });
    expect(await store.load("r")).toMatchObject({
      status: "failed",
      error: { name: "TimeoutError", node: "a" },
    });
  });

  test("fails even if it ignores its signal, and its late result is ignored", async () => {
    const late = gate();
    let aborted: boolean | undefined;
    const node: NodeFunction<Trail> = async (_state, { signal }) => {
      await late.opened;
      aborted = signal.aborted;
      return { trail: ["late"] };
    };
    const graph = graphOf(node, { timeout: 50, errorHandler: () => ({ trail: ["in time"] }) });
    const running = graph.execute(start());
    await clock.advance(50);
    const final = await running;
    late.open();
    await clock.advance(1);
    expect(final.data.trail).toEqual(["in time", "b"]);
    expect(aborted).toBe(true);
  });

  test("leaves no unhandled rejection if it fails late", async () => {
    const unhandled = vi.fn();
    process.on("unhandledRejection", unhandled);
    const late = gate();
    const node: NodeFunction<Trail> = async () => {
      await late.opened;
      throw new Error("late");
    };
    const ended = rejection(graphOf(node, { timeout: 5 }).execute(start()), ExecutionError);
    await clock.advance(5);
    await ended;
    late.open();
    await clock.advance(1);
    expect(unhandled).not.toHaveBeenCalled();
    process.off("unhandledRejection", unhandled);
  });

  test("is retried, with its own time and signal", async () => {
    const signals: AbortSignal[] = [];
    const node: NodeFunction<Trail> = (state, context) => {
      signals.push(context.signal);
      return context.attempt === 1 ? obedient(state, context) : mark(state, context);
    };
    const running = graphOf(node, { timeout: 50, retry: { initialInterval: 0 } }).execute(start());
    await clock.advance(50);
    await clock.advance(0);
    expect((await running).data.trail).toEqual(["a", "b"]);
    expect(signals.map((signal) => signal.aborted)).toEqual([true, false]);
  });

  test("does not count the waits between attempts", async () => {
    vi.spyOn(Math, "random").mockReturnValue(0);
    let calls = 0;
    const node: NodeFunction<Trail> = (state, context) => {
      if (++calls < 3) throw new Error("down");
      return mark(state, context);
    };
    const running = graphOf(node, { timeout: 10, retry: { initialInterval: 1000 } }).execute(
      start(),
    );
    await clock.advance(5000);
    expect((await running).step).toBe(2);
    vi.restoreAllMocks();
  });
});

describe("a node in time", () => {
  test("leaves no timer, whether it returns, throws or is synchronous", async () => {
    for (const node of [
      mark,
      async (...args: Parameters<NodeFunction<Trail>>) => mark(...args),
      () => {
        throw new Error("down");
      },
    ]) {
      await graphOf(node, { timeout: 50 })
        .execute(start())
        .catch(() => {});
      expect(clock.waiting).toBe(0);
    }
  });

  test("may have unlimited time", async () => {
    const slow = gate();
    const node: NodeFunction<Trail> = async (state, context) => {
      await slow.opened;
      return mark(state, context);
    };
    const running = graphOf(node, { timeout: Number.POSITIVE_INFINITY }).execute(start());
    await clock.advance(1e12);
    slow.open();
    expect((await running).step).toBe(2);
  });
});

test("cancelling the run reaches a node that has a timeout", async () => {
  const store = new RecordingStore();
  const graph = graphOf(obedient, { timeout: 50, retry: {} }, store);
  const controller = new AbortController();
  const ended = rejection(graph.execute(start("r"), controller), ExecutionError);
  await clock.advance(10);
  controller.abort(new Error("enough"));
  expect(await ended).toMatchObject({ code: "ABORTED", cause: new Error("enough") });
  expect(clock.waiting).toBe(0);
  expect(await store.load("r")).toMatchObject({ status: "in_progress" });
});

describe("late work of an abandoned attempt", () => {
  /** An attempt that continues after its time; the second one waits for it. */
  function overtaken(act: (context: Parameters<NodeFunction<Trail>>[1], state: never) => unknown) {
    const [late, done] = [gate(), gate()];
    const outcomes: unknown[] = [];
    const node: NodeFunction<Trail> = async (state, context) => {
      if (context.attempt === 1) {
        await late.opened;
        outcomes.push(await Promise.resolve(act(context, state as never)).catch((error) => error));
        done.open();
        return state;
      }
      late.open();
      await done.opened;
      outcomes.push(await context.once("pay", () => "second"));
      return mark(state, context);
    };
    return { node, outcomes };
  }

  const options = { timeout: 10, retry: { initialInterval: 0 } };

  test("keeps a once that completes for the next attempt", async () => {
    const store = new RecordingStore();
    const { node, outcomes } = overtaken((context) => context.once("pay", () => "first"));
    const running = graphOf(node, options, store).execute(start("r"));
    await clock.advance(10);
    await running;
    expect(outcomes).toEqual(["first", "first"]);
  });

  test("refuses a milestone and a pause", async () => {
    for (const act of [
      (context: Parameters<NodeFunction<Trail>>[1], state: never) =>
        context.checkpoint(state, "late"),
      (context: Parameters<NodeFunction<Trail>>[1]) => context.pause("ok", { reason: "late" }),
    ]) {
      const store = new RecordingStore();
      const { node, outcomes } = overtaken(act);
      const running = graphOf(node, options, store).execute(start("r"));
      await clock.advance(10);
      expect((await running).data.trail).toEqual(["a", "b"]);
      expect(String(outcomes[0])).toBe(
        "ConfigError: context belongs to attempt 1 of step 0, which has ended: stop when its signal aborts",
      );
      expect(store.log.join()).not.toContain("late");
    }
  });

  test("does not block the next attempt, which runs a hanging once itself", async () => {
    const store = new RecordingStore();
    const calls: number[] = [];
    const node: NodeFunction<Trail> = async (state, context) => {
      await context.once("pay", () => {
        calls.push(context.attempt);
        return context.attempt === 1 ? new Promise(() => {}) : "paid";
      });
      return mark(state, context);
    };
    const running = graphOf(node, options, store).execute(start("r"));
    await clock.advance(10);
    expect((await running).data.trail).toEqual(["a", "b"]);
    expect(calls).toEqual([1, 2]);
  });
});
