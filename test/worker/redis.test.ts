import { fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { Redis } from "ioredis";
import { describe, expect, test } from "vitest";
import { ExecutionError, pause, StateGraph } from "waymark";
import { RedisStore } from "waymark/stores/redis";
import { Client, Worker } from "waymark/worker";
import { bundle, removeBundle } from "../crash/bundle.js";
import { rejection } from "../graphs.js";
import { startRedis, withRedis } from "../stores/redis/server.js";
import { type Count, gate, single, usePlace } from "./place.js";
import { until } from "./world.js";

withRedis("workers on Redis", () => {
  describe("with the queue on Redis", onRedis);
  test("queue and checkpoints on one Redis: runs start, pause and complete", redisAlone);
  test(
    "queue and checkpoints on one Redis: another worker completes a killed worker's run",
    killed,
  );
});

async function redisAlone(): Promise<void> {
  const redis = await startRedis();
  const store = new RedisStore({ url: redis.url });
  const graph = new StateGraph<Count>({ name: "alone" })
    .addNode("add", (state) => ({ n: state.data.n + 1 }))
    .addNode("ask", (state) => pause(state, { reason: "ask", ask: "n?", into: "n" }))
    .addEdge("add", "ask")
    .setEntryPoint("add")
    .setExitPoint("ask");
  const onError = (): void => {};
  const common = { connection: redis.url, store, onError };
  const client = new Client(common);
  const workers = [1, 2].map(() => new Worker({ ...common, graphs: [graph], lease: 10_000 }));
  try {
    await Promise.all(workers.map((worker) => worker.ready()));
    const submit = (_: unknown, n: number) => client.submit<Count>("alone", { n });
    const runs = await Promise.all(Array.from({ length: 10 }, submit));
    for (const [n, run] of runs.entries()) {
      await until("it is paused", async () => (await run.status()).state === "paused");
      expect((await store.load<Count>(run.runId)).data.n).toBe(n + 1);
      await run.resume(100 + n);
      expect((await run.result()).data.n).toBe(100 + n);
    }
    expect(await store.runs({ status: "completed", graph: "alone" })).toHaveLength(10);
  } finally {
    await Promise.all(workers.map((worker) => worker.close()));
    await client.close();
    await store.close();
    await redis.stop();
  }
}

function onRedis(): void {
  const place = usePlace(startRedis);

  test("a run keeps its id and the types of its data", async () => {
    const data = { when: new Date(5), big: 7n, nul: "a\u0000b", list: new Map([["k", 1]]) };
    const graph = new StateGraph<typeof data>({ name: "types" })
      .addNode("same", (state) => state)
      .setEntryPoint("same")
      .setExitPoint("same");
    await place.work({ graphs: [graph] });
    for (const runId of ["a:b:c", "17", "ünï cödé ☃"]) {
      const run = await place.client.submit("types", data, { runId });
      expect(run.runId).toBe(runId);
      expect((await run.result()).data).toEqual(data);
    }
  });

  test("a run is not queued twice, nor beside one with the same deduplicate", async () => {
    let begun = 0;
    const graph = single((state) => {
      begun++;
      return state;
    });
    const options = { runId: "only once", deduplicate: "x" };
    const first = await place.client.submit(graph.name, { n: 0 }, options);
    await place.client.submit(graph.name, { n: 1 }, { runId: "only once" });
    const same = await place.client.submit(graph.name, { n: 2 }, { deduplicate: "x" });
    expect(same.runId).toBe(first.runId);
    await place.work({ graphs: [graph] });
    expect((await first.result()).data.n).toBe(0);
    expect(begun).toBe(1);
  });

  test("delays and priorities are respected", async () => {
    const order: number[] = [];
    let last = 0;
    const graph = single((state) => {
      order.push(state.data.n);
      last = Date.now();
      return state;
    });
    const start = Date.now();
    const runs = [
      await place.client.submit(graph.name, { n: 4 }, { delay: 500, priority: 30 }),
      await place.client.submit(graph.name, { n: 3 }, { priority: 20 }),
      await place.client.submit(graph.name, { n: 2 }, { priority: 10 }),
      await place.client.submit(graph.name, { n: 1 }),
    ];
    await place.work({ graphs: [graph], concurrency: 1 });
    await Promise.all(runs.map((run) => run.result()));
    expect(order).toEqual([1, 2, 3, 4]);
    expect(last - start).toBeGreaterThanOrEqual(500);
  });

  test("a pause and a sleep occupy no worker, and input queues the run again", async () => {
    const graph = new StateGraph<Count>({ name: "waits" })
      .addNode("ask", (state) => pause(state, { reason: "ask", ask: "n?", into: "n" }))
      .addNode("nap", async (state, ctx) => {
        await ctx.sleep("nap", 300);
        return { n: state.data.n + 1 };
      })
      .addEdge("ask", "nap")
      .setEntryPoint("ask")
      .setExitPoint("nap");
    const worker = await place.work({ graphs: [graph], longestWait: 50 });
    const run = await place.client.submit("waits", { n: 0 });
    await until("it is paused", async () => (await run.status()).state === "paused");
    expect((await worker.metrics()).running).toBe(0);
    await run.resume(6);
    await until("it sleeps", async () => (await run.status()).state === "delayed");
    expect((await worker.metrics()).queues.waits).toMatchObject({ active: 0, delayed: 1 });
    expect((await run.result()).data.n).toBe(7);
  });

  test("a failing run is retried, and then listed with its error", async () => {
    let tries = 0;
    const graph = single(() => {
      tries++;
      throw new TypeError("no luck");
    });
    const worker = await place.work({ graphs: [graph], maxAttempts: 2 });
    const run = await place.client.submit(graph.name, { n: 0 });
    const error = await rejection(run.result(), ExecutionError);
    expect(error.cause).toMatchObject({ name: "TypeError", message: "no luck" });
    expect(tries).toBe(2);
    expect(await place.client.failed(graph.name)).toMatchObject([
      { runId: run.runId, error: 'node "only" failed: no luck' },
    ]);
    await until("it is counted", async () => (await worker.metrics()).failed === 1);
    await run.resume();
    await rejection(run.result(), ExecutionError);
    expect(tries).toBe(3);
  });

  test("a run is cancelled in the queue and in its node, and emits events", async () => {
    const types: string[] = [];
    const heard = gate();
    const graph = single(async (state, ctx) => {
      // Again and again, for nobody knows when the reader has begun to listen.
      for (; !ctx.signal.aborted; await wait(20)) {
        ctx.progress({ title: "waits", summary: "on" });
        if (types.includes("progress")) heard.open();
      }
      ctx.signal.throwIfAborted();
      return state;
    });
    const waiting = await place.client.submit(graph.name, { n: 0 });
    expect(await waiting.cancel()).toBe(true);
    const run = await place.client.submit(graph.name, { n: 0 });
    const reading = (async () => {
      for await (const { type } of run.events()) types.push(type);
    })();
    await place.work({ graphs: [graph], events: ["progress"] });
    await heard.opened;
    expect(await run.cancel()).toBe(true);
    await reading;
    expect((await run.status()).state).toBe("cancelled");
    expect(types.at(-1)).toBe("run.cancelled");
  });

  test("a schedule starts runs until it is removed", async () => {
    const graph = single((state) => ({ n: state.data.n + 1 }));
    await place.work({ graphs: [graph] });
    await place.client.schedule(graph.name, { n: 1 }, { id: "often", every: 100 });
    const runs = () => place.store.runs({ graph: graph.name, status: "completed" });
    await until("it ran twice", async () => (await runs()).length > 1);
    expect((await runs())[0]?.runId).toMatch(/^repeat:often:\d+$/);
    expect(await place.client.unschedule(graph.name, "often")).toBe(true);
  });

  test("concurrent runs of a graph are limited across all workers", async () => {
    let now = 0;
    let most = 0;
    const graph = single(async (state) => {
      most = Math.max(most, ++now);
      // However long the next one takes to come.
      while (most < 2) await wait(5);
      await wait(20);
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

  test("a closing worker hands its run over at once", async () => {
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
    const closing = first.close();
    await place.work({ graphs: [make("two")], lease: 60_000 });
    finish.open();
    await closing;
    await run.result();
    expect(by).toEqual(["one", "two"]);
  });
}

async function killed(): Promise<void> {
  const fixtures = join(import.meta.dirname, "fixtures");
  const external = ["bullmq", "ioredis", "redis", "pg"];
  const [redis, built] = await Promise.all([
    startRedis(),
    bundle("redis-worker", fixtures, external),
  ]);
  const store = new RedisStore({ url: redis.url });
  const client = new Client({ connection: redis.url, store, onError: () => {} });
  const admin = new Redis(redis.url);
  const workers = [1, 2].map(() => fork(built.script, [redis.url, "3000"]));
  try {
    await Promise.all(workers.map((worker) => once(worker, "message")));
    const run = await client.submit<{ pids: number[] }>("held", { pids: [] });
    const pids = async (node: string): Promise<number[]> =>
      (await admin.lrange(`executed:${node}`, 0, -1)).map(Number);
    await until("the node runs", async () => (await pids("hold")).length > 0);
    const [dead] = await pids("hold");
    const victim = workers.find(({ pid }) => pid === dead);
    const other = workers.find(({ pid }) => pid !== dead);
    victim?.kill("SIGKILL");
    await until("another has it", async () => (await pids("hold")).length > 1);
    await admin.set("released", "1");
    expect((await run.result()).data.pids).toEqual([dead, other?.pid]);
    // What was acknowledged before the kill is not done again.
    expect(await pids("first")).toEqual([dead]);
    expect(await pids("hold")).toEqual([dead, other?.pid]);
    expect(await store.runs({ graph: "held" })).toMatchObject([
      { runId: run.runId, status: "completed" },
    ]);
  } finally {
    for (const worker of workers) worker.kill("SIGKILL");
    admin.disconnect();
    await client.close();
    await store.close();
    await redis.stop();
    removeBundle(built);
  }
}
