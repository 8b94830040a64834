import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import {
  type AnyEvent,
  CheckpointNotFoundError,
  ConfigError,
  ExecutionError,
  MemoryStore,
  pause,
  SerializationError,
  StateGraph,
} from "waymark";
import { eventLog } from "waymark/observers/event-log";
import { Client, type QueuedRun } from "waymark/worker";
import { forkRun } from "../../src/checkpoint/fork.js";
import { changeRun, toAnswer, withAnswer } from "../../src/run/pauses/pauses.js";
import { nameAndVersion } from "../../src/worker/submission.js";
import { rejection } from "../graphs.js";
import { type Count, gate, single, usePlace } from "./place.js";
import { until } from "./world.js";

const place = usePlace();

describe("submit", () => {
  test.each(["a:b", "a:b:c", "17", "-3", "~x", "100%:", "ünï cödé ☃", "repeat:x:1"])(
    "starts a run with the id %j",
    async (runId) => {
      const graph = single((state, ctx) => ({ n: ctx.runId === runId ? 1 : state.data.n }));
      await place.work({ graphs: [graph] });
      const run = await place.client.submit(graph.name, { n: 0 }, { runId });
      expect(run.runId).toBe(runId);
      expect((await run.result()).data.n).toBe(1);
      expect((await (await place.client.run(graph, runId)).result()).data.n).toBe(1);
    },
  );

  test("keeps the types of the data", async () => {
    const data = {
      when: new Date(5),
      big: 7n,
      nul: "a\u0000b",
      list: new Map([["k", new Set([1])]]),
    };
    const graph = new StateGraph<typeof data>({ name: "types" })
      .addNode("same", (state) => state)
      .setEntryPoint("same")
      .setExitPoint("same");
    await place.work({ graphs: [graph] });
    const run = await place.client.submit("types", data);
    expect((await run.result()).data).toEqual(data);
  });

  test("accepts the graph itself: its name, version and type of data", async () => {
    const graph = new StateGraph<Count>({ name: "typed", version: 1 })
      .addNode("one", (state) => ({ n: state.data.n + 1 }))
      .setEntryPoint("one")
      .setExitPoint("one");
    expect(nameAndVersion(graph, undefined)).toEqual({ name: "typed", version: 1 });
    expect(nameAndVersion(graph, 3)).toEqual({ name: "typed", version: 3 });
    await place.work({ graphs: [graph] });
    const run = await place.client.submit(graph, { n: 1 });
    const { data, graph: identity } = await run.result();
    expect([data.n, identity?.version]).toEqual([2, 1]);
  });

  test("does not queue a run twice", async () => {
    let begun = 0;
    const inside = gate();
    const finish = gate();
    const graph = single(async (state) => {
      begun++;
      inside.open();
      await finish.opened;
      return { n: state.data.n + 1 };
    });
    await place.work({ graphs: [graph] });
    const options = { runId: "only once" };
    const [first, second] = await Promise.all([
      place.client.submit(graph.name, { n: 0 }, options),
      place.client.submit(graph.name, { n: 50 }, options),
    ]);
    await inside.opened;
    await place.client.submit(graph.name, { n: 70 }, options);
    finish.open();
    const final = await first.result();
    expect(await second.result()).toEqual(final);
    // A run that has ended is not begun again either.
    const late = await place.client.submit(graph.name, { n: 90 }, options);
    expect((await late.result()).data).toEqual(final.data);
    expect(begun).toBe(1);
  });

  test("returns the existing run for the same deduplicate", async () => {
    const graph = single((state) => state);
    const first = await place.client.submit(graph.name, { n: 0 }, { deduplicate: "x" });
    const same = await place.client.submit(graph.name, { n: 1 }, { deduplicate: "x" });
    expect(same.runId).toBe(first.runId);
    const ttl = { id: "x", ttl: 60_000 };
    expect((await place.client.submit(graph.name, { n: 1 }, { deduplicate: ttl })).runId).toBe(
      first.runId,
    );
    await place.work({ graphs: [graph] });
    await first.result();
    const next = await place.client.submit(graph.name, { n: 2 }, { deduplicate: "x" });
    expect(next.runId).not.toBe(first.runId);
    expect((await next.result()).data.n).toBe(2);
  });

  test("waits for the delay, and runs the more urgent first", async () => {
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
    expect((await runs[0]?.status())?.state).toBe("delayed");
    expect((await runs[1]?.status())?.state).toBe("waiting");
    await place.work({ graphs: [graph], concurrency: 1 });
    await Promise.all(runs.map((run) => run.result()));
    expect(order).toEqual([1, 2, 3, 4]);
    expect(last - start).toBeGreaterThanOrEqual(500);
  });

  test.each([
    [{ runId: "" }, "runId"],
    [{ delay: -1 }, "options.delay"],
    [{ delay: Infinity }, "options.delay"],
    [{ priority: 0 }, "options.priority"],
    [{ priority: 2 ** 21 }, "options.priority"],
    [{ deduplicate: "" }, "options.deduplicate"],
    [{ deduplicate: "\0" }, "options.deduplicate"],
    [{ deduplicate: { id: "\ud800" } }, "options.deduplicate.id"],
    [{ deduplicate: { ttl: 5 } }, "options.deduplicate.id"],
    [{ version: 1.5 }, "options.version"],
    [{ prioriti: 1 }, "options.prioriti"],
  ])("refuses %j", async (options, option) => {
    const error = await rejection(place.client.submit("x", {}, options as object), ConfigError);
    expect(error.option).toBe(option);
  });

  test("accepts the least urgent priority, and a fraction of a millisecond", async () => {
    const options = { priority: 2 ** 21 - 1, delay: 0.5 };
    const run = await place.client.submit("least urgent", { n: 0 }, options);
    expect((await run.status()).state).toBe("delayed");
    expect(await place.client.failed("least urgent", Number.MAX_SAFE_INTEGER)).toEqual([]);
    await run.cancel();
  });

  test("has saved the run when it resolves, so that answers can be given before it starts", async () => {
    const graph = new StateGraph<Count>({ name: "early answer" })
      .addNode("ask", async (_state, ctx) => ({ n: Number(await ctx.pause("n", { reason: "n" })) }))
      .setEntryPoint("ask")
      .setExitPoint("ask");
    const run = await place.client.submit(graph, { n: 7 }, { version: 0 });
    const { status, data, reason, graph: identity } = await place.store.load<Count>(run.runId);
    expect([status, data.n, reason, identity?.name]).toEqual([
      "pending",
      7,
      "submit",
      "early answer",
    ]);
    await run.saved;
    await run.answer("n", 8);
    await place.work({ graphs: [graph] });
    expect((await run.result()).data.n).toBe(8);
  });

  test("saves no run that the queue has under the same deduplicate", async () => {
    const first = await place.client.submit("kept once", { n: 0 }, { deduplicate: "k" });
    await place.client.submit("kept once", { n: 1 }, { deduplicate: "k" });
    const runs = await place.store.runs({ graph: "kept once" });
    expect(runs.map(({ runId }) => runId)).toEqual([first.runId]);
    await first.cancel();
  });

  test("fails a run that is removed from the store before it starts", async () => {
    const graph = single((state) => state);
    const run = await place.client.submit(graph.name, { n: 0 });
    await place.store.delete(run.runId);
    await place.work({ graphs: [graph] });
    expect((await rejection(run.result(), CheckpointNotFoundError)).runId).toBe(run.runId);
    expect((await run.status()).state).toBe("failed");
  });

  test("refuses data that no checkpoint can hold", async () => {
    const error = await rejection(place.client.submit("x", { f: () => 1 }), SerializationError);
    expect(error.path).toBe("data.f");
  });
});

test("answers a pause of a run by its id, and a worker continues the run", async () => {
  const graph = new StateGraph<Count>({ name: "answered by id" })
    .addNode("ask", async (_state, ctx) => ({ n: Number(await ctx.pause("n", { reason: "n" })) }))
    .setEntryPoint("ask")
    .setExitPoint("ask");
  await place.work({ graphs: [graph] });
  const run = await place.client.submit(graph, { n: 7 });
  await until("it is paused", async () => (await run.status()).state === "paused");
  await place.client.answer(graph, run.runId, "n", 8);
  expect((await run.result()).data.n).toBe(8);
});

describe("cancel", () => {
  test("removes a run that has not started from the queue, and keeps it and its input", async () => {
    const graph = single((state) => ({ n: state.data.n + 1 }));
    const run = await place.client.submit(graph.name, { n: 4 });
    expect(await run.cancel()).toBe(true);
    expect((await run.status()).state).toBe("cancelled");
    const result = await rejection(run.result(), ExecutionError);
    expect(result.code).toBe("ABORTED");
    expect(result.message).toContain("cancelled before it started");
    expect(await run.cancel()).toBe(true);
    await run.resume();
    expect((await run.status()).state).toBe("waiting");
    await place.work({ graphs: [graph] });
    expect((await run.result()).data.n).toBe(5);
  });

  test("does not make an unsubmitted run resumable", async () => {
    const run = await place.client.run("x", "never submitted");
    const error = await rejection(run.resume(), ConfigError);
    expect(error.message).toContain("neither in the queue nor in the store");
    expect((await rejection(run.result(), ExecutionError)).message).toContain("never submitted");
  });

  test("aborts the node of a run on a worker, which can be resumed", async () => {
    const inside = gate();
    let isStopped = false;
    const graph = single(async (_state, ctx) => {
      inside.open();
      if (!isStopped) {
        await wait(20_000, undefined, { signal: ctx.signal }).catch((error: unknown) => {
          isStopped = true;
          throw error;
        });
      }
      return { n: 5 };
    });
    await place.work({ graphs: [graph] });
    const run = await place.client.submit(graph.name, { n: 0 });
    const result = rejection(run.result(), ExecutionError);
    await inside.opened;
    expect((await run.status()).state).toBe("running");
    expect(await run.cancel()).toBe(true);
    expect(isStopped).toBe(true);
    expect((await result).code).toBe("ABORTED");
    expect((await run.status()).state).toBe("cancelled");
    await run.resume();
    expect((await run.result()).data.n).toBe(5);
    expect(await run.cancel()).toBe(false);
    await run.resume();
    expect((await run.status()).state).toBe("completed");
  });

  test("withdraws abandoned requests", async () => {
    const inside = gate();
    const finish = gate();
    const graph = single(async (state) => {
      inside.open();
      await finish.opened;
      return state;
    });
    await place.work({ graphs: [graph] });
    const run = await place.client.submit(graph.name, { n: 0 });
    await inside.opened;
    const { pool } = place;
    await pool.query(
      `INSERT INTO bullmq.job (queue, id, seq, name, state, added_at_ms) VALUES ('waymark.cancel', 'old', 0, 'cancel', 'waiting', 1)`,
    );
    const left = "SELECT 1 FROM bullmq.job WHERE queue = 'waymark.cancel'";
    await until("it is gone", async () => (await pool.query(left)).rows.length === 0);
    finish.open();
    await run.result();
  });
});

describe("resume", () => {
  test("accepts no input for a run that is not paused", async () => {
    const graph = single((state) => state);
    const run = await place.client.submit(graph.name, { n: 0 });
    const error = await rejection(run.resume(1), ConfigError);
    expect(error.message).toContain("is not begun yet");
    // Without input there is nothing to do for one that waits for a worker.
    await run.resume();
    await run.cancel();
  });

  test("queues a paused, cancelled run again with its input", async () => {
    const graph = new StateGraph<Count>({ name: "cancelled pause" })
      .addNode("ask", (state) => pause(state, { reason: "ask", ask: "n?", into: "n" }))
      .setEntryPoint("ask")
      .setExitPoint("ask");
    await place.work({ graphs: [graph] });
    const run = await place.client.submit("cancelled pause", { n: 0 });
    await until("it is paused", async () => (await run.status()).state === "paused");
    expect(await run.cancel()).toBe(true);
    await run.resume(3);
    expect((await run.result()).data.n).toBe(3);
  });
});

describe("reconcile", () => {
  test("refills a queue that lost its data, once", async () => {
    const graph = new StateGraph<Count>({ name: "refilled", version: 2 })
      .addNode("ask", async (state, ctx) => {
        if (state.data.n === 1) await ctx.pause("n", { reason: "n" });
        if (state.data.n === 2) await ctx.sleep("nap", 3_600_000);
        return { n: state.data.n + 10 };
      })
      .setEntryPoint("ask")
      .setExitPoint("ask");
    const { client, store, pool } = place;
    const worker = await place.work({ graphs: [graph] });
    const submit = (n: number, delay = 0) => client.submit("refilled", { n }, { delay });
    const paused = await submit(1);
    const asleep = await submit(2);
    const done = await submit(3);
    await done.result();
    await until("it is paused", async () => (await paused.status()).state === "paused");
    await until("it sleeps", async () => (await asleep.status()).state === "delayed");
    await worker.close();
    const waiting = await submit(4);
    const later = await submit(5, 3_600_000);
    const stopped = await submit(6);
    await stopped.cancel();
    await forkRun(store, paused.runId, {}, {});
    expect(await client.reconcile(graph)).toEqual([]);
    await pool.query("DELETE FROM bullmq.job WHERE queue LIKE 'waymark-refilled'");
    expect((await waiting.status()).state).toBe("cancelled");
    const ids = [paused, asleep, waiting, later].map(({ runId }) => runId).sort();
    expect((await client.reconcile("refilled")).sort()).toEqual(ids);
    expect(await client.reconcile("refilled")).toEqual([]);
    // The queue has lost that it was woken up for its answer.
    const answer = toAnswer("n", true);
    await changeRun(store, paused.runId, (state) => withAnswer(state, answer));
    expect(await client.reconcile("refilled")).toEqual([paused.runId]);
    await place.work({ graphs: [graph] });
    expect((await waiting.result()).data.n).toBe(14);
    expect((await later.status()).state).toBe("delayed");
    expect((await asleep.status()).state).toBe("delayed");
    expect((await stopped.status()).state).toBe("cancelled");
    expect((await paused.result()).data.n).toBe(11);
    await later.cancel();
    await asleep.cancel();
  });

  test("needs a store that lists its runs", async () => {
    const { save, load, delete: remove, list } = new MemoryStore();
    const store = { save, load, delete: remove, list };
    const client = new Client({ connection: place.connection, store });
    expect((await rejection(client.reconcile(), ConfigError)).option).toBe("options.store");
    await client.close();
  });
});

describe("schedules", () => {
  test("start runs repeatedly, until they are removed", async () => {
    const graph = single((state) => ({ n: state.data.n + 1 }));
    await place.work({ graphs: [graph] });
    await place.client.schedule(
      graph.name,
      { n: 1 },
      { id: "often", every: 200, limit: 3, version: 0 },
    );
    const runs = async () =>
      (await place.store.runs({ graph: graph.name, status: "completed" })).map(
        ({ runId }) => runId,
      );
    await until("it ran twice", async () => (await runs()).length > 1);
    expect((await runs())[0]).toMatch(/^repeat:often:\d+$/);
    const [runId = ""] = await runs();
    const run = await place.client.run<Count>(graph.name, runId);
    expect((await run.result()).data.n).toBe(2);
    await place.client.unschedule(graph.name, "often");
    await place.client.schedule(
      graph.name,
      { n: 1 },
      { id: "daily", cron: "0 3 * * *", timeZone: "UTC" },
    );
    expect(await place.client.unschedule(graph.name, "daily")).toBe(true);
    expect(await place.client.unschedule(graph.name, "daily")).toBe(false);
  });

  test("allow cancelling a paused run", async () => {
    const graph = new StateGraph<Count>({ name: "scheduled pause" })
      .addNode("ask", async (state, ctx) => {
        await ctx.pause("n", { reason: "ask", ask: "n?" });
        return state;
      })
      .setEntryPoint("ask")
      .setExitPoint("ask");
    await place.work({ graphs: [graph] });
    await place.client.schedule(
      "scheduled pause",
      { n: 1 },
      { id: "pauses", every: 100, limit: 1 },
    );
    const paused = async () => place.store.runs({ graph: "scheduled pause", status: "paused" });
    await until("it is paused", async () => (await paused()).length === 1);
    const [{ runId } = { runId: "" }] = await paused();
    const run = await place.client.run(graph.name, runId);
    await until("it is put down", async () => (await run.status()).state === "paused");
    expect(await run.cancel()).toBe(true);
    await place.client.unschedule(graph.name, "pauses");
  });

  test.each([
    [{ id: "a:b", every: 1 }, "options.id"],
    [{ id: "a\0", every: 1 }, "options.id"],
    [{ id: "a", cron: "now and then" }, "options.cron"],
    [{ id: "a", cron: "0 3 * * *", timeZone: "Mars/Olympus" }, "options.timeZone"],
    [{ id: "a", every: 1, timeZone: "UTC" }, "options.timeZone"],
    [{ id: "a" }, "options"],
    [{ id: "a", every: 1, cron: "* * * * *" }, "options"],
    [{ every: 1 }, "options.id"],
  ])("refuse %j", async (options, option) => {
    const given = options as { id: string };
    const error = await rejection(place.client.schedule("x", {}, given), ConfigError);
    expect(error.option).toBe(option);
  });
});

test("a schedule is removed by the name it was created with", async () => {
  for (const id of [undefined, "a:b", "a\0"] as string[]) {
    expect((await rejection(place.client.unschedule("x", id), ConfigError)).option).toBe("id");
  }
});

test("aborting a wait for a result works even if nothing answers", async () => {
  const store = new MemoryStore();
  const asked = gate();
  store.load = () => {
    asked.open();
    return new Promise(() => {});
  };
  const client = new Client({ connection: place.connection, store });
  const stop = new AbortController();
  const run = await client.run("nobody has it", "never submitted");
  const result = rejection(run.result({ signal: stop.signal }), Error);
  await asked.opened;
  stop.abort(new Error("enough"));
  expect((await result).message).toBe("enough");
  await client.close();
});

describe("a closed client", () => {
  test("rejects waits for events it can no longer receive", async () => {
    const client = new Client({ connection: place.connection, store: place.store });
    const run = await client.submit("nobody has it", { n: 0 });
    const events = run.events();
    const waiting = [rejection(run.result(), ConfigError), rejection(events.next(), ConfigError)];
    // They wait, and so does everybody who asks after this.
    await run.status();
    await client.close();
    for (const error of await Promise.all(waiting)) expect(error.option).toBe("client");
    const asks = [
      () => run.status(),
      () => run.result(),
      () => run.cancel(),
      () => run.resume(),
      () => run.events().next(),
      () => client.submit("nobody has it", {}),
    ];
    for (const ask of asks) {
      const error = await rejection(ask(), ConfigError);
      expect(error.message).toBe("client is closed: make a new one");
    }
    await (await place.client.run("nobody has it", run.runId)).cancel();
  });
});

test("a client waiting for its database closes at once and rejects all waits", async () => {
  const client = new Client({
    connection: "postgres://127.0.0.1:1/nowhere",
    store: place.store,
    onError: () => {},
  });
  const submitted = rejection(client.submit("x", { n: 0 }), ConfigError);
  await client.close();
  expect((await submitted).option).toBe("client");
});

test("cancelling an unknown run stops nothing", async () => {
  expect(await (await place.client.run("nothing", "nobody")).cancel()).toBe(false);
});

describe("events", () => {
  const read = async (events: AsyncIterable<AnyEvent>, types: string[] = []): Promise<string[]> => {
    for await (const event of events) types.push(event.type);
    return types;
  };

  /** Reads the events of a run that no worker has yet; resolves when the first of them has come. */
  async function listen(run: QueuedRun<Count>): Promise<Promise<string[]>[]> {
    const types: string[] = [];
    const reading = read(run.events(), types);
    const publish = "SELECT bullmq.publish_event('waymark-' || $1, 'waiting', $2)";
    const told = [encodeURIComponent(run.graph), { jobId: run.runId }];
    await until("it listens", async () => {
      await place.pool.query(publish, told);
      return types.length > 0;
    });
    return [reading];
  }

  test("report what happens to a run, and what the worker sends of its graph", async () => {
    const graph = single((state) => state);
    const run = await place.client.submit(graph.name, { n: 0 });
    const [reading] = await listen(run);
    await place.work({ graphs: [graph], events: ["node.start", "graph.complete"] });
    expect((await reading)?.slice(-4)).toEqual([
      "run.active",
      "node.start",
      "graph.complete",
      "run.completed",
    ]);
    expect(await read(run.events())).toEqual([]);
  });

  test("report failures and cancelled runs", async () => {
    const inside = gate();
    const failing = single(() => {
      throw new Error("bad");
    });
    const long = single(async (state, ctx) => {
      inside.open();
      await wait(20_000, undefined, { signal: ctx.signal });
      return state;
    });
    const failed = await place.client.submit(failing.name, { n: 0 });
    const cancelled = await place.client.submit(long.name, { n: 0 });
    const removed = await place.client.submit(long.name, { n: 0 });
    const all = [failed, cancelled, removed].map((run) => listen(run));
    const reading = (await Promise.all(all)).flat();
    await removed.cancel();
    await place.work({ graphs: [failing, long], events: true, maxAttempts: 1 });
    await inside.opened;
    await cancelled.cancel();
    const [one = [], two = [], three = []] = await Promise.all(reading);
    expect(one.at(-1)).toBe("run.failed");
    expect(one).toContain("graph.fail");
    expect(two.at(-1)).toBe("run.cancelled");
    expect(three.at(-1)).toBe("run.cancelled");
    expect(three).not.toContain("run.active");
  });

  test("come from the log first, then live, if the client has a log", async () => {
    const root = await mkdtemp(join(tmpdir(), "waymark-client-"));
    const [inside, go] = [gate(), gate()];
    const heard: string[] = [];
    const graph = new StateGraph<Count>({
      name: "logged by a worker",
      observer: [eventLog({ root }), ({ type }) => heard.push(type)],
    })
      .addNode("only", async (state) => {
        inside.open();
        await go.opened;
        return state;
      })
      .setEntryPoint("only")
      .setExitPoint("only");
    const { connection, store } = place;
    const client = new Client({ connection, store, log: { root } });
    const run = await client.submit(graph, { n: 0 });
    await place.work({ graphs: [graph], events: ["node.start", "graph.complete"] });
    await inside.opened;
    const seen: string[] = [];
    for await (const { type } of run.events({ from: "start" })) {
      seen.push(type);
      if (type === "node.start") go.open();
    }
    expect(seen.filter((type) => !type.startsWith("run."))).toEqual(heard);
    expect(await read(run.events({ from: "start" }))).toEqual(heard);
    await client.close();
    await rm(root, { recursive: true });
  });

  test("and result stop when their signal aborts", async () => {
    const graph = single((state) => state);
    const run = await place.client.submit(graph.name, { n: 0 }, { delay: 60_000 });
    const stop = new AbortController();
    const reading = read(run.events({ signal: stop.signal }));
    const waiting = run.result({ signal: stop.signal });
    setTimeout(() => stop.abort(new Error("enough")), 100);
    await expect(reading).rejects.toThrow("enough");
    await expect(waiting).rejects.toThrow("enough");
    await run.cancel();
  });
});

describe("a client", () => {
  test("without its database fails, and works once it is there", async () => {
    const client = new Client({ connection: place.url, store: place.store });
    await client.close();
    const error = await rejection(
      client.submit("x", {}).catch((caught: unknown) => Promise.reject(caught)),
      ConfigError,
    );
    expect(error.message).toContain("is closed");
  });

  test("reports other problems of the database", async () => {
    const connection = place.url.replace(/\/postgres$/, "/nowhere");
    const client = new Client({ connection, store: new MemoryStore() });
    await expect(client.submit("x", {})).rejects.toThrow('"nowhere" does not exist');
    await expect(client.submit("x", {})).rejects.toThrow('"nowhere" does not exist');
    await client.close();
  });

  test("keeps the queue in the given schema", async () => {
    const connection = { url: place.url, schema: "other_queue", connections: 1 };
    const client = new Client({ connection, store: place.store });
    const graph = single((state) => ({ n: state.data.n + 1 }));
    await place.work({ graphs: [graph], connection });
    const run = await client.submit(graph.name, { n: 0 });
    expect((await run.result()).data.n).toBe(1);
    await client.close();
  });
});
