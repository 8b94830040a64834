import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { StateGraph, WaymarkError } from "waymark";
import { PostgresStore } from "waymark/stores/postgres";
import { RedisStore } from "waymark/stores/redis";
import { Client, type QueueConnection, Worker } from "waymark/worker";
import { rejection } from "../graphs.js";
import { type ServerProxy, startProxy } from "../proxy.js";
import { startServer } from "../stores/postgres/server.js";
import { startRedis, withRedis } from "../stores/redis/server.js";
import { type Count, gate } from "./place.js";
import { until } from "./world.js";

/** Twice this is less than the longest time that an idle worker waits for work. */
const LEASE = 2400;
/** Time enough to connect again and to respond, also on a busy machine. */
const statementTimeout = 3000;

interface Side {
  readonly url: string;
  readonly store: PostgresStore | RedisStore;
}

/** A server, reached directly and by a way that can go silent. */
interface Both {
  readonly direct: Side;
  readonly silent: Side;
  readonly proxy: ServerProxy;
  stop(): Promise<void>;
}

interface OneServer {
  readonly url: string;
  stop(): Promise<void>;
}

async function reach(server: OneServer, open: (url: string) => Side["store"]): Promise<Both> {
  const proxy = await startProxy(server.url);
  const direct = { url: server.url, store: open(server.url) };
  const silent = { url: proxy.url, store: open(proxy.url) };
  return {
    direct,
    silent,
    proxy,
    stop: async () => {
      proxy.cut();
      await Promise.all([direct.store.close(), silent.store.close()]);
      await proxy.stop();
    },
  };
}

const onError = (): void => {};

/** Two nodes; the first one waits until the test lets it go. */
function held(begun: string[], who: string, inside: () => void, leave: Promise<void>) {
  return new StateGraph<Count>({ name: "held" })
    .addNode("hold", async () => {
      begun.push(`${who} hold`);
      inside();
      await leave;
      return { n: 1 };
    })
    .addNode("last", (state) => {
      begun.push(`${who} last`);
      return { n: state.data.n + 1 };
    })
    .addEdge("hold", "last")
    .setEntryPoint("hold")
    .setExitPoint("last");
}

async function isTakenOver({ direct, silent, proxy }: Both): Promise<void> {
  const begun: string[] = [];
  const [inFirst, inSecond, leave] = [gate(), gate(), gate()];
  const options = { lease: LEASE, onError };
  const first = new Worker({
    ...options,
    graphs: [held(begun, "first", inFirst.open, leave.opened)],
    store: silent.store,
    connection: { url: silent.url, statementTimeout },
  });
  const client = new Client({ connection: direct.url, store: direct.store, onError });
  await first.ready();
  await until("the first one works", async () => (await first.health()).state === "working");
  const run = await client.submit<Count>("held", { n: 0 });
  await inFirst.opened;
  const second = new Worker({
    ...options,
    graphs: [held(begun, "second", inSecond.open, leave.opened)],
    store: direct.store,
    connection: direct.url,
  });
  await second.ready();
  proxy.silence();
  const bound = AbortSignal.timeout(2 * LEASE);
  await inSecond.opened;
  expect(bound.aborted, "taken over after more than 2 × lease").toBe(false);
  expect(await first.health()).toMatchObject({
    ok: false,
    state: "cut-off",
    running: 1,
    silent: { queues: ["held"], store: true },
  });
  // Both reach the end of their node; the first has lost its claim.
  leave.open();
  expect((await run.result()).data.n).toBe(2);
  await until("the first one has released it", async () => (await first.health()).running === 0);
  expect(begun).toEqual(["first hold", "second hold", "second last"]);
  proxy.heal();
  proxy.cut();
  await until("the first one works again", async () => (await first.health()).ok);
  await Promise.all([first.close(), second.close(), client.close()]);
}

/** The client reaches its queue by the silent way, and its store directly. */
async function isBounded({ direct, silent, proxy }: Both): Promise<void> {
  const connection: QueueConnection = { url: silent.url, statementTimeout };
  const client = new Client({ connection, store: direct.store, onError });
  const run = await client.submit("nobody's", { n: 0 }, { runId: "a run" });
  const waiting = run.result();
  expect((await run.status()).state).toBe("waiting");
  proxy.silence();
  const asked: Record<string, Promise<unknown>> = {
    result: waiting,
    submit: client.submit("nobody's", { n: 0 }, { runId: "another run" }),
    status: run.status(),
    cancel: run.cancel(),
    resume: run.resume(),
    failed: client.failed("nobody's"),
    schedule: client.schedule("nobody's", { n: 0 }, { id: "daily", every: 86_400_000 }),
    reconcile: client.reconcile(),
  };
  const outcomes = await Promise.allSettled(Object.values(asked));
  const codes = outcomes.map((one) => one.status === "rejected" && one.reason.code);
  expect(Object.fromEntries(Object.keys(asked).map((name, i) => [name, codes[i]]))).toEqual(
    Object.fromEntries(Object.keys(asked).map((name) => [name, "QUEUE"])),
  );
  proxy.heal();
  // A connection that was being made while the way was silent may still delay a call.
  const submit = () => client.submit("nobody's", { n: 0 }, { runId: "another run" });
  await until("a new connection serves", () =>
    submit()
      .then(() => true)
      .catch(() => false),
  );
  const again = await submit();
  expect((await again.status()).state).toBe("waiting");
  expect(await again.cancel()).toBe(true);
  // Closing does not wait for a server that does not respond.
  proxy.silence();
  await client.close();
  proxy.heal();
  proxy.cut();
}

async function isNotReady({ direct, proxy, silent }: Both): Promise<void> {
  proxy.silence();
  const connection = { url: silent.url, statementTimeout: 500, retryFor: 0 };
  const graphs = [new StateGraph<Count>({ name: "never" }).addNode("a", () => ({ n: 1 }))];
  graphs[0]?.setEntryPoint("a").setExitPoint("a");
  const worker = new Worker({ graphs, store: direct.store, connection, onError });
  expect((await rejection(worker.ready(), WaymarkError)).code).toBe("QUEUE");
  await worker.close();
  proxy.heal();
  proxy.cut();
}

// They mostly wait, so they do it at the same time, each by a way of its own.
function behave(start: () => Promise<OneServer>, open: (url: string) => Side["store"]): void {
  let server: OneServer;
  beforeAll(async () => {
    server = await start();
  }, 60_000);
  afterAll(() => server.stop());

  const check = (name: string, body: (both: Both) => Promise<void>): void => {
    test.concurrent(name, async () => {
      const both = await reach(server, open);
      try {
        await body(both);
      } finally {
        await both.stop();
      }
    });
  };
  check("a client's calls end with an error, and the next connection serves", isBounded);
  check("a worker that can't start says so", isNotReady);
  check("a worker's run is taken over by another while the first still waits", isTakenOver);
}

describe.concurrent("a queue and a store on Postgres that go silent", () => {
  behave(
    () => startServer(),
    (client) => new PostgresStore({ client, statementTimeout, retryFor: 0 }),
  );
});

withRedis("a silent queue on Redis", () => {
  describe.concurrent("a queue and a store on Redis that go silent", () => {
    behave(startRedis, (url) => new RedisStore({ url, statementTimeout, retryFor: 0 }));
  });
});
