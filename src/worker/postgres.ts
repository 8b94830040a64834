import type { EventEmitter } from "node:events";
import type { IQueueBackend } from "bullmq";
import { sleep } from "../clock.js";
import { ConfigError } from "../errors.js";
import type { CheckedConnection } from "./connection.js";
import type { BackendFactory, BullMQ } from "./peers.js";

/** How many seconds a worker that nobody wakes waits before it looks for work. */
export const LONGEST_BLOCK = 5;
/** How long a worker rests at the most before it listens again, in milliseconds. */
const LONGEST_REST = 1000;
/** How long to wait for the database before the first use, in milliseconds. */
const STARTUP = 30_000;

/** What makes queues on Postgres, all on one pool and one connection that listens. */
export async function openPostgres(
  bullmq: BullMQ,
  connection: CheckedConnection,
  onError: (error: unknown) => void,
): Promise<{ readonly factory: BackendFactory; close(): Promise<void> }> {
  const shared = await connect(bullmq, connection, onError);
  const factory: BackendFactory = (name, options) => {
    const backend = new bullmq.PostgresQueueBackend(shared, name, options as never, true);
    // It follows the shared connection, and leaves it open.
    Reflect.set(backend, "ownsConnection", false);
    Object.defineProperty(backend, "maximumBlockTimeout", { value: LONGEST_BLOCK });
    backOffIdleWakeups(backend);
    renewOneByOne(backend);
    return backend;
  };
  return { factory, close: () => shared.close() };
}

type Shared = InstanceType<BullMQ["PostgresConnection"]>;

/** Connects; tried again while the server starts. */
async function connect(
  bullmq: BullMQ,
  connection: CheckedConnection,
  onError: (error: unknown) => void,
): Promise<Shared> {
  const end = Date.now() + STARTUP;
  for (;;) {
    const shared = new bullmq.PostgresConnection({
      connectionTimeoutMillis: 10_000,
      keepAlive: true,
      allowExitOnIdle: true,
      ...connection.driver,
      connectionString: connection.url,
      schema: connection.schema,
      max: connection.connections,
      migrate: true,
    });
    shared.setMaxListeners(0);
    shared.on("error", onError);
    // One that is lost between two statements reports it itself; the next statement fails anyway.
    shared.pool.on("connect", (client) => void client.on("error", () => {}));
    try {
      await shared.waitUntilReady();
      shared.getListenClient = oneByOne(shared.getListenClient.bind(shared));
      return shared;
    } catch (error) {
      await shared.close().catch(() => {});
      if (Reflect.get(Object(error), "code") === "ERR_INVALID_URL") {
        const expected =
          'must be "postgres://user:password@host:port/database"; got something else';
        throw new ConfigError("connection", expected);
      }
      if (Date.now() > end || !isUnreachable(error)) throw error;
      await sleep(250);
    }
  }
}

type ListenClient = Awaited<ReturnType<Shared["getListenClient"]>>;

/** Several queues share the connection that listens, and it does one thing at a time. */
function oneByOne(get: () => Promise<ListenClient>): () => Promise<ListenClient> {
  const known = new WeakSet<ListenClient>();
  return async () => {
    const client = await get();
    if (known.has(client)) return client;
    known.add(client);
    (client as unknown as EventEmitter).setMaxListeners(0);
    // When it is closed it forgets all listeners, and what the server says last must not end the process.
    const forget = client.removeAllListeners.bind(client);
    client.removeAllListeners = (...given) => forget(...given).on("error", () => {});
    const query = client.query.bind(client) as (text: string, params?: unknown[]) => Promise<never>;
    let last: Promise<unknown> = Promise.resolve();
    client.query = (text: string, params?: readonly unknown[]) => {
      const next = last.then(() => query(text, params && [...params]));
      last = next.catch(() => {});
      return next;
    };
    return client;
  };
}

/** Whether there is no server yet that would answer: it is down, it starts, or it is full. */
function isUnreachable(error: unknown): boolean {
  const code = String(Reflect.get(Object(error), "code"));
  const codes = ["ECONNREFUSED", "ECONNRESET", "57P01", "57P03", "53300"];
  return (
    codes.includes(code) ||
    /^(Connection terminated|timeout)/.test(String(Reflect.get(Object(error), "message")))
  );
}

/**
 * Each job that comes wakes all workers that have room, and one gets it; a queue at its limit has work that
 * nobody may take. A worker that is woken in vain again and again rests longer each time before it listens
 * again, so that few of many idle ones are woken. One that gets a job listens at once.
 */
export function backOffIdleWakeups(
  backend: Pick<IQueueBackend, "moveToActive" | "waitForJob">,
): void {
  const wait = backend.waitForJob.bind(backend);
  const take = backend.moveToActive.bind(backend);
  let isWoken = false;
  let inVain = 0;
  backend.moveToActive = async (token, name) => {
    const taken = await take(token, name);
    if (taken[0]) inVain = 0;
    else if (isWoken) inVain++;
    isWoken = false;
    return taken;
  };
  backend.waitForJob = async (timeout) => {
    const rest = Math.min(2 ** inVain, LONGEST_REST);
    if (inVain > 1) await sleep(rest * (0.5 + Math.random() / 2));
    const woken = await wait(timeout);
    isWoken = woken !== null;
    return woken;
  };
}

/**
 * A statement that renews several locks, and the one that marks all jobs under way, take the same rows in
 * different orders, and so many workers would end in deadlocks. Statements of one row can't.
 */
export function renewOneByOne(backend: Pick<IQueueBackend, "extendLock" | "extendLocks">): void {
  backend.extendLocks = async (jobIds, tokens, duration) => {
    const lost: string[] = [];
    for (const [index, jobId] of jobIds.entries()) {
      const renewed = await backend.extendLock(jobId, tokens[index] ?? "", duration);
      if (renewed === 0) lost.push(jobId);
    }
    return lost;
  };
}
