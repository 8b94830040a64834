import type { IQueueBackend, Processor, Queue, QueueEvents, Worker, WorkerOptions } from "bullmq";
import { messageOf } from "../errors.js";
import type { LoadPackage } from "../optional-peer.js";
import {
  type BackendFactory,
  type BullMQ,
  bound,
  GRACE,
  inTime,
  loadPeers,
  type QueueBounds,
} from "./backend.js";
import type { CheckedConnection } from "./connection.js";
import type { JobData, JobResult } from "./job.js";
import { openPostgres } from "./postgres.js";

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
/** Takes the jobs of a graph. */
export type QueueWorker = Worker<JobData, JobResult, string, IQueueBackend, object, unknown>;
/** Listens to the jobs of a graph. */
export type RunEvents = QueueEvents<JobResult, IQueueBackend, unknown>;

/** Creates queues on a shared connection. */
export interface Engine {
  readonly bullmq: BullMQ;
  readonly bounds: QueueBounds;
  queue(name: string): RunQueue;
  worker(
    name: string,
    processor: Processor<JobData, JobResult, string, object>,
    options: Omit<WorkerOptions<unknown>, "connection">,
  ): QueueWorker;
  events(name: string): RunEvents;
  /** Closes what {@link Engine.events} returned. */
  closeEvents(events: RunEvents): Promise<void>;
  /** Moves a job that was taken before to the front of the queue. */
  putFirst(queue: RunQueue, jobId: string): Promise<void>;
  /** Publishes a custom event on a queue. */
  publish(name: string, fields: Readonly<Record<string, string>>): Promise<unknown>;
  /** Closes everything but the workers, which their owner closes. */
  close(): Promise<void>;
}

/** Opens the queue: loads its packages, and on Postgres creates its tables. */
export async function openEngine(
  connection: CheckedConnection,
  onError: (error: unknown) => void,
  load?: LoadPackage,
): Promise<Engine> {
  const { kind, url, driver, prefix, statementTimeout, retryFor } = connection;
  const bullmq = await loadPeers(kind === "redis" ? "ioredis" : "pg", load);
  const postgres = kind === "redis" ? undefined : await openPostgres(bullmq, connection, onError);
  const factory = postgres?.factory ?? redisFactory(bullmq, connection);
  const classes = bullmq.withBackend<IQueueBackend, unknown>(factory(false));
  const { Queue, QueueEventsProducer } = bullmq.withBackend<IQueueBackend, unknown>(factory(true));
  const options = {
    connection: postgres === undefined ? { ...driver, url, maxRetriesPerRequest: null } : "shared",
    prefix,
  };
  const open = new Set<Closeable>();
  const heard = <T>(one: T): T => {
    (one as unknown as { on(event: "error", listener: typeof onError): void }).on("error", onError);
    return one;
  };
  const opened = <T extends Closeable>(one: T): T => {
    open.add(heard(one));
    return one;
  };
  const publishers = new Map<string, InstanceType<typeof QueueEventsProducer>>();
  return {
    bullmq,
    bounds: { statementTimeout, retryFor },
    queue: (name) => opened(new Queue<JobData, JobResult, string>(name, options)),
    worker: (name, processor, more) =>
      heard(
        new classes.Worker<JobData, JobResult, string, object>(name, processor, {
          ...options,
          ...more,
        }),
      ),
    events: (name) =>
      opened(new classes.QueueEvents<JobResult>(name, { ...options, blockingTimeout: 1000 })),
    closeEvents: async (events) => {
      open.delete(events);
      await closed(events, onError);
    },
    putFirst: async (queue, jobId) => {
      // On Redis such jobs are first already.
      if (postgres === undefined) return;
      const job = await queue.getJob(jobId);
      await job?.changePriority({ priority: job.priority, lifo: true });
    },
    publish: (name, fields) => {
      const publisher = publishers.get(name) ?? opened(new QueueEventsProducer(name, options));
      publishers.set(name, publisher);
      return publisher.publishEvent({ eventName: "waymark", ...fields });
    },
    close: async () => {
      await Promise.all([...open].map((one) => closed(one, onError)));
      await postgres?.close();
    },
  };
}

/** An object of BullMQ that has a connection. */
interface Closeable {
  close(): Promise<void>;
  disconnect(): Promise<void>;
}

/** Closes an object of BullMQ; drops its connection if the server does not respond. */
export async function closed(one: Closeable, onError: (error: unknown) => void): Promise<void> {
  try {
    if (!(await inTime(one.close(), GRACE))) await inTime(one.disconnect(), GRACE);
  } catch (error) {
    onError(error);
  }
}

/** The part of an ioredis client that is used here. */
interface Reconnecting {
  readonly status: string;
  readonly stream?: { destroy(): void };
}

/** Creates queues on Redis. ioredis reconnects by itself, and calls wait for that. */
function redisFactory(bullmq: object, bounds: QueueBounds): (isTyped: boolean) => BackendFactory {
  const { createRedisBackend: create } = bullmq as { createRedisBackend: BackendFactory };
  return (isTyped) => (name, options, needs) => {
    const backend = create(name, options, needs);
    bound(backend, bounds, { isLost, isTyped, drop: reconnect });
    return backend;
  };
}

function isLost(error: unknown): boolean {
  return messageOf(error) === "Connection is closed.";
}

/** Ends a connection that does not respond, unless another is being made; ioredis then reconnects. */
function reconnect(backend: IQueueBackend): void {
  for (const name of ["connection", "blockingConnection"]) {
    const connection: unknown = Reflect.get(backend, name);
    const client = Reflect.get(Object(connection), "_client") as Reconnecting | undefined;
    if (client?.status === "ready" || client?.status === "connect") client.stream?.destroy();
  }
}
