import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ConfigError, MemoryStore, parallel, State, StateGraph } from "waymark";
import { type FakeClock, useFakeClock } from "waymark/testing";
import { rejection } from "../graphs.js";

interface Count {
  readonly n: number;
}

const HOUR = 3_600_000;
const NOW = Date.UTC(2030, 0, 1);
let clock: FakeClock;
beforeEach(() => {
  clock = useFakeClock(NOW);
});
afterEach(() => clock.restore());

const never = new AbortController().signal;

/** A node that sleeps an hour, and what it did. */
function sleeper(did: string[] = []) {
  const store = new MemoryStore();
  const graph = new StateGraph<Count>({ checkpoint: { store, interval: 1, preserve: true } })
    .addNode("nap", async (_state, ctx) => {
      did.push("begin");
      await ctx.sleep("nap", HOUR);
      did.push("end");
      return { n: 1 };
    })
    .setEntryPoint("nap")
    .setExitPoint("nap");
  return { store, graph, did, worker: StateGraph.inside(graph, store, never, 5000) };
}

describe("a node that sleeps", () => {
  test("waits in the process", async () => {
    const { graph, did } = sleeper();
    const going = graph.execute(State.create({ n: 0 }, { runId: "r" }));
    await clock.advance(HOUR - 1);
    expect(did).toEqual(["begin"]);
    await clock.advance(1);
    expect((await going).data.n).toBe(1);
    expect(did).toEqual(["begin", "end"]);
  });

  test("waits only for the remaining time after a crash", async () => {
    const { graph, did } = sleeper();
    const controller = new AbortController();
    const options = { signal: controller.signal };
    const first = graph.execute(State.create({ n: 0 }, { runId: "r" }), options);
    await clock.advance(HOUR / 2);
    controller.abort(new Error("stopped"));
    await first.catch(() => {});
    const again = graph.resume("r");
    await clock.advance(HOUR / 2);
    expect((await again).status).toBe("completed");
    expect(did).toEqual(["begin", "begin", "end"]);
  });

  test("frees its worker, and completes when its time has come", async () => {
    const { worker, store } = sleeper();
    const paused = await worker.execute(State.create({ n: 0 }, { runId: "r" }));
    const until = new Date(NOW + HOUR).toISOString();
    expect(paused.status).toBe("paused");
    expect(paused.pauses).toEqual([
      { name: "sleep: nap", reason: `sleep: nap until ${until}`, until },
    ]);
    expect((await store.load<Count>("r")).pauses).toEqual(paused.pauses);
    expect((await worker.resume("r")).pauses[0]?.until).toBe(until);
    await clock.advance(HOUR - 4000);
    const last = worker.resume("r");
    await clock.advance(4000);
    expect((await last).status).toBe("completed");
  });

  test("accepts no input", async () => {
    const { worker } = sleeper();
    await worker.execute(State.create({ n: 0 }, { runId: "r" }));
    const error = await rejection(worker.resume("r", { input: 1 }), ConfigError);
    expect(error.message).toContain("only waits (sleep: nap until 2030-01-01T01:00:00.000Z)");
  });

  test("and one that pauses each continue at their own time", async () => {
    const store = new MemoryStore();
    const graph = new StateGraph<{ all: unknown[] }>({
      checkpoint: { store, interval: 1, preserve: true },
    })
      .addNode(
        "both",
        parallel(
          ["sleep", "ask"],
          async (_state, item, ctx): Promise<unknown> => {
            if (item === "ask") return ctx.pause("ask", { reason: "asks", ask: "Go?" });
            await ctx.sleep("nap", HOUR);
            return "slept";
          },
          { merge: (_state, all) => ({ all }) },
        ),
      )
      .setEntryPoint("both")
      .setExitPoint("both");
    const worker = StateGraph.inside(graph, store, never, 5000);
    const paused = await worker.execute(State.create({ all: [] }, { runId: "r" }));
    expect(paused.pauses.map(({ name }) => name).sort()).toEqual(["ask", "sleep: [0] nap"]);
    await clock.advance(HOUR);
    const asking = await worker.resume("r");
    expect(asking.pauses.map(({ name }) => name)).toEqual(["ask"]);
    const done = await worker.resume("r", { input: "yes" });
    expect(done.data.all).toEqual(["slept", "yes"]);
  });

  test.each([
    ["", 1, "name"],
    ["nap", -1, "ms"],
    ["nap", Number.NaN, "ms"],
    ["nap", "1", "ms"],
  ])("refuses sleep(%j, %j)", async (name, ms, option) => {
    let error: unknown;
    await new StateGraph<Count>()
      .addNode("nap", async (state, ctx) => {
        error = await ctx.sleep(name, ms as number).catch((caught: unknown) => caught);
        return state;
      })
      .setEntryPoint("nap")
      .setExitPoint("nap")
      .execute(State.create({ n: 0 }));
    expect(error).toBeInstanceOf(ConfigError);
    expect((error as ConfigError).option).toBe(option);
  });

  test("forever sleeps until the maximum time", async () => {
    const { store } = sleeper();
    const graph = new StateGraph<Count>({ checkpoint: { store, interval: 1 } })
      .addNode("nap", async (state, ctx) => {
        await ctx.sleep("nap", Number.POSITIVE_INFINITY);
        return state;
      })
      .setEntryPoint("nap")
      .setExitPoint("nap");
    const paused = await StateGraph.inside(graph, store, never, 5000).execute(
      State.create({ n: 0 }),
    );
    expect(paused.pauses[0]?.until).toBe("+275760-09-13T00:00:00.000Z");
  });
});

describe("a distant retry", () => {
  /** A node that fails `failures` times, and which attempts it made. */
  function flaky(failures: number, initialInterval: number) {
    const attempts: number[] = [];
    const store = new MemoryStore();
    const graph = new StateGraph<Count>({ checkpoint: { store, interval: 1, preserve: true } })
      .addNode(
        "call",
        async (_state, ctx) => {
          attempts.push(ctx.attempt);
          if (ctx.attempt <= failures) throw new Error("busy");
          return { n: ctx.attempt };
        },
        { retry: { maxAttempts: 4, initialInterval, backoff: 1, maxInterval: HOUR } },
      )
      .setEntryPoint("call")
      .setExitPoint("call");
    return { attempts, worker: StateGraph.inside(graph, store, never, 5000) };
  }

  test("frees its worker, and keeps counting attempts", async () => {
    const { attempts, worker } = flaky(2, HOUR);
    let state = await worker.execute(State.create({ n: 0 }, { runId: "r" }));
    expect(state.status).toBe("paused");
    expect(state.pauses[0]?.name).toBe("retry: attempt 2");
    expect((await worker.resume("r")).pauses[0]?.name).toBe("retry: attempt 2");
    await clock.advance(HOUR);
    state = await worker.resume("r");
    expect(state.pauses[0]?.name).toBe("retry: attempt 3");
    await clock.advance(HOUR);
    state = await worker.resume("r");
    expect(state.status).toBe("completed");
    expect(attempts).toEqual([1, 2, 3]);
  });

  test("fails after the last attempt", async () => {
    const { attempts, worker } = flaky(9, HOUR);
    let last: unknown = await worker.execute(State.create({ n: 0 }, { runId: "r" }));
    for (let resumed = 0; resumed < 3; resumed++) {
      await clock.advance(HOUR);
      last = await worker.resume("r").catch((error: unknown) => error);
    }
    expect(last).toBeInstanceOf(Error);
    expect(attempts).toEqual([1, 2, 3, 4]);
  });

  test("is waited for in the process if it is near", async () => {
    const { attempts, worker } = flaky(1, 4000);
    const going = worker.execute(State.create({ n: 0 }, { runId: "r" }));
    await clock.advance(4000);
    expect((await going).status).toBe("completed");
    expect(attempts).toEqual([1, 2]);
  });
});
