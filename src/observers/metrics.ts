/**
 * Metrics of runs, nodes and checkpoints.
 *
 * @packageDocumentation
 */
import type { EventMap } from "../event-map.js";
import type { AnyEvent, WaymarkEvent } from "../events.js";
import { checkOptions, integer } from "../options.js";
import { Ledger } from "../state/ledger.js";
import { dispatch, type Handlers } from "./dispatch.js";
import { Histogram } from "./histogram.js";
import { Rate } from "./metrics/rate.js";
import { type MetricsSnapshot, type NodeMetrics, toPrometheus } from "./metrics/snapshot.js";
import { StorageUse } from "./metrics/storage.js";

export type { HistogramBucket, HistogramSnapshot } from "./histogram.js";
export type { MetricsSnapshot, NodeMetrics } from "./metrics/snapshot.js";

/** Options of {@link metrics}. They bound the memory it uses. */
export interface MetricsOptions {
  /** How many nodes to count separately, an integer ≥ 1; 500 by default. The rest is counted together. */
  readonly maxNodes?: number;
  /** For how many runs to track resumes and stored bytes, an integer ≥ 1; 10,000 by default. */
  readonly maxRuns?: number;
  /** How many checkpoints of a run the store keeps; at least 1, 5 by default. */
  readonly keep?: number;
}

/** An observer that counts. */
export interface Metrics {
  /** Counts one event. */
  onEvent(event: AnyEvent): void;
  /** The current metrics. */
  snapshot(): MetricsSnapshot;
  /** The current metrics in the Prometheus text format, for `GET /metrics`. */
  prometheus(): string;
}

const nodeBounds = [
  1, 2, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 30_000, 60_000, 300_000,
];
const saveBounds = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000];
const sizeBounds = [0.25, 1, 4, 16, 64, 128, 256, 512, 1024, 4096, 16_384, 65_536, 102_400].map(
  (kilobytes) => kilobytes * 1024,
);
/** How many custom counters to track. */
const MAX_COUNTERS = 100;

/**
 * An observer that measures runs, nodes and checkpoints, in bounded memory.
 * It can observe several graphs.
 *
 * @throws ConfigError if an option is invalid.
 *
 * @example
 * ```ts
 * import { MemoryStore, State, StateGraph } from "waymark";
 * import { metrics } from "waymark/observers/metrics";
 *
 * const meter = metrics();
 * const graph = new StateGraph<{ n: number }>({
 *   observer: meter,
 *   checkpoint: { store: new MemoryStore(), interval: 1 },
 * })
 *   .addNode("count", (state) => ({ n: state.data.n + 1 }))
 *   .setEntryPoint("count")
 *   .setExitPoint("count");
 * await graph.execute(State.create({ n: 0 }));
 *
 * const { runs, checkpoints } = meter.snapshot();
 * console.log(runs.completed, checkpoints.saves); // 1 2
 * console.log(meter.prometheus().includes("waymark_runs_started_total 1")); // true
 * ```
 */
export function metrics(options: MetricsOptions = {}): Metrics {
  checkOptions("metrics", options, {
    maxNodes: integer(1),
    maxRuns: integer(1),
    keep: integer(1, true),
  });
  return new Meter(options);
}

interface NodeCounts {
  readonly graph: string;
  readonly node: string;
  completed: number;
  failed: number;
  retries: number;
  readonly duration: Histogram;
}

class Meter implements Metrics {
  readonly #maxNodes: number;
  readonly #maxRuns: number;
  readonly #storage: StorageUse;
  readonly #nodes = new Map<string, NodeCounts>();
  /** Runs that have not ended. Events of a graph inside one of their nodes belong to them. */
  readonly #active = new Set<string>();
  /** Runs that were resumed and have not ended. */
  readonly #recovering = new Set<string>();
  readonly #saveDuration = new Histogram(saveBounds);
  readonly #size = new Histogram(sizeBounds);
  readonly #saveRate = new Rate();
  #usage = Ledger.empty;
  #runs = { started: 0, resumed: 0, completed: 0, failed: 0, paused: 0 };
  #recovery = { attempts: 0, succeeded: 0, failed: 0 };
  #checkpoints = { loads: 0, deletes: 0, errors: 0, warnings: 0, quarantined: 0 };
  #events = 0;
  #adaptive: NonNullable<EventMap["checkpoint.save"]["adaptive"]> | undefined;
  /** Only the nodes of a graph inside a node are counted: the rest is already counted for the outer run. */
  readonly #inside: Handlers = {
    "node.retry": ({ source, data }) => this.#node(source, data.node).retries++,
    "node.complete": (event) => this.#timed(event),
  };
  readonly #handlers: Handlers = {
    ...this.#inside,
    "graph.start": ({ runId, data }) => {
      remember(this.#active, runId, this.#maxRuns);
      this.#runs[data.resumed ? "resumed" : "started"]++;
    },
    "graph.complete": ({ runId }) => this.#end("completed", runId),
    "graph.fail": ({ runId }) => this.#end("failed", runId),
    "graph.pause": ({ runId, data }) => {
      this.#used(data.usage);
      this.#end("paused", runId);
    },
    "node.complete": (event) => {
      this.#timed(event);
      this.#used(event.data.usage);
    },
    "checkpoint.save": (event) => this.#saved(event),
    "checkpoint.resume": ({ runId }) => {
      this.#recovery.attempts++;
      remember(this.#recovering, runId, this.#maxRuns);
    },
    "checkpoint.load": () => this.#checkpoints.loads++,
    "checkpoint.delete": ({ runId }) => {
      this.#checkpoints.deletes++;
      this.#storage.delete(runId);
    },
    "checkpoint.quarantine": () => this.#checkpoints.quarantined++,
    "checkpoint.warning": () => this.#checkpoints.warnings++,
    "checkpoint.error": ({ data }) => {
      this.#checkpoints.errors++;
      if (data.action !== "load") return;
      this.#recovery.attempts++;
      this.#recovery.failed++;
    },
  };

  constructor({ maxNodes = 500, maxRuns = 10_000, keep = 5 }: MetricsOptions) {
    this.#maxNodes = maxNodes;
    this.#maxRuns = maxRuns;
    this.#storage = new StorageUse(keep, maxRuns);
  }

  onEvent(event: AnyEvent): void {
    this.#events++;
    const isInside = event.rootRunId !== undefined && this.#active.has(event.rootRunId);
    dispatch(isInside ? this.#inside : this.#handlers, event);
  }

  snapshot(): MetricsSnapshot {
    const { started, resumed, completed, failed, paused } = this.#runs;
    const { succeeded, failed: lost } = this.#recovery;
    const durationMs = this.#saveDuration.snapshot();
    return {
      runs: {
        ...this.#runs,
        active: Math.max(0, started + resumed - completed - failed - paused),
      },
      recovery: {
        ...this.#recovery,
        successRate: succeeded + lost === 0 ? undefined : succeeded / (succeeded + lost),
      },
      nodes: [...this.#nodes.values()].map(toNodeMetrics),
      checkpoints: {
        ...this.#checkpoints,
        saves: durationMs.count,
        savesPerMinute: this.#saveRate.perMinute,
        durationMs,
        bytes: this.#size.snapshot(),
        ...(this.#adaptive && { adaptive: this.#adaptive }),
      },
      storage: { bytesWritten: this.#storage.written, bytesInUse: this.#storage.inUse },
      usage: this.#usage.usage,
      events: this.#events,
    };
  }

  prometheus(): string {
    return toPrometheus(this.snapshot());
  }

  #timed({ source, data }: WaymarkEvent<"node.complete">): void {
    const node = this.#node(source, data.node);
    node[data.error === undefined ? "completed" : "failed"]++;
    node.duration.record(data.durationMs);
  }

  #used(usage: WaymarkEvent<"node.complete">["data"]["usage"]): void {
    if (usage === undefined) return;
    const counted = this.#usage.addUsage("all", usage);
    const { counters, peaks } = counted.usage;
    const count = Object.keys(counters).length + Object.keys(peaks).length;
    if (count <= MAX_COUNTERS) this.#usage = counted;
  }

  #saved({ runId, data }: WaymarkEvent<"checkpoint.save">): void {
    this.#saveDuration.record(data.durationMs);
    this.#saveRate.add();
    if (data.adaptive !== undefined) this.#adaptive = data.adaptive;
    if (data.bytes === undefined) return;
    this.#size.record(data.bytes);
    this.#storage.save(runId, data.bytes);
  }

  #end(how: "completed" | "failed" | "paused", runId: string): void {
    this.#runs[how]++;
    this.#active.delete(runId);
    if (this.#recovering.delete(runId)) {
      this.#recovery[how === "failed" ? "failed" : "succeeded"]++;
    }
  }

  #node(graph: string, node: string): NodeCounts {
    const key = JSON.stringify([graph, node]);
    const known = this.#nodes.get(key);
    if (known !== undefined) return known;
    if (this.#nodes.size >= this.#maxNodes && node !== OTHER) return this.#node("", OTHER);
    const duration = new Histogram(nodeBounds);
    const counts = { graph, node, completed: 0, failed: 0, retries: 0, duration };
    this.#nodes.set(key, counts);
    return counts;
  }
}

const OTHER = "(other)";

/** Adds to a set of at most `most` values; the oldest is evicted. */
function remember(set: Set<string>, value: string, most: number): void {
  const [oldest] = set.size >= most ? set : [];
  if (oldest !== undefined) set.delete(oldest);
  set.add(value);
}

function toNodeMetrics({ duration, ...counts }: NodeCounts): NodeMetrics {
  return { ...counts, durationMs: duration.snapshot() };
}
