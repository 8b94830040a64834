import type { EventMap } from "../../event-map.js";
import type { UsageTotals } from "../../state/ledger.js";
import { Exposition } from "../exposition.js";
import type { HistogramSnapshot } from "../histogram.js";

/** Metrics of one node. */
export interface NodeMetrics {
  /** The name of its graph. */
  readonly graph: string;
  /** Its name; `(other)` for all nodes that are not counted separately. */
  readonly node: string;
  /** How often it completed. */
  readonly completed: number;
  /** How often it failed after its last attempt. */
  readonly failed: number;
  /** How often it was retried. */
  readonly retries: number;
  /** How long it took with all attempts, in milliseconds. */
  readonly durationMs: HistogramSnapshot;
}

/** All metrics at one moment. */
export interface MetricsSnapshot {
  /** Runs in this process. */
  readonly runs: {
    /** Started from their entry point. */
    readonly started: number;
    /** Resumed from a checkpoint. */
    readonly resumed: number;
    /** Completed. */
    readonly completed: number;
    /** Failed or cancelled. */
    readonly failed: number;
    /** Paused. */
    readonly paused: number;
    /** In progress right now. */
    readonly active: number;
  };
  /** What became of resumed runs. */
  readonly recovery: {
    /** Runs that were resumed, or could not be. */
    readonly attempts: number;
    /** Runs that then completed or paused. */
    readonly succeeded: number;
    /** Runs that could not be loaded, or failed again. */
    readonly failed: number;
    /** The success rate of those that have ended, from 0 to 1; `undefined` before the first. */
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
    /** How large checkpoints were, in bytes, if the store reports it. */
    readonly bytes: HistogramSnapshot;
    /** Read. */
    readonly loads: number;
    /** Runs whose checkpoints were removed. */
    readonly deletes: number;
    /** Saves, loads and removals that failed. */
    readonly errors: number;
    /** Warnings: large checkpoints, fallbacks from corrupt ones, runs that started over. */
    readonly warnings: number;
    /** Quarantined because they were corrupt. */
    readonly quarantined: number;
    /** The inputs of the last decision to save, in a graph with `interval: "adaptive"`. */
    readonly adaptive?: NonNullable<EventMap["checkpoint.save"]["adaptive"]>;
  };
  /** The size of checkpoints, if the store reports it. */
  readonly storage: {
    /** Bytes written since the process started. */
    readonly bytesWritten: number;
    /** An estimate of how many of them are still stored. */
    readonly bytesInUse: number;
  };
  /** The usage that nodes recorded in the ledger. */
  readonly usage: UsageTotals;
  /** How many events there were. */
  readonly events: number;
}

/** A snapshot in the text format of Prometheus. */
export function toPrometheus(snapshot: MetricsSnapshot): string {
  const { runs, recovery, nodes, checkpoints, storage, usage } = snapshot;
  const { counters, peaks, memoryPeakMb, ...sums } = usage;
  const { durationMs, bytes, adaptive } = checkpoints;
  const byStatus = (["completed", "failed", "paused"] as const).map((status) => ({
    labels: { status },
    value: runs[status],
  }));
  const ofNodes = <K extends keyof NodeMetrics>(name: K) =>
    nodes.map((one) => ({ labels: { graph: one.graph, node: one.node }, value: one[name] }));
  const text = new Exposition()
    .counter("waymark_runs_started_total", "Runs started.", runs.started)
    .counter("waymark_runs_resumed_total", "Runs resumed.", runs.resumed)
    .counter("waymark_runs_ended_total", "Runs ended, by status.", byStatus)
    .gauge("waymark_runs_active", "Runs in progress.", runs.active)
    .counter(
      "waymark_recovery_attempts_total",
      "Runs resumed, or that could not be.",
      recovery.attempts,
    )
    .counter(
      "waymark_recovery_succeeded_total",
      "Resumed runs that completed or paused.",
      recovery.succeeded,
    )
    .counter("waymark_recovery_failed_total", "Resumed runs that failed.", recovery.failed)
    .counter("waymark_node_completed_total", "Nodes completed.", ofNodes("completed"))
    .counter("waymark_node_failed_total", "Nodes failed.", ofNodes("failed"))
    .counter("waymark_node_retries_total", "Retries of nodes.", ofNodes("retries"))
    .histogram("waymark_node_duration_seconds", "Duration of nodes.", 1000, ofNodes("durationMs"))
    .histogram("waymark_checkpoint_save_duration_seconds", "Duration of saves.", 1000, durationMs)
    .histogram("waymark_checkpoint_size_bytes", "Size of checkpoints.", 1, bytes)
    .counter("waymark_checkpoint_loads_total", "Checkpoints read.", checkpoints.loads)
    .counter("waymark_checkpoint_deletes_total", "Runs removed.", checkpoints.deletes)
    .counter(
      "waymark_checkpoint_errors_total",
      "Saves, loads and removals that failed.",
      checkpoints.errors,
    )
    .counter("waymark_checkpoint_warnings_total", "Warnings.", checkpoints.warnings)
    .counter(
      "waymark_checkpoint_quarantined_total",
      "Corrupt checkpoints.",
      checkpoints.quarantined,
    )
    .counter("waymark_storage_written_bytes_total", "Bytes written.", storage.bytesWritten)
    .gauge("waymark_storage_bytes", "Estimated bytes in use.", storage.bytesInUse)
    .counter("waymark_usage_total", "Usage recorded by nodes.", samplesOf({ ...sums, ...counters }))
    .gauge(
      "waymark_usage_peak",
      "Peak usage recorded by nodes.",
      samplesOf({ memoryPeakMb, ...peaks }),
    );
  if (adaptive !== undefined)
    text.gauge(
      "waymark_checkpoint_adaptive_seconds",
      "Inputs of the last decision to save.",
      (["unsaved", "interval", "due", "save", "failure"] as const).map((input) => ({
        labels: { input },
        value: adaptive[`${input}Ms`] / 1000,
      })),
    );
  if (recovery.successRate !== undefined)
    text.gauge(
      "waymark_recovery_success_ratio",
      "Success rate of resumed runs.",
      recovery.successRate,
    );
  return text.toString();
}

function samplesOf(values: Readonly<Record<string, number>>) {
  return Object.entries(values).map(([counter, value]) => ({ labels: { counter }, value }));
}
