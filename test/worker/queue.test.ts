import { describe, expect, test, vi } from "vitest";
import {
  CheckpointConflictError,
  CheckpointCorruptionError,
  CheckpointNotFoundError,
  CheckpointSaveError,
  ConfigError,
  ExecutionError,
  GraphError,
  isWaymarkError,
  MemoryStore,
  MigrationError,
  PauseTimeoutError,
  SchemaError,
  SerializationError,
  State,
  WaymarkError,
} from "waymark";
import { useFakeClock } from "waymark/testing";
import { Client } from "waymark/worker";
import { ActiveRun, fenced, leaseTimes } from "../../src/worker/active-run.js";
import { classifyFailure } from "../../src/worker/advance.js";
import { Cancellations } from "../../src/worker/cancellations.js";
import { failureOf } from "../../src/worker/failure.js";
import { jobIdOf, runIdOf } from "../../src/worker/job.js";
import { Listener } from "../../src/worker/listener.js";
import { health } from "../../src/worker/metrics.js";
import { backOffIdleWakeups, renewOneByOne } from "../../src/worker/postgres.js";
import { failedError } from "../../src/worker/source.js";

describe("job ids", () => {
  test("map to one run each", () => {
    const ids = ["a", "a:b", "a%3Ab", "~a%3Ab", "~a:b", "%", "7", "~7", "-7", "07", "repeat:a:1"];
    expect(new Set(ids.map(jobIdOf)).size).toBe(ids.length);
    expect(ids.map((id) => runIdOf(jobIdOf(id)))).toEqual(ids);
    expect(jobIdOf("order-7")).toBe("order-7");
  });
});

describe("the error of a failed run", () => {
  test("is what its worker recorded, if the store has nothing", () => {
    const error = failedError("r", undefined, undefined, "stalled");
    expect(error).toBeInstanceOf(ExecutionError);
    expect(error).toMatchObject({ code: "NODE_FAILED", message: "stalled", nodeName: "" });
    const failure = { name: "TypeError", message: "no" };
    expect(failedError("r", State.create({}), failure, "no").cause).toMatchObject(failure);
  });

  const across = (error: unknown): WaymarkError =>
    failedError("r", undefined, JSON.parse(JSON.stringify(failureOf(error))), "");

  test.each([
    new WaymarkError("STORE", "no answer"),
    new GraphError("GRAPH_CYCLE", "a → a"),
    new CheckpointNotFoundError("r"),
    new CheckpointNotFoundError("r", { step: 2, checkpointId: "c" }, "it was removed"),
    new CheckpointCorruptionError("bad", { expected: "a", actual: "b" }),
    new SerializationError("data.\0\ud800", "is a symbol"),
    new MigrationError(1, 3, "no migration"),
    new SchemaError("data", [{ path: "n", message: "must be a number" }]),
    new PauseTimeoutError("approval", "2030-01-01T00:00:00.000Z"),
    new ConfigError("input", "is missing"),
  ])("has the class, the message and the fields it had on its worker: %s", (error) => {
    const crossed = across(error);
    expect(crossed).toBeInstanceOf(error.constructor);
    expect(crossed.message).toBe(error.message);
    expect({ ...crossed }).toEqual({ ...error });
    expect(isWaymarkError(crossed, error.code)).toBe(true);
  });

  test("is a CheckpointSaveError if a checkpoint could not be saved", () => {
    const where = { nodeName: "a", state: State.create({}), path: [] };
    expect(across(new CheckpointSaveError("disk full", where))).toBeInstanceOf(CheckpointSaveError);
  });

  const large = Object.assign(new GraphError("GRAPH_CYCLE", "no"), { more: "x".repeat(70_000) });
  test.each([
    ["a job keeps no fields", { name: "SchemaError", code: "SCHEMA", message: "no" }],
    ["it had none", failureOf(new WaymarkError("SCHEMA", "no"))],
    ["it had too many", failureOf(large)],
    [
      "they can't be JSON",
      failureOf(Object.assign(new GraphError("GRAPH_CYCLE", "no"), { n: 1n })),
    ],
    ["they are damaged", { name: "GraphError", code: "GRAPH_CYCLE", message: "no", fields: "{" }],
    ["its code is of a newer version", { name: "NewError", code: "NEW", message: "no" }],
  ])("is an ExecutionError with that cause if %s", (_why, failure) => {
    const error = failedError("r", undefined, failure, "no");
    expect(error).toBeInstanceOf(ExecutionError);
    expect(error).toMatchObject({ code: "NODE_FAILED", message: "no" });
    expect(error.cause).toMatchObject({ name: failure.name, message: "no" });
    expect(isWaymarkError(error, "SCHEMA")).toBe(false);
  });

  test("counts a failure without a State as the first attempt", () => {
    const state = { runId: "r", checkpointNode: "", step: 0, data: {} };
    const error = new ExecutionError("NODE_FAILED", "no", { nodeName: "a", state, path: [] });
    const tries = { maxAttempts: 2, backoff: 10 };
    const run = { why: undefined, isLost: false };
    expect(classifyFailure(error, run, tries)).toMatchObject({ kind: "failed", error });
    expect(classifyFailure(error, run, { ...tries, maxAttempts: 1 })).toEqual({
      kind: "failed",
      error,
    });
  });

  test("is absent if another worker has the run, even if it was cancelled before", () => {
    const run = new ActiveRun("r", "g", "r");
    run.stop("cancel", new Error("enough"));
    const tries = { maxAttempts: 1, backoff: 10 };
    expect(classifyFailure(new Error(), run, tries)).toEqual({ kind: "cancelled" });
    const conflict = new CheckpointConflictError("r", 1, 2);
    expect(classifyFailure(conflict, run, tries)).toEqual({ kind: "elsewhere" });
    run.stop("lost", new Error("gone"));
    expect(run.why).toBe("cancel");
    expect(classifyFailure(new Error(), run, tries)).toEqual({ kind: "lost" });
    expect(classifyFailure(conflict, run, tries)).toEqual({ kind: "lost" });
  });
});

describe("a lease", () => {
  test("that is lost fences only its run's saves", async () => {
    const store = new MemoryStore();
    const run = new ActiveRun("r", "g", "r");
    const behind = fenced(store, new Map([["r", run]]));
    const saved = await behind.save(State.create({ n: 1 }, { runId: "r" }));
    run.stop("lost", new Error("gone"));
    const refused = behind.save(saved.set("n", 2));
    await expect(refused).rejects.toBeInstanceOf(CheckpointConflictError);
    await behind.save(State.create({ n: 1 }, { runId: "another" }));
    expect((await store.load<{ n: number }>("r")).data.n).toBe(1);
    expect(await behind.list()).toEqual(["r", "another"]);
    expect(await behind.history?.("r")).toHaveLength(1);
    await behind.delete("another");
    expect(await store.list()).toEqual(["r"]);
  });

  test.each([200, 1000, 30_000])("of %i ms ends claims before locks", (lease) => {
    const { claim, lock, renew, check } = leaseTimes(lease);
    // A lock that was about to be renewed when its worker died, and a claim that just had been.
    expect(claim).toBeLessThanOrEqual(lock - renew);
    expect(lock + 2 * check).toBeLessThan(1.25 * lease);
  });
});

describe("health", () => {
  const store = new MemoryStore();
  const of = { store, isClosing: false, running: 0, lastError: new Error("no answer") };
  const graphWorker = (isPaused: () => Promise<boolean>) =>
    ({ graph: { name: "g" }, queue: { isPaused }, worker: { isRunning: () => true } }) as never;

  test("is bad if the queue does not answer", async () => {
    const silent = graphWorker(() => new Promise(() => {}));
    const cut = {
      ok: false,
      state: "cut-off",
      silent: { queues: ["g"], store: false },
      running: 0,
      lastError: "no answer",
    };
    const clock = useFakeClock();
    const asked = health({ ...of, graphWorkers: [silent] });
    await clock.advance(2000);
    clock.restore();
    expect(await asked).toEqual(cut);
    expect(
      await health({ ...of, graphWorkers: [graphWorker(async () => Promise.reject(new Error()))] }),
    ).toEqual(cut);
  });
});

describe("many workers on Postgres", () => {
  test("renew the lock of each job in a separate statement", async () => {
    const renewed: string[][] = [];
    const backend = {
      extendLock: async (...args: [string, string, number]) => {
        renewed.push(args.map(String));
        return args[0] === "b" ? 0 : 1;
      },
      extendLocks: async (): Promise<string[]> => Promise.reject(new Error("several rows")),
    };
    renewOneByOne(backend);
    expect(await (backend as Locks).extendLocks(["a", "b"], ["x", "y"], 9)).toEqual(["b"]);
    expect(renewed).toEqual([
      ["a", "x", "9"],
      ["b", "y", "9"],
    ]);
  });

  test("back off each time they wake without a job, until they get one", async () => {
    const clock = useFakeClock();
    let job: object | null = null;
    let marker: object | null = { score: 0 };
    const backend = {
      moveToActive: async () => [job, "", 0, 0],
      waitForJob: async () => marker,
    } as unknown as Waiting;
    backOffIdleWakeups(backend);
    /** Listens and asks once; whether it rests for `ms` first. */
    const restsFor = async (ms: number): Promise<boolean> => {
      const waiting = backend.waitForJob(5);
      const isResting = clock.waiting === 1;
      await clock.advance(Math.max(ms / 2 - 1, 0));
      const isStill = clock.waiting === 1;
      await clock.advance(ms / 2 + 1);
      await waiting;
      await backend.moveToActive("token");
      return isResting && isStill;
    };
    try {
      expect(await restsFor(1)).toBe(false);
      expect(await restsFor(2)).toBe(false);
      for (const ms of [4, 8, 16, 32, 64, 128, 256, 512, 1000, 1000]) {
        expect(await restsFor(ms)).toBe(true);
      }
      // Nobody woke it: it came to look by itself.
      marker = null;
      expect(await restsFor(1000)).toBe(true);
      expect(await restsFor(1000)).toBe(true);
      job = {};
      expect(await restsFor(1000)).toBe(true);
      expect(await restsFor(4)).toBe(false);
    } finally {
      clock.restore();
    }
  });
});

type Locks = Parameters<typeof renewOneByOne>[0];
type Waiting = Parameters<typeof backOffIdleWakeups>[0];

test("a wait for a cancellation repeats the request before it expires", async () => {
  const clock = useFakeClock();
  const said: string[] = [];
  const queue = {
    add: async () => said.push("add"),
    remove: async () => said.push("remove"),
  };
  const { ask, takeBack } = new Cancellations({ queue: () => queue } as never).request("q", "r");
  try {
    await ask();
    await clock.advance(20_000);
    await ask();
    expect(said).toEqual(["add"]);
    await clock.advance(20_000);
    await ask();
    expect(said).toEqual(["add", "remove", "add"]);
    await takeBack();
    await takeBack();
    expect(said).toEqual(["add", "remove", "add", "remove"]);
  } finally {
    clock.restore();
  }
});

test("a worker that can't read cancel requests reports it and retries", async () => {
  vi.useFakeTimers();
  const getWaiting = vi.fn(async () => Promise.reject(new Error("no answer")));
  const cancellations = new Cancellations({ queue: () => ({ getWaiting }) } as never);
  const errors: unknown[] = [];
  const active = new Map<string, ActiveRun>();
  const stop = cancellations.watch(active, (error) => errors.push(error));
  try {
    await vi.advanceTimersByTimeAsync(1000);
    expect(getWaiting).not.toHaveBeenCalled();
    active.set("r", new ActiveRun("r", "g", "r"));
    await vi.advanceTimersByTimeAsync(1000);
    expect(errors).toEqual([new Error("no answer"), new Error("no answer")]);
  } finally {
    stop();
    vi.useRealTimers();
  }
});

test("the queue is read only while there are listeners", async () => {
  vi.useFakeTimers();
  const events = { on: () => {}, waitUntilReady: async () => {} };
  const bounds = { statementTimeout: 30_000, retryFor: 0 };
  const engine = { bounds, events: vi.fn(() => events), closeEvents: vi.fn(async () => {}) };
  const listener = new Listener(engine as never, "q");
  try {
    const stop = await listener.listen("r", () => {});
    const stopAnother = await listener.listen("another", () => {});
    stop();
    vi.advanceTimersByTime(5000);
    expect(engine.closeEvents).not.toHaveBeenCalled();
    stopAnother();
    // Somebody comes while it is still read.
    (await listener.listen("r", () => {}))();
    vi.advanceTimersByTime(5000);
    expect(engine.events).toHaveBeenCalledTimes(1);
    expect(engine.closeEvents.mock.calls).toEqual([[events]]);
    await listener.listen("r", () => {});
    expect(engine.events).toHaveBeenCalledTimes(2);
  } finally {
    vi.useRealTimers();
  }
});

/** Stands in for BullMQ on Redis, and remembers what it was made with. */
function fakeBullMQ() {
  const made: unknown[][] = [];
  class Fake {
    constructor(...args: unknown[]) {
      made.push(args);
    }
    on(): void {}
    async add(): Promise<{ id: string }> {
      return { id: "r" };
    }
    async close(): Promise<void> {}
  }
  const withBackend = () => ({ Queue: Fake });
  return { made, bullmq: { createRedisBackend: () => {}, withBackend } };
}

test("on Redis, BullMQ gets the address and the prefix", async () => {
  const { made, bullmq } = fakeBullMQ();
  const connection = { url: "redis://host:7/1", prefix: "mine", driver: { db: 3 } };
  const client = new Client({ connection, store: new MemoryStore() }, async (name) =>
    name === "bullmq" ? bullmq : {},
  );
  expect((await client.submit("g", {}, { runId: "r" })).runId).toBe("r");
  const options = {
    connection: { db: 3, url: "redis://host:7/1", maxRetriesPerRequest: null },
    prefix: "mine",
  };
  expect(made).toEqual([
    ["waymark.cancel", options],
    ["waymark-g", options],
  ]);
  await client.close();
});
