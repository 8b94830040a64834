import type { EventMap } from "../../event-map.js";
import type { UsageTotals } from "../../state/ledger.js";
import { Exposition } from "./exposition.js";
import type { HistogramSnapshot } from "./histogram.js";

/** Numbers about one node. */
export interface NodeMetrics {
  /** The name of its graph. */
  readonly graph: string;
  /** Its name; `(other)` for all nodes beyond those that are counted separately. */
  readonly node: string;
  /** How often it completed. */
  readonly completed: number;
  /** How often it failed after its last attempt. */
  readonly failed: number;
  /** How often it was tried again. */
  readonly retries: number;
  /** How long it took, in milliseconds, all attempts together. */
  readonly durationMs: HistogramSnapshot;
}

/** All numbers at one moment. */
export interface MetricsSnapshot {
  /** Runs in this process. */
  readonly runs: {
    /** Started from their entry point. */
    readonly started: number;
    /** Gone on from a checkpoint. */
    readonly resumed: number;
    /** Reached an exit point. */
    readonly completed: number;
    /** Ended with an error, or cancelled. */
    readonly failed: number;
    /** Wait for input. */
    readonly paused: number;
    /** Going on right now. */
    readonly active: number;
  };
  /** How resumed runs fared. */
  readonly recovery: {
    /** Runs that were resumed, or could not be. */
    readonly attempts: number;
    /** Those that then completed or paused. */
    readonly succeeded: number;
    /** Those that could not be loaded, or failed again. */
    readonly failed: number;
    /** The share of successes among those that have ended, from 0 to 1; `undefined` before the first. */
    readonly successRate: number | undefined;
  };
  /** Each node that ran. */
  readonly nodes: readonly NodeMetrics[];
  /** Checkpoints. */
  readonly checkpoints: {
    /** Saved. */
    readonly saves: number;
    /** Saved within the last minute. */
    readonly savesPerMinute: number;
    /** How long a save took, in milliseconds. */
    readonly durationMs: HistogramSnapshot;
    /** How large checkpoints were, where the store says so. */
    readonly bytes: HistogramSnapshot;
    /** Read. */
    readonly loads: number;
    /** Runs whose checkpoints were removed. */
    readonly deletes: number;
    /** Saves, loads and removals that failed. */
    readonly errors: number;
    /** What is worth knowing and is no error: large checkpoints, fallbacks past corrupt ones, fresh starts. */
    readonly warnings: number;
    /** Set aside because they were corrupt. */
    readonly quarantined: number;
    /** What the last decision to save was made of, in a graph with `interval: "adaptive"`. */
    readonly adaptive?: NonNullable<EventMap["checkpoint.save"]["adaptive"]>;
  };
  /** Room for checkpoints, where the store says how large they are. */
  readonly storage: {
    /** Bytes written since the start of the process. */
    readonly bytesWritten: number;
    /** About how many are there now, of what this process has written. */
    readonly bytesInUse: number;
  };
  /** What nodes wrote into the ledger as used. */
  readonly usage: UsageTotals;
  /** Events seen. */
  readonly events: number;
}

/** A snapshot in the text format of Prometheus. */
export function toPrometheus(snapshot: MetricsSnapshot): string {
  const { runs, recovery, nodes, checkpoints, storage, usage } = snapshot;
  const { counters, peaks, memoryPeakMb, ...sums } = usage;
  const byStatus = (["completed", "failed", "paused"] as const).map((status) => ({
    labels: { status },
    value: runs[status],
  }));
  const ofNodes = (value: (node: NodeMetrics) => number) =>
    nodes.map((one) => ({ labels: { graph: one.graph, node: one.node }, value: value(one) }));
  const text = new Exposition()
    .counter("waymark_runs_started_total", "Runs started.", runs.started)
    .counter("waymark_runs_resumed_total", "Runs resumed.", runs.resumed)
    .counter("waymark_runs_ended_total", "Runs ended, by how.", byStatus)
    .gauge("waymark_runs_active", "Runs under way.", runs.active)
    .counter("waymark_recovery_attempts_total", "Runs to recover.", recovery.attempts)
    .counter("waymark_recovery_succeeded_total", "Recovered runs.", recovery.succeeded)
    .counter("waymark_recovery_failed_total", "Runs not recovered.", recovery.failed)
    .counter(
      "waymark_node_completed_total",
      "Nodes completed.",
      ofNodes((one) => one.completed),
    )
    .counter(
      "waymark_node_failed_total",
      "Nodes failed.",
      ofNodes((one) => one.failed),
    )
    .counter(
      "waymark_node_retries_total",
      "Nodes tried again.",
      ofNodes((one) => one.retries),
    )
    .histogram(
      "waymark_node_duration_seconds",
      "How long nodes took.",
      1000,
      nodes.map(({ graph, node, durationMs }) => ({ labels: { graph, node }, value: durationMs })),
    )
    .histogram("waymark_checkpoint_save_duration_seconds", "How long saves took.", 1000, [
      { value: checkpoints.durationMs },
    ])
    .histogram("waymark_checkpoint_size_bytes", "How large checkpoints were.", 1, [
      { value: checkpoints.bytes },
    ])
    .counter("waymark_checkpoint_loads_total", "Checkpoints read.", checkpoints.loads)
    .counter("waymark_checkpoint_deletes_total", "Runs removed.", checkpoints.deletes)
    .counter("waymark_checkpoint_errors_total", "What failed in the store.", checkpoints.errors)
    .counter("waymark_checkpoint_warnings_total", "Warnings.", checkpoints.warnings)
    .counter(
      "waymark_checkpoint_quarantined_total",
      "Corrupt checkpoints.",
      checkpoints.quarantined,
    )
    .counter("waymark_storage_written_bytes_total", "Bytes written.", storage.bytesWritten)
    .gauge("waymark_storage_bytes", "Bytes in use, about.", storage.bytesInUse)
    .counter("waymark_usage_total", "What nodes used.", samplesOf({ ...sums, ...counters }))
    .gauge(
      "waymark_usage_peak",
      "The most that nodes used.",
      samplesOf({ memoryPeakMb, ...peaks }),
    );
  const { adaptive } = checkpoints;
  if (adaptive !== undefined)
    text.gauge(
      "waymark_checkpoint_adaptive_seconds",
      "What the last decision to save was made of.",
      [
        { labels: { input: "unsaved" }, value: adaptive.unsavedMs / 1000 },
        { labels: { input: "interval" }, value: adaptive.intervalMs / 1000 },
        { labels: { input: "due" }, value: adaptive.dueMs / 1000 },
        { labels: { input: "save" }, value: adaptive.saveMs / 1000 },
        { labels: { input: "failure" }, value: adaptive.failureMs / 1000 },
      ],
    );
  if (recovery.successRate !== undefined)
    text.gauge("waymark_recovery_success_ratio", "Share recovered.", recovery.successRate);
  return text.toString();
}

function samplesOf(values: Readonly<Record<string, number>>) {
  return Object.entries(values).map(([counter, value]) => ({ labels: { counter }, value }));
}
