import type { EventEmitter } from "node:events";
import type { Duplex } from "node:stream";
import type { IQueueBackend } from "bullmq";
import { sleep } from "../clock.js";
import { ConfigError } from "../errors.js";
import { failures, isTimeout } from "../stores/postgres-failure.js";
import { asked, type BackendFactory, type BullMQ, bound, GRACE, inTime } from "./backend.js";
import type { CheckedConnection } from "./connection.js";

/** The longest pause before a worker listens again, in milliseconds. */
const LONGEST_REST = 1000;
/** How long to wait for a connection, in milliseconds. */
const CONNECT = 10_000;

/** Creates queues on Postgres, all on one pool and one listening connection. */
export async function openPostgres(
  bullmq: BullMQ,
  connection: CheckedConnection,
  onError: (error: unknown) => void,
): Promise<{ factory(isTyped: boolean): BackendFactory; close(): Promise<void> }> {
  const shared = await connect(bullmq, connection, onError);
  const factory =
    (isTyped: boolean): BackendFactory =>
    (name, options) => {
      const backend = new bullmq.PostgresQueueBackend(shared, name, options as never, true);
      // It uses the shared connection, and must not close it.
      Reflect.set(backend, "ownsConnection", false);
      // pg itself drops a connection whose statement timed out.
      bound(backend, connection, { isLost, isTyped, drop: () => {} });
      backOffIdleWakeups(backend);
      renewOneByOne(backend);
      return backend;
    };
  return { factory, close: () => closeShared(shared) };
}

type Shared = InstanceType<BullMQ["PostgresConnection"]>;

/** Connects; retries while the server starts. */
function connect(
  bullmq: BullMQ,
  connection: CheckedConnection,
  onError: (error: unknown) => void,
): Promise<Shared> {
  const { statementTimeout, retryFor } = connection;
  const attempt = async (): Promise<Shared> => {
    const shared = new bullmq.PostgresConnection({
      connectionTimeoutMillis: Math.min(CONNECT, statementTimeout),
      ...(Number.isFinite(statementTimeout) && { query_timeout: statementTimeout }),
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
    // A connection lost between two statements emits an error; the next statement fails anyway.
    shared.pool.on("connect", (client) => void client.on("error", () => {}));
    try {
      await shared.waitUntilReady();
      shared.getListenClient = oneByOne(shared.getListenClient.bind(shared));
      return shared;
    } catch (error) {
      await closeShared(shared);
      if (Reflect.get(Object(error), "code") !== "ERR_INVALID_URL") throw error;
      const expected = 'must be "postgres://user:password@host:port/database"; got something else';
      throw new ConfigError("connection", expected);
    }
  };
  const bounds = { statementTimeout: Number.POSITIVE_INFINITY, retryFor };
  return asked(attempt(), attempt, bounds, { isLost, isTyped: true });
}

type ListenClient = Awaited<ReturnType<Shared["getListenClient"]>>;

/** Several queues share the listening connection, which handles one query at a time. */
function oneByOne(get: () => Promise<ListenClient>): () => Promise<ListenClient> {
  const known = new WeakSet<ListenClient>();
  return async () => {
    const client = await get();
    if (known.has(client)) return client;
    known.add(client);
    (client as unknown as EventEmitter).setMaxListeners(0);
    // Closing it removes all listeners, and a last error from the server must not end the process.
    const forget = client.removeAllListeners.bind(client);
    client.removeAllListeners = (...given) => forget(...given).on("error", () => {});
    const query = client.query.bind(client) as (text: string, params?: unknown[]) => Promise<never>;
    let last: Promise<unknown> = Promise.resolve();
    client.query = (text: string, params?: readonly unknown[]) => {
      const next = last.then(() => query(text, params && [...params]));
      last = next.catch((error: unknown) => {
        // A silent connection delivers no notifications; once it ends, BullMQ opens another.
        if (isTimeout(error)) cut(client);
      });
      return next;
    };
    return client;
  };
}

/** Whether the connection failed, not the statement: the server is down, starting, out of connections, or gone. */
function isLost(error: unknown): boolean {
  const kind = failures.kindOf(error);
  return kind === "unreached" || kind === "broken";
}

/** Closes the connections; drops the listening one if the server does not respond. */
async function closeShared(shared: Shared): Promise<void> {
  const listening: unknown = Reflect.get(shared, "listenClient");
  const isDone = await inTime(shared.close(), GRACE).catch(() => false);
  if (!isDone && listening !== undefined) cut(listening as ListenClient);
}

/** Ends a connection that does not respond; pg reports that as an error. */
function cut(client: object): void {
  const { stream } = Object(Reflect.get(client, "connection")) as { stream?: Duplex };
  stream?.destroy();
}

/**
 * Each new job wakes all workers with capacity, and one gets it; a queue at its limit has work that nobody may take. A
 * worker that is repeatedly woken for nothing waits longer each time before it listens again, so that only a few of
 * many idle workers are woken. One that gets a job listens again at once.
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
 * A statement that renews several locks and the one that marks all active jobs lock the same rows in different orders,
 * so many workers would deadlock. Statements on a single row can't.
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
