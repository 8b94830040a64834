import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import {
  ExecutionError,
  FatalError,
  type NodeFunction,
  RetryableError,
  type RetryPolicy,
} from "waymark";
import { type FakeClock, useFakeClock } from "waymark/testing";
import { linear, RecordingStore, rejection, start, type Trail } from "../graphs.js";
import { failing, graphOf } from "./retrying.js";

let clock: FakeClock;
beforeEach(() => {
  clock = useFakeClock();
});
afterEach(() => {
  clock.restore();
});

/** The waits before each attempt of a node that never works, in milliseconds. */
async function waits(retry: RetryPolicy, error?: (attempt: number) => unknown): Promise<number[]> {
  const graph = graphOf(failing(Number.POSITIVE_INFINITY, error).node, { retry });
  const delays: number[] = [];
  graph.on("node.retry", ({ data }) => delays.push(data.delayMs));
  const ended = rejection(graph.execute(start()), ExecutionError);
  await clock.advance(1e9);
  await ended;
  return delays;
}

describe("a node that fails", () => {
  test("is not retried by default", async () => {
    const { node, attempts } = failing(1);
    await rejection(graphOf(node, {}).execute(start()), ExecutionError);
    expect(attempts).toEqual([1]);
  });

  test("is retried until it succeeds, and counts as one step", async () => {
    const { node, attempts } = failing(2);
    const running = graphOf(node, { retry: {} }).execute(start());
    await clock.advance(10_000);
    const final = await running;
    expect(attempts).toEqual([1, 2, 3]);
    expect(final).toMatchObject({ step: 2, status: "completed", error: undefined });
    expect(final.visits).toEqual({ a: 1, b: 1 });
  });

  test("fails after three attempts by default, with the last error", async () => {
    const { node, attempts } = failing(9, (attempt) => new Error(`down ${attempt}`));
    const ended = rejection(graphOf(node, { retry: {} }).execute(start()), ExecutionError);
    await clock.advance(10_000);
    expect((await ended).cause).toEqual(new Error("down 3"));
    expect(attempts).toEqual([1, 2, 3]);
  });

  test("may be retried without limit", async () => {
    const { node, attempts } = failing(2000);
    const retry = { maxAttempts: Number.POSITIVE_INFINITY, initialInterval: 0 };
    const graph = graphOf(node, { retry });
    const delays: number[] = [];
    graph.on("node.retry", ({ data }) => delays.push(data.delayMs));
    const running = graph.execute(start());
    await clock.advance(1);
    expect((await running).step).toBe(2);
    expect(attempts).toHaveLength(2001);
    expect(new Set(delays)).toEqual(new Set([0]));
  });

  test("emits each failed attempt, with the delay before the next", async () => {
    vi.spyOn(Math, "random").mockReturnValue(0);
    const errors: Error[] = [];
    const { node } = failing(2, (attempt) => {
      const error = new Error(`down ${attempt}`);
      errors.push(error);
      return error;
    });
    const graph = graphOf(node, { retry: { initialInterval: 10 } });
    const told: unknown[] = [];
    graph.on("node.retry", ({ data, timestamp }) => told.push([Date.parse(timestamp), data]));
    const running = graph.execute(start());
    await clock.advance(100);
    await running;
    const at = { node: "b", step: 1 };
    expect(told).toEqual([
      [0, { ...at, attempt: 1, error: "down 1", cause: errors[0], delayMs: 10 }],
      [10, { ...at, attempt: 2, error: "down 2", cause: errors[1], delayMs: 20 }],
    ]);
  });

  test("has one start and one end, however many attempts it took", async () => {
    const { node } = failing(2);
    const graph = graphOf(node, { retry: { initialInterval: 10 } });
    const types: string[] = [];
    graph.on("*", ({ type }) => types.push(type));
    const running = graph.execute(start());
    await clock.advance(100);
    await running;
    const ofB = types.slice(types.indexOf("edge.transition") + 1);
    expect(ofB.filter((type) => type.startsWith("node."))).toEqual([
      "node.start",
      "node.retry",
      "node.retry",
      "node.complete",
    ]);
  });

  test("fails the run, and a resume restarts at the first attempt", async () => {
    const store = new RecordingStore();
    const { node, attempts } = failing(3);
    const graph = graphOf(node, { retry: { maxAttempts: 2 } }, store);
    const ended = rejection(graph.execute(start("r")), ExecutionError);
    await clock.advance(10_000);
    await ended;
    expect(await store.load("r")).toMatchObject({ status: "failed", step: 1 });
    const resumed = graph.resume("r");
    await clock.advance(10_000);
    await resumed;
    expect(attempts).toEqual([1, 2, 1, 2]);
  });
});

describe("the wait before the next attempt", () => {
  test("doubles each time, and jitter subtracts less than half", async () => {
    vi.spyOn(Math, "random").mockReturnValue(0);
    const longest = await waits({ maxAttempts: 6 });
    expect(longest).toEqual([1000, 2000, 4000, 8000, 16_000]);
    vi.spyOn(Math, "random").mockReturnValue(1 - Number.EPSILON);
    const shortest = await waits({ maxAttempts: 6 });
    for (const [index, wait] of shortest.entries()) {
      expect(wait).toBeCloseTo((longest[index] ?? 0) / 2);
    }
  });

  test("differs between runs", async () => {
    const policy = { maxAttempts: 2, initialInterval: 1000 };
    const seen: number[] = [];
    for (let run = 0; run < 50; run++) seen.push(...(await waits(policy)));
    expect(new Set(seen).size).toBeGreaterThan(40);
    expect(Math.min(...seen)).toBeGreaterThan(500);
    expect(Math.max(...seen)).toBeLessThanOrEqual(1000);
  });

  test("grows by the given factor, up to the maximum", async () => {
    vi.spyOn(Math, "random").mockReturnValue(0);
    const retry = { maxAttempts: 6, initialInterval: 10, backoff: 3, maxInterval: 100 };
    expect(await waits(retry)).toEqual([10, 30, 90, 100, 100]);
  });

  test("is exactly what a RetryableError asks for", async () => {
    const retry = { maxAttempts: 3, maxInterval: 100 };
    const busy = (attempt: number) => new RetryableError("busy", { retryAfter: attempt * 1234 });
    expect(await waits(retry, busy)).toEqual([1234, 2468]);
  });

  test.each([undefined, Number.NaN, -1])(
    "is the policy's if the error asks for %s",
    async (retryAfter) => {
      vi.spyOn(Math, "random").mockReturnValue(0);
      const options = retryAfter === undefined ? {} : { retryAfter };
      const busy = () => new RetryableError("busy", options);
      expect(await waits({ maxAttempts: 2 }, busy)).toEqual([1000]);
    },
  );

  test("really passes", async () => {
    vi.spyOn(Math, "random").mockReturnValue(0);
    const { node, attempts } = failing(1);
    const running = graphOf(node, { retry: { initialInterval: 500 } }).execute(start());
    await clock.advance(499);
    expect([attempts.length, clock.waiting]).toEqual([1, 1]);
    await clock.advance(1);
    await running;
    expect([attempts.length, clock.waiting]).toEqual([2, 0]);
  });
});

describe("which errors are retried", () => {
  test("retryIf decides, given the error and the attempt", async () => {
    const { node, attempts } = failing(9, (attempt) => new Error(attempt === 2 ? "no" : "yes"));
    const retryIf = vi.fn((error: unknown) => (error as Error).message === "yes");
    const graph = graphOf(node, { retry: { maxAttempts: 5, retryIf } });
    const ended = rejection(graph.execute(start()), ExecutionError);
    await clock.advance(10_000);
    expect((await ended).cause).toEqual(new Error("no"));
    expect(attempts).toEqual([1, 2]);
    expect(retryIf.mock.calls).toEqual([
      [new Error("yes"), 1],
      [new Error("no"), 2],
    ]);
  });

  test("retryIf is not called after the last attempt", async () => {
    const retryIf = vi.fn(() => true);
    await waits({ maxAttempts: 2, retryIf });
    expect(retryIf).toHaveBeenCalledTimes(1);
  });

  test("a retryIf that throws means no, and the node's own error is kept", async () => {
    const { node, attempts } = failing(9);
    const retryIf = () => {
      throw new Error("a bug in retryIf");
    };
    const graph = graphOf(node, { retry: { retryIf } });
    const error = await rejection(graph.execute(start()), ExecutionError);
    expect([error.cause, attempts]).toEqual([new Error("down"), [1]]);
  });

  test("never a FatalError", async () => {
    const { node, attempts } = failing(9, () => new FatalError("no such account"));
    const retryIf = vi.fn(() => true);
    const graph = graphOf(node, { retry: { maxAttempts: 9, retryIf } });
    const error = await rejection(graph.execute(start()), ExecutionError);
    expect(error.cause).toBeInstanceOf(FatalError);
    expect([attempts, retryIf.mock.calls]).toEqual([[1], []]);
  });

  test("a FatalError or a RetryableError also counts if another graph threw it", async () => {
    const inner = (error: Error) => linear(["x"], {}, { x: () => Promise.reject(error) });
    const fatal = inner(new FatalError("no"));
    let calls = 0;
    const retry = { maxAttempts: 4 };
    const node: NodeFunction<Trail> = () => {
      calls++;
      return fatal.execute(start());
    };
    await rejection(graphOf(node, { retry }).execute(start()), ExecutionError);
    expect(calls).toBe(1);
    const busy = inner(new RetryableError("busy", { retryAfter: 77 }));
    const graph = graphOf(() => busy.execute(start()), { retry: { maxAttempts: 2 } });
    const delays: number[] = [];
    graph.on("node.retry", ({ data }) => delays.push(data.delayMs));
    const ended = rejection(graph.execute(start()), ExecutionError);
    await clock.advance(100);
    await ended;
    expect(delays).toEqual([77]);
  });

  test("not an invalid result, as the node did not fail", async () => {
    let calls = 0;
    const graph = graphOf(
      () => {
        calls++;
        return 7 as never;
      },
      { retry: {} },
    );
    expect((await rejection(graph.execute(start()), ExecutionError)).code).toBe("NODE_RESULT");
    expect(calls).toBe(1);
  });
});
