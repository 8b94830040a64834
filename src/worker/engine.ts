import type { EventEmitter } from "node:events";
import type { IQueueBackend, Processor, Queue, QueueEvents, Worker, WorkerOptions } from "bullmq";
import { sleep } from "../clock.js";
import type { Place } from "./connection.js";
import type { JobData, JobResult } from "./job.js";
import { type BullMQ, type Load, loadPeers } from "./peers.js";

/** The queue of a graph. */
export type RunQueue = Queue<
  JobData,
  JobResult,
  string,
  JobData,
  JobResult,
  string,
  IQueueBackend,
  unknown
>;
/** What takes the jobs of a graph. */
export type QueueWorker = Worker<JobData, JobResult, string, IQueueBackend, object, unknown>;
/** What tells of the jobs of a graph. */
export type RunEvents = QueueEvents<JobResult, IQueueBackend, unknown>;

/** What makes queues, on the connection they share. */
export interface Engine {
  readonly bullmq: BullMQ;
  queue(name: string): RunQueue;
  worker(
    name: string,
    processor: Processor<JobData, JobResult, string, object>,
    options: Omit<WorkerOptions<unknown>, "connection">,
  ): QueueWorker;
  events(name: string): RunEvents;
  /** Puts a job that was taken once already before those that wait. */
  putFirst(queue: RunQueue, jobId: string): Promise<void>;
  /** Publishes an event of our own on a queue. */
  publish(name: string, fields: Readonly<Record<string, string>>): Promise<unknown>;
  /** Closes all but the workers, which are their owner's to close. */
  close(): Promise<void>;
}

/** A backend of BullMQ, by the name of its queue and what its owner needs. */
type Factory = (
  name: string,
  options: { readonly connection: unknown },
  needs?: { readonly blocking?: boolean; readonly withBlockingConnection?: boolean },
) => IQueueBackend;

/** How many seconds a worker that nobody wakes waits before it looks for work. */
const LONGEST_BLOCK = 5;
/** How long to wait for the database before the first use, in milliseconds. */
const STARTUP = 30_000;

/** Opens the queue: its packages are loaded, and on Postgres its tables are made. */
export async function openEngine(
  place: Place,
  onError: (error: unknown) => void,
  load?: Load,
): Promise<Engine> {
  if (place.kind === "redis") {
    const bullmq = await loadPeers("ioredis", load);
    const { createRedisBackend } = bullmq as unknown as { createRedisBackend: Factory };
    const connection = { ...place.driver, url: place.url, maxRetriesPerRequest: null };
    return makeEngine(bullmq, createRedisBackend, connection, place.prefix, onError);
  }
  const bullmq = await loadPeers("pg", load);
  const shared = await openPostgres(bullmq, place, onError);
  const factory: Factory = (name, options) => {
    const backend = new bullmq.PostgresQueueBackend(shared, name, options as never, true);
    // It follows the shared connection, and leaves it open.
    Reflect.set(backend, "ownsConnection", false);
    Object.defineProperty(backend, "maximumBlockTimeout", { value: LONGEST_BLOCK });
    calm(backend);
    return backend;
  };
  const engine = makeEngine(bullmq, factory, "shared", place.prefix, onError);
  return {
    ...engine,
    putFirst: async (queue, jobId) => {
      const job = await queue.getJob(jobId);
      await job?.changePriority({ priority: job.priority, lifo: true });
    },
    close: async () => {
      await engine.close();
      await shared.close();
    },
  };
}

type Shared = InstanceType<BullMQ["PostgresConnection"]>;

/** One pool and one connection that listens, for all queues; tried again while the server starts. */
async function openPostgres(
  bullmq: BullMQ,
  place: Place,
  onError: (error: unknown) => void,
): Promise<Shared> {
  const end = Date.now() + STARTUP;
  for (;;) {
    const shared = new bullmq.PostgresConnection({
      connectionTimeoutMillis: 10_000,
      keepAlive: true,
      allowExitOnIdle: true,
      ...place.driver,
      connectionString: place.url,
      schema: place.schema,
      max: place.connections,
      migrate: true,
    });
    shared.setMaxListeners(0);
    shared.on("error", onError);
    try {
      await shared.waitUntilReady();
      shared.getListenClient = oneByOne(shared.getListenClient.bind(shared));
      return shared;
    } catch (error) {
      await shared.close().catch(() => {});
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
 * A queue at its limit has work that nobody may take. Its workers would ask for it over and over:
 * from the second time on they wait a little first.
 */
function calm(backend: IQueueBackend): void {
  const wait = backend.waitForJob.bind(backend);
  const take = backend.moveToActive.bind(backend);
  let empty = 0;
  backend.moveToActive = async (token, name) => {
    const taken = await take(token, name);
    empty = taken[0] ? 0 : empty + 1;
    return taken;
  };
  backend.waitForJob = async (timeout) => {
    if (empty > 1) await sleep(Math.min(empty * 5, 100));
    return wait(timeout);
  };
}

function makeEngine(
  bullmq: BullMQ,
  factory: Factory,
  connection: unknown,
  prefix: string,
  onError: (error: unknown) => void,
): Engine {
  const classes = bullmq.withBackend<IQueueBackend, unknown>(factory);
  const options = { connection, prefix };
  const open: { close(): Promise<void> }[] = [];
  const heard = <T>(one: T): T => {
    (one as unknown as { on(event: "error", listener: typeof onError): void }).on("error", onError);
    return one;
  };
  const opened = <T extends { close(): Promise<void> }>(one: T): T => {
    open.push(heard(one));
    return one;
  };
  const publishers = new Map<string, InstanceType<typeof classes.QueueEventsProducer>>();
  return {
    bullmq,
    queue: (name) => opened(new classes.Queue<JobData, JobResult, string>(name, options)),
    worker: (name, processor, more) =>
      heard(
        new classes.Worker<JobData, JobResult, string, object>(name, processor, {
          ...options,
          ...more,
        }),
      ),
    events: (name) =>
      opened(new classes.QueueEvents<JobResult>(name, { ...options, blockingTimeout: 1000 })),
    // On Redis these are the first already.
    putFirst: async () => {},
    publish: (name, fields) => {
      const publisher =
        publishers.get(name) ?? opened(new classes.QueueEventsProducer(name, options));
      publishers.set(name, publisher);
      return publisher.publishEvent({ eventName: "waymark", ...fields });
    },
    close: async () => {
      await Promise.all(open.map((one) => one.close().catch(onError)));
    },
  };
}
