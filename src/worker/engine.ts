import type { IQueueBackend, Processor, Queue, QueueEvents, Worker, WorkerOptions } from "bullmq";
import type { CheckedConnection } from "./connection.js";
import type { JobData, JobResult } from "./job.js";
import { type BackendFactory, type BullMQ, type Load, loadPeers } from "./peers.js";
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
  load?: Load,
): Promise<Engine> {
  if (connection.kind === "redis") {
    const bullmq = await loadPeers("ioredis", load);
    const { createRedisBackend } = bullmq as unknown as { createRedisBackend: BackendFactory };
    const options = { ...connection.driver, url: connection.url, maxRetriesPerRequest: null };
    return makeEngine(bullmq, createRedisBackend, options, connection.prefix, onError);
  }
  const bullmq = await loadPeers("pg", load);
  const postgres = await openPostgres(bullmq, connection, onError);
  const engine = makeEngine(bullmq, postgres.factory, "shared", connection.prefix, onError);
  return {
    ...engine,
    putFirst: async (queue, jobId) => {
      const job = await queue.getJob(jobId);
      await job?.changePriority({ priority: job.priority, lifo: true });
    },
    close: async () => {
      await engine.close();
      await postgres.close();
    },
  };
}

function makeEngine(
  bullmq: BullMQ,
  factory: BackendFactory,
  connection: unknown,
  prefix: string,
  onError: (error: unknown) => void,
): Engine {
  const classes = bullmq.withBackend<IQueueBackend, unknown>(factory);
  const options = { connection, prefix };
  const open = new Set<{ close(): Promise<void> }>();
  const heard = <T>(one: T): T => {
    (one as unknown as { on(event: "error", listener: typeof onError): void }).on("error", onError);
    return one;
  };
  const opened = <T extends { close(): Promise<void> }>(one: T): T => {
    open.add(heard(one));
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
    closeEvents: async (events) => {
      open.delete(events);
      await events.close().catch(onError);
    },
    // On Redis such jobs are first already.
    putFirst: async () => {},
    publish: (name, fields) => {
      const publisher =
        publishers.get(name) ?? opened(new classes.QueueEventsProducer(name, options));
      publishers.set(name, publisher);
      return publisher.publishEvent({ eventName: "waymark", ...fields });
    },
    close: async () => {
      await Promise.all([...open].map((one) => one.close().catch(onError)));
    },
  };
}
