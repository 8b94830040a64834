import { now } from "../clock.js";
import { messageOf } from "../errors.js";
import { Exposition } from "../observers/metrics/exposition.js";
import type { ActiveRun } from "./active-run.js";
import type { QueueWorker, RunQueue } from "./engine.js";
import { inTime } from "./in-time.js";

/** What {@link Worker.health} says. */
export interface WorkerHealth {
  /** Whether it takes runs and the queue answers. */
  readonly ok: boolean;
  /** What it does: `starting`, `working`, `draining`, or `cut-off` when the queue does not answer. */
  readonly state: "starting" | "working" | "draining" | "cut-off";
  /** How many runs it works on. */
  readonly running: number;
  /** The last error outside of runs, if there was one. */
  readonly lastError?: string;
}

/** The queue of a graph in numbers. */
export interface QueueMetrics {
  /** Runs that wait for a worker. */
  readonly waiting: number;
  /** Runs that some worker works on. */
  readonly active: number;
  /** Runs that wait for a moment, for input, or for their next try. */
  readonly delayed: number;
  /** Runs that failed for good. */
  readonly failed: number;
}

/** What {@link Worker.metrics} gives. */
export interface WorkerMetrics {
  /** The queues of this worker's graphs, by their names. */
  readonly queues: Readonly<Record<string, QueueMetrics>>;
  /** How many runs this worker works on. */
  readonly running: number;
  /** How many milliseconds ago the oldest of them was claimed; 0 when there is none. */
  readonly leaseAgeMs: number;
  /** How many runs of workers that died or hung this one has put back into the queue. */
  readonly takeovers: number;
  /** How many runs this worker brought to their end, cancelled ones too. */
  readonly completed: number;
  /** How many runs failed for good in this worker. */
  readonly failed: number;
  /** For how many milliseconds it has been up. */
  readonly uptimeMs: number;
}

interface GraphWorker {
  readonly graph: { readonly name: string };
  readonly queue: RunQueue;
  readonly worker: QueueWorker;
}

/** How long the queue may take to answer, in milliseconds. */
const PATIENCE = 2000;

export async function health(of: {
  readonly graphWorkers: readonly GraphWorker[];
  readonly isClosing: boolean;
  readonly running: number;
  readonly lastError: unknown;
}): Promise<WorkerHealth> {
  const { graphWorkers, isClosing, running, lastError } = of;
  const isWorking =
    graphWorkers.length > 0 && graphWorkers.every(({ worker }) => worker.isRunning());
  const state = isClosing
    ? "draining"
    : !isWorking
      ? "starting"
      : (await answers(graphWorkers))
        ? "working"
        : "cut-off";
  return {
    ok: state === "working",
    state,
    running,
    ...(lastError !== undefined && { lastError: messageOf(lastError) }),
  };
}

async function answers([first]: readonly GraphWorker[]): Promise<boolean> {
  return inTime(first?.queue.isPaused() ?? Promise.resolve(), PATIENCE).catch(() => false);
}

export async function metrics(of: {
  readonly graphWorkers: readonly GraphWorker[];
  readonly active: ReadonlyMap<string, ActiveRun>;
  readonly takeovers: number;
  readonly finished: { readonly completed: number; readonly failed: number };
  readonly since: number;
}): Promise<WorkerMetrics> {
  const queues: Record<string, QueueMetrics> = {};
  for (const { graph, queue } of of.graphWorkers) {
    const counts = await queue.getJobCounts("wait", "prioritized", "active", "delayed", "failed");
    const { wait = 0, prioritized = 0, active = 0, delayed = 0, failed = 0 } = counts;
    queues[graph.name] = { waiting: wait + prioritized, active, delayed, failed };
  }
  const claimed = [...of.active.values()].map(({ since }) => since);
  return {
    queues,
    running: of.active.size,
    leaseAgeMs: claimed.length === 0 ? 0 : now() - Math.min(...claimed),
    takeovers: of.takeovers,
    ...of.finished,
    uptimeMs: now() - of.since,
  };
}

/**
 * The metrics of a worker in the text format that Prometheus reads.
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
