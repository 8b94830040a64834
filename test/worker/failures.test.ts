import { setTimeout as wait } from "node:timers/promises";
import { describe, expect, test, vi } from "vitest";
import {
  type CheckpointStore,
  type Claim,
  ConfigError,
  ExecutionError,
  pause,
  type State,
  StateGraph,
} from "waymark";
import { PostgresStore } from "waymark/stores/postgres";
import { Client, type QueuedRun, Worker } from "waymark/worker";
import { rejection } from "../graphs.js";
import { startOwnServer } from "../stores/postgres/server.js";
import { type Count, gate, single, usePlace } from "./place.js";
import { until } from "./world.js";

const place = usePlace();

/** The job of a run, as the queue keeps it. */
const job = "queue = 'waymark-' || $1 AND id = $2";
const nameOf = (graph: string): string => encodeURIComponent(graph);

/** Leaves a run in the queue as a worker does that died with it. */
async function leave(run: QueuedRun, extra = ""): Promise<void> {
  const { rows } = await place.pool.query(
    `UPDATE bullmq.job SET state = 'active', lock_token = 'dead', locked_until_ms = 0,
       attempts_started = attempts_started + 1, process_at_ms = NULL ${extra} WHERE ${job} RETURNING id`,
    [nameOf(run.graph), run.runId],
  );
  expect(rows).toHaveLength(1);
}

/** A store that does as another, but for some of it. */
function but(store: CheckpointStore, changes: Partial<CheckpointStore>): CheckpointStore {
  const same: CheckpointStore = {
    save: (state, options) => store.save(state, options),
    load: (runId, at, context) => store.load(runId, at, context),
    delete: (runId) => store.delete(runId),
    list: () => store.list(),
  };
  return { ...same, ...changes };
}

describe("a lease", () => {
  test("held by another process is waited for", async () => {
    const graph = single((state) => ({ n: state.data.n + 1 }));
    const held = await place.store.claim("held elsewhere", { ttl: 60_000 });
    await place.work({ graphs: [graph] });
    const run = await place.client.submit(graph.name, { n: 0 }, { runId: "held elsewhere" });
    await until("it was put back", async () => (await run.status()).state === "delayed");
    await held?.release();
    expect((await run.result()).data.n).toBe(1);
  });

  test("that is lost aborts the node, which writes nothing more", async () => {
    const claims: AbortController[] = [];
    const inside = gate();
    let aborted: unknown;
    const saves: State<object>[] = [];
    const store = but(place.store, {
      save: async (state, options) => {
        saves.push(state);
        return place.store.save(state, options);
      },
      claim: async (): Promise<Claim> => {
        const controller = new AbortController();
        claims.push(controller);
        return { epoch: claims.length, lost: controller.signal, release: async () => {} };
      },
    });
    const graph = single(async (_state, ctx) => {
      if (claims.length > 1) return { n: 2 };
      inside.open();
      await wait(20_000, undefined, { signal: ctx.signal }).catch(() => {
        aborted = ctx.signal.reason;
      });
      return { n: 1 };
    });
    await place.work({ graphs: [graph], store });
    const run = await place.client.submit(graph.name, { n: 0 });
    await inside.opened;
    const before = saves.length;
    claims[0]?.abort(new Error("lost it"));
    expect((await run.result()).data.n).toBe(2);
    expect(aborted).toEqual(new Error("lost it"));
    // All that was saved after that, the second claim has saved.
    expect(saves.slice(before).every(({ data }) => (data as Count).n !== 1)).toBe(true);
  });

  test("lost before it is used stops the run too", async () => {
    let claims = 0;
    const store = but(place.store, {
      claim: async () => ({
        ...(claims++ === 0 && { lost: AbortSignal.abort(new Error("gone")) }),
        release: async () => {},
      }),
    });
    const graph = single(() => ({ n: claims }));
    await place.work({ graphs: [graph], store });
    const run = await place.client.submit(graph.name, { n: 0 });
    // On a busy machine the second may be lost as well.
    expect((await run.result()).data.n).toBeGreaterThan(1);
  });

  test("repeatedly lost by a run without progress ends with maxAttempts", async () => {
    let lose = (): void => {};
    const store = but(place.store, {
      claim: async () => {
        const claim = new AbortController();
        lose = () => claim.abort(new Error("hung"));
        return { lost: claim.signal, release: async () => {} };
      },
    });
    let begun = 0;
    const graph = single(async (state, ctx) => {
      begun++;
      lose();
      ctx.signal.throwIfAborted();
      return state;
    });
    await place.work({ graphs: [graph], store, maxAttempts: 3 });
    const run = await place.client.submit(graph.name, { n: 0 });
    const error = await rejection(run.result(), ExecutionError);
    expect(error.message).toContain("got no further");
    expect(begun).toBe(3);
  });

  test("is not needed in a store without claims", async () => {
    const graph = single(() => ({ n: 1 }));
    await place.work({ graphs: [graph], store: but(place.store, {}) });
    const run = await place.client.submit(graph.name, { n: 0 });
    expect((await run.result()).data.n).toBe(1);
  });

  test("that can't be requested makes the run wait for the next attempt", async () => {
    let asked = 0;
    const claim = async (): Promise<Claim> => {
      if (asked++ < 2) throw new Error("no answer");
      return { release: () => Promise.reject(new Error("no answer either")) };
    };
    const graph = single(() => ({ n: 1 }));
    await place.work({ graphs: [graph], store: but(place.store, { claim }), maxAttempts: 1 });
    const run = await place.client.submit(graph.name, { n: 0 });
    expect((await run.result()).data.n).toBe(1);
    await until("it is told", () => place.errors.length > 0);
    expect(place.errors.splice(0)).toEqual([new Error("no answer either")]);
  });
});

describe("a run left by a dead worker", () => {
  test("before its first checkpoint starts", async () => {
    const graph = single(() => ({ n: 1 }));
    const run = await place.client.submit(graph.name, { n: 0 });
    await leave(run);
    const worker = await place.work({ graphs: [graph] });
    expect((await run.result()).data.n).toBe(1);
    expect((await worker.metrics()).takeovers).toBe(1);
  });

  test("repeatedly before its first checkpoint fails permanently", async () => {
    const graph = single(() => ({ n: 1 }));
    const run = await place.client.submit(graph.name, { n: 0 });
    await leave(run, ", stalled_count = 2");
    await place.work({ graphs: [graph], maxAttempts: 3 });
    const error = await rejection(run.result(), ExecutionError);
    expect(error.message).toContain("started 3 times");
    expect(await place.client.failed(graph.name)).toMatchObject([{ runId: run.runId }]);
  });

  test("while it was paused keeps waiting", async () => {
    const graph = new StateGraph<Count>({ name: "left paused" })
      .addNode("ask", (state) => pause(state, { reason: "ask", ask: "n?", into: "n" }))
      .setEntryPoint("ask")
      .setExitPoint("ask");
    const worker = await place.work({ graphs: [graph] });
    const run = await place.client.submit("left paused", { n: 0 });
    await until("it is paused", async () => (await run.status()).state === "paused");
    await leave(run);
    await until("it is found", async () => (await worker.metrics()).takeovers === 1);
    await until("it is paused again", async () => (await run.status()).state === "paused");
    // Input for another pause than this one is dropped.
    await place.pool.query(
      `UPDATE bullmq.job SET data = data || '{"input":{"question":"99","value":""}}' WHERE ${job}`,
      [nameOf(run.graph), run.runId],
    );
    await run.resume();
    await until("it is refused", async () => (await run.status()).refused !== undefined);
    await until("it is paused again", async () => (await run.status()).state === "paused");
    await run.resume(4);
    expect((await run.result()).data.n).toBe(4);
  });

  test("while its input was handed over gets the input", async () => {
    const graph = new StateGraph<Count>({ name: "left with input" })
      .addNode("ask", (state) => pause(state, { reason: "ask", ask: "n?", into: "n" }))
      .setEntryPoint("ask")
      .setExitPoint("ask");
    const first = await place.work({ graphs: [graph] });
    const run = await place.client.submit("left with input", { n: 0 });
    await until("it is paused", async () => (await run.status()).state === "paused");
    await first.close();
    await leave(run);
    const resumed = run.resume(6);
    const given = `SELECT 1 FROM bullmq.job WHERE ${job} AND data ? 'input'`;
    await until("its input is there", async () => {
      const { rows } = await place.pool.query(given, [nameOf(run.graph), run.runId]);
      return rows.length === 1;
    });
    await place.work({ graphs: [graph] });
    await resumed;
    expect((await run.result()).data.n).toBe(6);
  });

  test("fails permanently after the last attempt, with its error", async () => {
    const graph = single(() => {
      throw new Error("broken");
    });
    await place.work({ graphs: [graph], maxAttempts: 1 });
    const run = await place.client.submit(graph.name, { n: 0 });
    await rejection(run.result(), ExecutionError);
    await leave(run, ", failed_reason = NULL");
    await until("it has failed again", async () => (await run.status()).state === "failed");
    const error = await rejection(run.result(), ExecutionError);
    expect(error.cause).toMatchObject({ message: "broken" });
  });

  test("does not use up an attempt when its next worker closes", async () => {
    const inside = [gate(), gate()];
    let begun = 0;
    const graph = single(async (state, ctx) => {
      inside[begun++]?.open();
      await wait(20_000, undefined, { signal: ctx.signal });
      return state;
    });
    const first = await place.work({ graphs: [graph] });
    const run = await place.client.submit(graph.name, { n: 0 });
    await inside[0]?.opened;
    await first.close({ timeout: 10 });
    await leave(run);
    const second = await place.work({ graphs: [graph] });
    await inside[1]?.opened;
    expect((await place.store.load(run.runId)).toJSON().recovery?.attempts).toBe(1);
    await second.close({ timeout: 10 });
    expect((await place.store.load(run.runId)).toJSON().recovery?.attempts).toBe(0);
    await run.cancel();
  });
});

describe("a run whose checkpoints can't be saved", () => {
  test("is retried", async () => {
    let failures = 0;
    const store = but(place.store, {
      save: (state, options) => {
        if (state.step === 1 && failures++ < 1) throw new Error("disk full");
        return place.store.save(state, options);
      },
      history: (runId) => place.store.history(runId),
    });
    const graph = single(() => ({ n: 1 }));
    await place.work({ graphs: [graph], store });
    const run = await place.client.submit(graph.name, { n: 0 });
    expect((await run.result()).data.n).toBe(1);
    expect(failures).toBe(2);
  });

  test("or read waits until the store works", async () => {
    let failures = 0;
    const graph = new StateGraph<Count>({ name: "unreadable" })
      .addNode("ask", (state) => pause(state, { reason: "ask", ask: "n?", into: "n" }))
      .setEntryPoint("ask")
      .setExitPoint("ask");
    const store = but(place.store, {
      load: (runId, at, context) => {
        if (failures++ < 3) throw new Error("no answer");
        return place.store.load(runId, at, context);
      },
    });
    await place.work({ graphs: [graph], store });
    const run = await place.client.submit("unreadable", { n: 0 });
    await until("it is paused", async () => (await run.status()).state === "paused");
    await run.resume(2);
    expect((await run.result()).data.n).toBe(2);
  });
});

describe("a node that ignores its signal", () => {
  test("is abandoned by a closing worker, and its result counts", async () => {
    let begun = 0;
    const inside = gate();
    const finish = gate();
    const graph = single(async () => {
      begun++;
      inside.open();
      await finish.opened;
      return { n: 1 };
    });
    const worker = await place.work({ graphs: [graph] });
    const run = await place.client.submit(graph.name, { n: 0 });
    await inside.opened;
    // It does not wait for a node that ends only after this.
    await worker.close({ timeout: 20 });
    // The run is still claimed, so that the next worker does not begin it again.
    const next = await place.work({ graphs: [graph] });
    await until("the next has found it", async () => (await next.metrics()).takeovers > 0);
    finish.open();
    expect((await run.result()).data.n).toBe(1);
    expect(begun).toBe(1);
  });
});

test("a process signal closes the worker before it takes effect", async () => {
  const heard = gate();
  const graph = single((state) => state);
  const worker = await place.work({ graphs: [graph], drainOn: ["SIGUSR2"] });
  await until("it works", async () => (await worker.health()).ok);
  process.once("SIGUSR2", () => {
    // The second is the one that acts.
    process.once("SIGUSR2", heard.open);
  });
  process.kill(process.pid, "SIGUSR2");
  await heard.opened;
  expect((await worker.health()).state).toBe("draining");
});

test("an error is printed if the worker has no error handler", async () => {
  const print = vi.spyOn(console, "error").mockImplementation(() => {});
  const graph = single((state) => state);
  const options = { graphs: [graph], store: place.store, connection: "postgres://x" };
  const missing = async (): Promise<never> => {
    throw Object.assign(new Error(), { code: "MODULE_NOT_FOUND" });
  };
  const worker = new Worker(options, missing);
  await rejection(worker.ready(), ConfigError);
  expect(print.mock.calls).toEqual([
    ["waymark/worker:", "connection needs the package bullmq: npm install bullmq"],
  ]);
  print.mockRestore();
  await worker.close();
});

test("a worker waiting for its database closes at once", async () => {
  const connection = "postgres://127.0.0.1:1/nowhere";
  const worker = new Worker({ graphs: [single((state) => state)], store: place.store, connection });
  const ready = worker.ready().then(
    () => "ready",
    () => "gave up",
  );
  const closed = worker.close().then(() => "closed");
  expect(await Promise.race([closed, ready])).toBe("closed");
});

test("a worker waits for a starting database", async () => {
  const server = await startOwnServer(["-c", "fsync=off"]);
  await server.kill();
  const store = new PostgresStore({ client: server.url });
  const client = new Client({ connection: server.url, store, onError: () => {} });
  const submitted = client.submit("later", { n: 0 });
  await server.restart();
  expect((await (await submitted).status()).state).toBe("waiting");
  await client.close();
  await store.close();
  await server.stop();
});
