import type { CheckpointStore } from "../checkpoint/store.js";
import { isWaymarkError, messageOf } from "../errors.js";
import { Exposition } from "../observers/exposition.js";
import { inTime } from "./backend.js";
import type { QueueWorker, RunQueue } from "./engine.js";

/** The result of {@link Worker.health}. */
export interface WorkerHealth {
  /** Whether it takes runs, and its queues and its store respond. */
  readonly ok: boolean;
  /** What the worker is doing: `starting`, `working`, `draining`, or `cut-off` if a queue or the store does not respond. */
  readonly state: "starting" | "working" | "draining" | "cut-off";
  /** What does not respond, if the state is `cut-off`. */
  readonly silent?: {
    /** The names of the graphs whose queues do not respond. */
    readonly queues: readonly string[];
    /** Whether the store does not respond. */
    readonly store: boolean;
  };
  /** The number of runs it works on. */
  readonly running: number;
  /** The last error outside of runs, if any. */
  readonly lastError?: string;
}

/** The number of runs in a graph's queue, by state. */
export interface QueueMetrics {
  /** Runs that wait for a worker. */
  readonly waiting: number;
  /** Runs that a worker works on. */
  readonly active: number;
  /** Runs that wait for a time, for input, or for their next attempt. */
  readonly delayed: number;
  /** Runs that failed for good. */
  readonly failed: number;
}

/** The result of {@link Worker.metrics}. */
export interface WorkerMetrics {
  /** The queues of this worker's graphs, keyed by graph name. */
  readonly queues: Readonly<Record<string, QueueMetrics>>;
  /** The number of runs this worker works on. */
  readonly running: number;
  /** The time since the oldest of them was claimed, in milliseconds; 0 if there is none. */
  readonly leaseAgeMs: number;
  /** The number of runs that this worker put back into the queue because their worker had died or hung. */
  readonly takeovers: number;
  /** The number of runs that ended in this worker, including cancelled ones. */
  readonly completed: number;
  /** The number of runs that failed for good in this worker. */
  readonly failed: number;
  /** The time since the worker started, in milliseconds. */
  readonly uptimeMs: number;
}

/** @internal The queue of a graph, and what takes its jobs. */
export interface GraphQueue {
  readonly graph: { readonly name: string };
  readonly queue: RunQueue;
  readonly worker: QueueWorker;
}

/** How long a queue or the store may take to respond, in milliseconds. */
const PATIENCE = 2000;

/** An id that no run has, to see whether the store responds. */
const NO_RUN = "waymark: health check";

/** @internal */
export async function health(of: {
  readonly store: Pick<CheckpointStore, "load">;
  readonly graphWorkers: readonly GraphQueue[];
  readonly isClosing: boolean;
  readonly running: number;
  readonly lastError: unknown;
}): Promise<WorkerHealth> {
  const { graphWorkers, store, isClosing, running, lastError } = of;
  const isWorking =
    graphWorkers.length > 0 && graphWorkers.every(({ worker }) => worker.isRunning());
  const silent = isClosing || !isWorking ? undefined : await findSilent(graphWorkers, store);
  const isCutOff = silent !== undefined && (silent.store || silent.queues.length > 0);
  const state = isClosing ? "draining" : !isWorking ? "starting" : isCutOff ? "cut-off" : "working";
  return {
    ok: state === "working",
    state,
    running,
    ...(isCutOff && { silent }),
    ...(lastError !== undefined && { lastError: messageOf(lastError) }),
  };
}

async function findSilent(
  graphWorkers: readonly GraphQueue[],
  store: Pick<CheckpointStore, "load">,
): Promise<NonNullable<WorkerHealth["silent"]>> {
  const responds = (call: Promise<unknown>) => inTime(call, PATIENCE).catch(() => false);
  const expectNotFound = (error: unknown): void => {
    if (!isWaymarkError(error, "CHECKPOINT_NOT_FOUND")) throw error;
  };
  const [hasStore, ...hasQueue] = await Promise.all([
    responds(store.load(NO_RUN).catch(expectNotFound)),
    ...graphWorkers.map(({ queue }) => responds(queue.isPaused())),
  ]);
  const queues = graphWorkers.flatMap(({ graph }, i) => (hasQueue[i] ? [] : [graph.name]));
  return { queues, store: !hasStore };
}

/** @internal The runs in the queues of some graphs, by graph name. */
export async function countRuns(
  graphWorkers: readonly GraphQueue[],
): Promise<WorkerMetrics["queues"]> {
  const queues: Record<string, QueueMetrics> = {};
  for (const { graph, queue } of graphWorkers) {
    const counts = await queue.getJobCounts("wait", "prioritized", "active", "delayed", "failed");
    const { wait = 0, prioritized = 0, active = 0, delayed = 0, failed = 0 } = counts;
    queues[graph.name] = { waiting: wait + prioritized, active, delayed, failed };
  }
  return queues;
}

/**
 * Formats the metrics of a worker as Prometheus text.
 *
 * @example
 * ```ts compile
 * import { createServer } from "node:http";
 * import { toPrometheus, type Worker } from "waymark/worker";
 *
 * const serve = (worker: Worker) =>
 *   createServer(async (_request, response) => {
 *     response.end(toPrometheus(await worker.metrics()));
 *   });
 * ```
 */
export function toPrometheus(metrics: WorkerMetrics): string {
  const all = Object.entries(metrics.queues);
  const runs = all.flatMap(([graph, counts]) =>
    Object.entries(counts).map(([state, value]) => ({
      labels: { graph, state },
      value: Number(value),
    })),
  );
  return new Exposition()
    .gauge("waymark_queue_runs", "Runs in the queue of a graph, by what they do.", runs)
    .gauge("waymark_worker_running", "Runs this worker works on.", metrics.running)
    .gauge(
      "waymark_worker_lease_age_seconds",
      "Since when this worker has held its oldest run.",
      metrics.leaseAgeMs / 1000,
    )
    .counter(
      "waymark_worker_takeovers_total",
      "Runs of dead workers this one put back into the queue.",
      metrics.takeovers,
    )
    .counter("waymark_worker_completed_total", "Runs this worker ended.", metrics.completed)
    .counter("waymark_worker_failed_total", "Runs that failed for good here.", metrics.failed)
    .toString();
}
