import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type NodeFunction, recoverRuns } from "waymark";
import { type FakeClock, useFakeClock } from "waymark/testing";
import { gate, linear, RecordingStore, start, type Trail } from "../graphs.js";
import { restarted, settled } from "./crashes.js";

describe("a time limit", () => {
  let clock: FakeClock;
  beforeEach(() => {
    clock = useFakeClock();
  });
  afterEach(() => clock.restore());

  /** A run whose node waits for its signal, or for ever. */
  async function stuck(obeys: boolean) {
    const store = new RecordingStore();
    const go = gate();
    const a: NodeFunction<Trail> = (state, { signal }) =>
      new Promise((resolve, reject) => {
        go.opened.then(() => resolve(state));
        if (obeys) signal.addEventListener("abort", () => reject(signal.reason));
      });
    const graphIn = (opened: ReturnType<typeof restarted>) => {
      const checkpoint = { store: opened, interval: 1, preserve: true };
      return linear(["a", "b"], { checkpoint }, { a });
    };
    graphIn(restarted(store))
      .execute(start("r"))
      .catch(() => {});
    await settled();
    const opened = restarted(store);
    const graph = graphIn(opened);
    return { store, opened, options: { store: opened, graphs: [graph] }, go };
  }

  test("cancels a run that takes too long, which counts as an attempt", async () => {
    const { options, store } = await stuck(true);
    const recovering = recoverRuns(options);
    await clock.advance(299_999);
    expect((await store.load("r")).reason).toBe("recovery");
    await clock.advance(1);
    const [report] = await recovering;
    expect(report).toMatchObject({ outcome: "timed-out", attempts: 1 });
    expect(report?.error).toMatchObject({ code: "ABORTED", cause: { name: "TimeoutError" } });
    expect(await store.load("r")).toMatchObject({ status: "in_progress" });
    expect(clock.waiting).toBe(0);
  });

  test("gives up a run after its last attempt, and marks it as failed", async () => {
    const { options, store } = await stuck(true);
    const recovering = recoverRuns({ ...options, maxAttempts: 1, timeoutMs: 10 });
    await clock.advance(10);
    expect(await recovering).toMatchObject([{ outcome: "gave-up", attempts: 1 }]);
    expect(await store.load("r")).toMatchObject({
      status: "failed",
      error: { name: "RecoveryError" },
    });
  });

  test("abandons a run that does not stop, along with its claim", async () => {
    const { options, opened, go } = await stuck(false);
    const recovering = recoverRuns({ ...options, timeoutMs: 10 });
    await clock.advance(10);
    await clock.advance(5000);
    expect(await recovering).toMatchObject([
      {
        outcome: "timed-out",
        reason: "it was cancelled and does not stop: its node ignores context.signal",
      },
    ]);
    expect(await opened.claim?.("r")).toBeUndefined();
    go.open();
    await settled();
    expect(await opened.claim?.("r")).toBeDefined();
  });

  test("also ends when the recovery is cancelled, and the attempts don't count", async () => {
    const { options, store } = await stuck(true);
    const controller = new AbortController();
    const recovering = recoverRuns({ ...options, signal: controller.signal });
    await clock.advance(1);
    controller.abort(new Error("shutting down"));
    expect(await recovering).toMatchObject([
      { outcome: "skipped", reason: "the recovery was cancelled" },
    ]);
    expect((await store.load("r")).toJSON().recovery).toMatchObject({ attempts: 0 });
    const before = store.saved.length;
    expect(await recoverRuns({ ...options, signal: AbortSignal.abort() })).toMatchObject([
      { outcome: "skipped", reason: "the recovery was cancelled", attempts: 0 },
    ]);
    expect(store.saved).toHaveLength(before);
    expect(clock.waiting).toBe(0);
  });

  test("also ends when a graph drains, which does not count", async () => {
    const { options, store, go } = await stuck(false);
    const recovering = recoverRuns(options);
    await clock.advance(1);
    const draining = options.graphs[0]?.drain();
    go.open();
    await draining;
    expect(await recovering).toMatchObject([{ outcome: "skipped", error: { code: "ABORTED" } }]);
    expect(await store.load("r")).toMatchObject({ status: "in_progress", checkpointNode: "a" });
    expect(await recoverRuns(options)).toMatchObject([{ outcome: "completed", attempts: 1 }]);
  });
});
