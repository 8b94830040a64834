import { setMaxListeners } from "node:events";
import { hostname } from "node:os";
import { now } from "../clock.js";
import { messageOf } from "../errors.js";
import type { AnyEvent } from "../events.js";
import type { LoadPackage } from "../optional-peer.js";
import { checkOptions, duration } from "../options.js";
import type { AnyGraph } from "../run/state-graph.js";
import { type ActiveRun, leaseTimes } from "./active-run.js";
import { answered, GRACE, inTime, LONGEST_BLOCK } from "./backend.js";
import { Cancellations } from "./cancellations.js";
import { type CheckedConnection, checkConnection } from "./connection.js";
import { closed, type Engine, openEngine, type RunQueue } from "./engine.js";
import { queueName, runIdOf } from "./job.js";
import {
  countRuns,
  type GraphQueue,
  health,
  type WorkerHealth,
  type WorkerMetrics,
} from "./metrics.js";
import {
  type GraphLimits,
  resolveWorkerOptions,
  type WorkerOptions,
  type WorkerSettings,
} from "./options.js";
import { type RunFailure, RunProcessor } from "./processor.js";

/**
 * BullMQ counts how often a job's worker died, over the life of the job; the run has its own count, which restarts when
 * it makes progress.
 */
const UNLIMITED = 2 ** 31 - 1;

/** BullMQ's message for a lock that it could not renew. */
const RENEWAL = /^could not renew lock for job (.*)$/s;

/** Options of {@link Worker.close}. */
export interface CloseOptions {
  /** How long running nodes may take to finish before their `signal` aborts, in milliseconds; 30,000 by default. */
  readonly timeout?: number;
}

/** What works on the queue of one graph. */
interface GraphWorker extends GraphQueue {
  readonly graph: AnyGraph;
  readonly listen: (event: AnyEvent) => void;
}

/**
 * Takes runs from the queue and works on them. There can be any number of workers on any number of machines. Each run
 * is claimed by one of them, saved after each node, and taken over by another if its worker dies or hangs.
 *
 * It starts immediately. It needs the packages `bullmq` and `pg`, or `ioredis`.
 *
 * @example
 * ```ts compile
 * import { StateGraph } from "waymark";
 * import { PostgresStore } from "waymark/stores/postgres";
 * import { Worker } from "waymark/worker";
 *
 * const article = new StateGraph<{ text: string }>({ name: "article" })
 *   .addNode("write", () => ({ text: "On cairns" }))
 *   .setEntryPoint("write")
 *   .setExitPoint("write");
 *
 * const connection = "postgres://localhost/app";
 * const worker = new Worker({
 *   graphs: [article],
 *   store: new PostgresStore({ client: connection }),
 *   connection,
 *   drainOn: ["SIGTERM"],
 * });
 * await worker.ready();
 * console.log(await worker.health());
 * await worker.close();
 * ```
 */
export class Worker {
  readonly #settings: WorkerSettings;
  readonly #active = new Map<string, ActiveRun>();
  readonly #draining = new AbortController();
  readonly #started = now();
  readonly #graphWorkers: GraphWorker[] = [];
  readonly #ready: Promise<void>;
  #engine: Engine | undefined;
  #stopWatching: () => void = () => {};
  #closing: Promise<void> | undefined;
  #isClosed = false;
  #takeovers = 0;
  #finished = { completed: 0, failed: 0 };
  #lastError: unknown;

  /**
   * @throws ConfigError if an option is invalid.
   * @throws GraphError if a graph is incomplete.
   */
  constructor(options: WorkerOptions);
  /** @internal */
  constructor(options: WorkerOptions, load: LoadPackage);
  constructor(options: WorkerOptions, load?: LoadPackage) {
    this.#settings = resolveWorkerOptions(options);
    // Every run listens to it.
    setMaxListeners(0, this.#draining.signal);
    this.#ready = this.#start(options.graphs, checkConnection(options.connection), load);
    this.#ready.catch((error: unknown) => this.#settings.onError(error));
    for (const signal of this.#settings.drainOn) process.once(signal, this.#drainAt);
  }

  /**
   * Resolves when the worker is ready to take runs.
   *
   * @throws ConfigError if a package is missing.
   * @throws WaymarkError with the code `QUEUE` if the queue can't be reached for `connection.retryFor`, or does not
   *   respond within `connection.statementTimeout`. The worker is then closed.
   */
  ready(): Promise<void> {
    return this.#ready;
  }

  /**
   * Stops taking runs, lets running nodes finish and be saved, and puts the runs back into the queue, where other
   * workers take them at once. Resolves when everything is closed except the store, which belongs to the caller.
   *
   * @throws ConfigError if an option is invalid.
   */
  close(options: CloseOptions = {}): Promise<void> {
    checkOptions("options", options, { timeout: duration });
    this.#closing ??= this.#close(options.timeout ?? 30_000);
    return this.#closing;
  }

  /**
   * Returns the worker's health, for a health endpoint. Queries the queue of each graph and the store, and waits two
   * seconds at most.
   */
  health(): Promise<WorkerHealth> {
    return health({
      store: this.#settings.store,
      graphWorkers: this.#graphWorkers,
      isClosing: this.#closing !== undefined,
      running: this.#active.size,
      lastError: this.#lastError,
    });
  }

  /** Returns metrics of this worker and, unless it is closed, of the queues of its graphs. Queries the queue. */
  async metrics(): Promise<WorkerMetrics> {
    // A closed queue never answers.
    const queues = await countRuns(this.#isClosed ? [] : this.#graphWorkers);
    const claimed = [...this.#active.values()].map(({ since }) => since);
    return {
      queues,
      running: this.#active.size,
      leaseAgeMs: claimed.length === 0 ? 0 : now() - Math.min(...claimed),
      takeovers: this.#takeovers,
      ...this.#finished,
      uptimeMs: now() - this.#started,
    };
  }

  async #start(
    graphs: readonly AnyGraph[],
    connection: CheckedConnection,
    load: LoadPackage | undefined,
  ): Promise<void> {
    const engine = await openEngine(connection, this.#failed, load);
    if (this.#closing !== undefined) return engine.close();
    this.#engine = engine;
    for (const graph of graphs) this.#graphWorkers.push(this.#graphWorker(engine, graph));
    try {
      const { limits } = this.#settings;
      for (const { graph, queue } of this.#graphWorkers)
        await applyLimits(queue, limits[graph.name]);
      const ready = Promise.all(this.#graphWorkers.map(({ worker }) => worker.waitUntilReady()));
      await answered(ready, engine.bounds.statementTimeout);
    } catch (error) {
      // A worker that could not start must not take runs later.
      await this.#disconnect(engine);
      throw error;
    }
    if (this.#closing !== undefined) return;
    this.#stopWatching = new Cancellations(engine).watch(this.#active, this.#failed);
    for (const { worker } of this.#graphWorkers) worker.run().catch(this.#failed);
  }

  async #disconnect(engine: Engine): Promise<void> {
    await Promise.all(this.#graphWorkers.map(({ worker }) => closed(worker, this.#failed)));
    await engine.close();
  }

  #graphWorker(engine: Engine, graph: AnyGraph): GraphWorker {
    const { lease, concurrency, backoff } = this.#settings;
    const name = queueName(graph.name);
    const queue = engine.queue(name);
    const onError = this.#failed;
    const times = leaseTimes(lease);
    const processor = new RunProcessor(
      graph,
      { ...this.#settings, active: this.#active, draining: this.#draining.signal, onError },
      {
        errors: engine.bullmq,
        getJob: (jobId) => queue.getJob(jobId),
        putFirst: (jobId) => engine.putFirst(queue, jobId),
      },
    );
    const worker = engine.worker(name, (job, token = "") => processor.process(job, token), {
      name: `${hostname()}:${process.pid}`,
      autorun: false,
      concurrency,
      lockDuration: times.lock,
      lockRenewTime: times.renew,
      stalledInterval: times.check,
      maxStalledCount: UNLIMITED,
      runRetryDelay: Math.min(1000, Math.ceil(lease / 4)),
      // On Redis nobody wakes an idle worker for a job whose lock has expired.
      drainDelay: Math.min(LONGEST_BLOCK, lease / 2000),
      settings: {
        backoffStrategy: (_made, _type, error) =>
          (error as RunFailure).retryAfter ?? Math.ceil(backoff),
      },
    });
    worker.on("stalled", (jobId) => {
      this.#takeovers++;
      engine.putFirst(queue, jobId).catch(onError);
    });
    worker.on("completed", () => this.#finished.completed++);
    worker.on("failed", (_job, error) => {
      if (error.name === "UnrecoverableError") this.#finished.failed++;
    });
    const listen = this.#forwarder(engine, name);
    if (this.#settings.events === true || this.#settings.events.size > 0) graph.on("*", listen);
    return { graph, queue, worker, listen };
  }

  /** Forwards the events of runs to remote listeners. */
  #forwarder(engine: Engine, name: string): (event: AnyEvent) => void {
    const { events } = this.#settings;
    return (event) => {
      const run = this.#active.get(event.runId);
      if (run === undefined || !(events === true || events.has(event.type))) return;
      const fields = { jobId: run.jobId, payload: JSON.stringify(event) };
      run.send(() => engine.publish(name, fields), this.#failed);
    };
  }

  async #close(timeout: number): Promise<void> {
    for (const signal of this.#settings.drainOn) process.off(signal, this.#drainAt);
    const reason = new Error("the worker closes");
    this.#draining.abort(reason);
    const isReady = this.#ready.catch(() => {});
    // A worker that is still waiting for its database closes the connection when it gets one.
    if (this.#engine !== undefined) await inTime(isReady, timeout);
    const drained = Promise.all(this.#graphWorkers.map(({ worker }) => worker.close()));
    if (!(await inTime(drained, timeout))) {
      for (const run of this.#active.values()) run.stop("close", reason);
      await inTime(drained, Math.min(GRACE, this.#settings.lease));
    }
    for (const { graph, listen } of this.#graphWorkers) graph.off("*", listen);
    this.#stopWatching();
    this.#isClosed = true;
    // A server that does not answer must not hold it up.
    await inTime(this.#engine?.close() ?? Promise.resolve(), GRACE);
  }

  readonly #drainAt = (signal: NodeJS.Signals): void => {
    this.close()
      .catch(this.#failed)
      // Now it does what it would have done.
      .finally(() => process.kill(process.pid, signal));
  };

  /** Whether an error is about a job that was given back while its lock was being renewed. */
  #isPast(error: unknown): boolean {
    const [, jobId] = RENEWAL.exec(messageOf(error)) ?? [];
    return jobId !== undefined && !this.#active.has(runIdOf(jobId));
  }

  readonly #failed = (error: unknown): void => {
    // What a run that was left behind can't report to the queue any more, another worker finds out.
    if (this.#isClosed || this.#isPast(error)) return;
    this.#lastError = error;
    this.#settings.onError(error);
  };
}

/** Applies limits to the queue; omitted limits keep their value. */
async function applyLimits(queue: RunQueue, limits: GraphLimits = {}): Promise<void> {
  const { concurrency, rate } = limits;
  if (concurrency === Number.POSITIVE_INFINITY) await queue.removeGlobalConcurrency();
  else if (concurrency !== undefined) await queue.setGlobalConcurrency(concurrency);
  if (rate?.max === Number.POSITIVE_INFINITY) await queue.removeGlobalRateLimit();
  else if (rate !== undefined) await queue.setGlobalRateLimit(rate.max, rate.duration);
}
