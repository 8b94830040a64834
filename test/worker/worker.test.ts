import { setTimeout as wait } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import {
  CheckpointNotFoundError,
  ExecutionError,
  FatalError,
  GraphError,
  MigrationError,
  pause,
  RetryableError,
  State,
  StateGraph,
} from "waymark";
import { toPrometheus, Worker } from "waymark/worker";
import { rejection } from "../graphs.js";
import { type Count, gate, single, usePlace } from "./place.js";
import { until } from "./world.js";

const place = usePlace();

describe("a failing run", () => {
  test("is retried up to maxAttempts, and then listed with its error", async () => {
    let tries = 0;
    const graph = single(() => {
      tries++;
      throw new TypeError("no luck");
    });
    await place.work({ graphs: [graph], maxAttempts: 3 });
    const run = await place.client.submit(graph.name, { n: 0 });
    const error = await rejection(run.result(), ExecutionError);
    expect(error).toMatchObject({ code: "NODE_FAILED", nodeName: "only" });
    expect(error.cause).toMatchObject({ name: "TypeError", message: "no luck" });
    expect(tries).toBe(3);
    expect(await place.client.failed(graph.name)).toMatchObject([
      { runId: run.runId, error: 'node "only" failed: no luck', starts: 3 },
    ]);
    expect(await run.status()).toMatchObject({ state: "failed", error: "no luck" });
    // One more try, when somebody asks for it.
    await run.resume();
    await rejection(run.result(), ExecutionError);
    expect(tries).toBe(4);
  });

  test("ends even if the database can't keep its message", async () => {
    let tries = 0;
    const graph = single(() => {
      tries++;
      throw new Error("a\0b\ud800c");
    });
    await place.work({ graphs: [graph], maxAttempts: 2 });
    const run = await place.client.submit(graph.name, { n: 0 });
    const error = await rejection(run.result(), ExecutionError);
    expect(error.message).toBe('node "only" failed: a\ufffdb\ufffdc');
    // The checkpoint has it as it was.
    expect(error.cause).toMatchObject({ message: "a\0b\ud800c" });
    expect(tries).toBe(2);
  });

  test("fails if its checkpoints were removed before it could continue", async () => {
    const graph = single((state) => pause(state, { reason: "wait" }));
    const worker = await place.work({ graphs: [graph] });
    const run = await place.client.submit(graph.name, { n: 0 });
    await until("it is paused", async () => (await run.status()).state === "paused");
    await run.cancel();
    await worker.close();
    await run.resume();
    await place.store.delete(run.runId);
    await place.work({ graphs: [graph] });
    const error = await rejection(run.result(), CheckpointNotFoundError);
    expect(error.code).toBe("CHECKPOINT_NOT_FOUND");
    expect(error.message).toContain(run.runId);
  });

  test("counts attempts from zero after progress", async () => {
    const failures = new Map<number, number>();
    const graph = new StateGraph<Count>({ name: "further" })
      .addNode("step", (state, ctx) => {
        const before = failures.get(ctx.step) ?? 0;
        failures.set(ctx.step, before + 1);
        if (before < 2) throw new Error("not yet");
        return { n: state.data.n + 1 };
      })
      .addNode("end", (state) => state)
      .addEdge("step", "step", (state) => state.data.n < 3)
      .addEdge("step", "end")
      .setEntryPoint("step")
      .setExitPoint("end");
    await place.work({ graphs: [graph], maxAttempts: 3 });
    const run = await place.client.submit("further", { n: 0 });
    expect((await run.result()).data.n).toBe(3);
    expect([...failures.values()]).toEqual([3, 3, 3]);
  });

  test("is retried at the time its error names", async () => {
    let tries = 0;
    const graph = single(() => {
      if (tries++ === 0) throw new RetryableError("soon", { retryAfter: 30 });
      return { n: tries };
    });
    await place.work({ graphs: [graph], backoff: 60_000 });
    const run = await place.client.submit(graph.name, { n: 0 });
    expect((await run.result()).data.n).toBe(2);
  });

  test.each([
    ["a FatalError", () => new FatalError("never"), "NODE_FAILED", "never"],
    ["what can't be saved", () => ({ n: Symbol("n") }), "NODE_FAILED", "data.n"],
    ["a result that is none", () => 7, "NODE_RESULT", "must return a State"],
  ])("is not retried for %s", async (_what, make, code, message) => {
    let tries = 0;
    const graph = single(() => {
      tries++;
      const made: unknown = make();
      if (made instanceof Error) throw made;
      return made as Count;
    });
    await place.work({ graphs: [graph] });
    const run = await place.client.submit(graph.name, { n: 0 });
    const error = await rejection(run.result(), ExecutionError);
    expect(error.code).toBe(code);
    expect(error.message).toContain(message);
    expect(tries).toBe(1);
  });

  test("fails at once with maxAttempts 1", async () => {
    let tries = 0;
    const graph = single(() => {
      tries++;
      throw new Error("once");
    });
    await place.work({ graphs: [graph], maxAttempts: 1 });
    await rejection((await place.client.submit(graph.name, { n: 0 })).result(), ExecutionError);
    expect(tries).toBe(1);
  });

  test("fails with its graph's error if a checkpoint does not fit", async () => {
    const runId = "does not fit";
    await State.create({ n: 0 }, { runId }).setCheckpointNode("gone").checkpoint(place.store);
    const graph = single((state) => state);
    await place.work({ graphs: [graph] });
    const run = await place.client.submit(graph.name, { n: 0 }, { runId });
    const error = await rejection(run.result(), GraphError);
    expect(error.code).toBe("GRAPH_NODE_UNKNOWN");
  });
});

describe("versions", () => {
  const versioned = (version: number, migrations = {}) =>
    new StateGraph<Count>({ name: "versions", version, migrations })
      .addNode("wait", (state) => pause(state, { reason: "wait" }))
      .addNode("end", (state) => ({ n: state.data.n + 1 }))
      .addEdge("wait", "end")
      .setEntryPoint("wait")
      .setExitPoint("end");

  test("an older checkpoint is migrated, and a newer one left alone", async () => {
    const old = await place.work({ graphs: [versioned(1)] });
    const run = await place.client.submit("versions", { n: 0 });
    await until("it is paused", async () => (await run.status()).state === "paused");
    await old.close();
    const migrations = { 1: (data: object) => ({ ...data, n: 10 }) };
    const newer = await place.work({ graphs: [versioned(2, migrations)] });
    await run.resume();
    expect((await run.result()).data.n).toBe(11);

    const next = await place.client.submit("versions", { n: 0 });
    await until("it is paused", async () => (await next.status()).state === "paused");
    await newer.close();
    const older = await place.work({ graphs: [versioned(1)] });
    const before = await place.starts(next.runId);
    await next.resume();
    await until(
      "the older one has looked at it",
      async () => (await place.starts(next.runId)) > before,
    );
    await older.close();
    const { graph, status } = await place.store.load(next.runId);
    expect([graph?.version, status]).toEqual([2, "paused"]);
    await place.work({ graphs: [versioned(2, migrations)] });
    expect((await next.result()).data.n).toBe(1);
  });

  test("a run submitted for a newer one waits for it", async () => {
    const older = await place.work({ graphs: [versioned(1)] });
    const run = await place.client.submit("versions", { n: 0 }, { version: 2 });
    await until("the older one has looked at it", async () => (await place.starts(run.runId)) > 0);
    await older.close();
    expect(await run.status()).toMatchObject({ state: "delayed", step: 0 });
    await place.work({ graphs: [versioned(2)] });
    await until("it is paused", async () => (await run.status()).state === "paused");
    await run.cancel();
  });

  test("an older checkpoint without a migration fails permanently", async () => {
    const old = await place.work({ graphs: [versioned(1)] });
    const run = await place.client.submit("versions", { n: 0 });
    await until("it is paused", async () => (await run.status()).state === "paused");
    await old.close();
    await place.work({ graphs: [versioned(3)] });
    await run.resume();
    const error = await rejection(run.result(), MigrationError);
    expect(error).toMatchObject({ code: "MIGRATION", from: 1, to: 3 });
  });
});

describe("limits", () => {
  test("bound the concurrent runs of a graph across all workers", async () => {
    let now = 0;
    let most = 0;
    const graph = single(async (state) => {
      most = Math.max(most, ++now);
      // However long the next one takes to come.
      while (most < 2) await wait(5);
      await wait(40);
      now--;
      return state;
    });
    const limits = { [graph.name]: { concurrency: 2 } };
    await place.work({ graphs: [graph], limits });
    await place.work({ graphs: [graph] });
    const runs = await Promise.all(
      Array.from({ length: 8 }, () => place.client.submit(graph.name, { n: 0 })),
    );
    await Promise.all(runs.map((run) => run.result()));
    expect(most).toBe(2);
  });

  test("are removed by Infinity", async () => {
    const graph = single((state) => state);
    const queued = `SELECT field FROM bullmq.meta WHERE queue = 'waymark-' || $1 AND field = ANY($2)`;
    const fields = async (): Promise<number> =>
      (
        await place.pool.query(queued, [
          encodeURIComponent(graph.name),
          ["concurrency", "max", "duration"],
        ])
      ).rows.length;
    const limits = { concurrency: 1, rate: { max: 1, duration: 60_000 } };
    const first = await place.work({ graphs: [graph], limits: { [graph.name]: limits } });
    expect(await fields()).toBe(3);
    await first.close();
    const none = { concurrency: Infinity, rate: { max: Infinity, duration: 1 } };
    await place.work({ graphs: [graph], limits: { [graph.name]: none } });
    expect(await fields()).toBe(0);
  });

  test("bound how many runs start in an interval", async () => {
    const began: number[] = [];
    const graph = single((state) => {
      began.push(Date.now());
      return state;
    });
    const runs = await Promise.all(
      Array.from({ length: 5 }, () => place.client.submit(graph.name, { n: 0 })),
    );
    const start = Date.now();
    const rate = { max: 2, duration: 300 };
    await place.work({ graphs: [graph], limits: { [graph.name]: { rate } } });
    await Promise.all(runs.map((run) => run.result()));
    const [, , third = 0, , fifth = 0] = began.map((at) => at - start);
    expect(third).toBeGreaterThanOrEqual(300);
    expect(fifth).toBeGreaterThanOrEqual(600);
  });
});

describe("a closing worker", () => {
  test("lets its node finish, and another worker continues at once", async () => {
    const inside = gate();
    const finish = gate();
    const by: string[] = [];
    const make = (who: string) =>
      new StateGraph<Count>({ name: "relay" })
        .addNode("first", async (state) => {
          by.push(who);
          inside.open();
          await finish.opened;
          return state;
        })
        .addNode("second", (state) => {
          by.push(who);
          return state;
        })
        .addEdge("first", "second")
        .setEntryPoint("first")
        .setExitPoint("second");
    const first = await place.work({ graphs: [make("one")], lease: 60_000 });
    const run = await place.client.submit("relay", { n: 0 });
    await inside.opened;
    expect((await first.metrics()).leaseAgeMs).toBeGreaterThanOrEqual(0);
    const closing = first.close();
    expect(await first.health()).toMatchObject({ ok: false, state: "draining", running: 1 });
    await place.work({ graphs: [make("two")], lease: 60_000 });
    finish.open();
    await closing;
    await run.result();
    expect(by).toEqual(["one", "two"]);
  });

  test("aborts the signal of a slow node, whose run continues elsewhere", async () => {
    const inside = gate();
    let stopped = false;
    const graph = single(async (state, ctx) => {
      if (stopped) return { n: 1 };
      inside.open();
      await wait(20_000, undefined, { signal: ctx.signal }).catch((error: unknown) => {
        stopped = true;
        throw error;
      });
      return state;
    });
    const first = await place.work({ graphs: [graph], lease: 60_000 });
    const run = await place.client.submit(graph.name, { n: 0 });
    await inside.opened;
    await first.close({ timeout: 50 });
    expect(stopped).toBe(true);
    await place.work({ graphs: [graph] });
    expect((await run.result()).data.n).toBe(1);
  });
});

test("a worker with many concurrent runs causes no warnings", async () => {
  const warnings: Error[] = [];
  const warn = (warning: Error): void => void warnings.push(warning);
  process.on("warning", warn);
  const all = gate();
  let begun = 0;
  const graph = single(async (state) => {
    if (++begun === 15) all.open();
    await all.opened;
    return state;
  });
  await place.work({ graphs: [graph], concurrency: 15 });
  const submitted = Array.from({ length: 15 }, () => place.client.submit(graph.name, { n: 0 }));
  await Promise.all((await Promise.all(submitted)).map((run) => run.result()));
  process.off("warning", warn);
  expect(warnings).toEqual([]);
});

test("health reports the worker's state and its running runs", async () => {
  const graph = single((state) => state);
  const worker = new Worker({ graphs: [graph], store: place.store, connection: place.url });
  expect(await worker.health()).toMatchObject({ ok: false, state: "starting" });
  await worker.ready();
  await until("it works", async () => (await worker.health()).ok);
  expect(await worker.health()).toEqual({ ok: true, state: "working", running: 0 });
  await (await place.client.submit(graph.name, { n: 0 })).result();
  await until("it has counted", async () => (await worker.metrics()).completed === 1);
  const metrics = await worker.metrics();
  expect(metrics).toMatchObject({
    running: 0,
    leaseAgeMs: 0,
    takeovers: 0,
    completed: 1,
    failed: 0,
  });
  const text = toPrometheus(metrics);
  expect(text).toContain(`waymark_queue_runs{graph="${graph.name}",state="waiting"} 0`);
  expect(text).toContain("waymark_worker_completed_total 1");
  await worker.close();
  await worker.close();
  // Its queues are out of reach now.
  expect(await worker.metrics()).toMatchObject({ queues: {}, completed: 1 });
});

test("a changed graph on a worker names what has changed", async () => {
  const version = (...nodes: string[]) => {
    const graph = new StateGraph<Count, string>({ name: "changed", onMismatch: "error" });
    for (const node of nodes) {
      graph.addNode(node, async (state, ctx) => {
        if (node === "ask") await ctx.pause("wait", { reason: "wait" });
        return { n: state.data.n + 1 };
      });
    }
    for (const [at, to] of nodes.slice(1).entries()) graph.addEdge(nodes[at] ?? "", to);
    return graph.setEntryPoint("ask").setExitPoint(nodes.at(-1) ?? "");
  };
  const worker = await place.work({ graphs: [version("ask", "done")] });
  const run = await place.client.submit("changed", { n: 0 });
  await until("it is paused", async () => (await run.status()).state === "paused");
  await worker.close();
  const { graph } = await place.store.load(run.runId);
  const { nodes } = (await place.store.topology(graph?.fingerprint ?? "")) ?? {};
  expect(nodes?.map(({ name }) => name)).toEqual(["ask", "done"]);
  await place.work({ graphs: [version("ask", "check", "done")] });
  await run.resume({ input: true });
  await expect(run.result()).rejects.toThrow('added "check"; rewired "ask"');
});
