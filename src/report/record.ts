import type { Agent, Decision, Output, UsageTotals } from "../state/ledger.js";
import type { Metadata } from "../state/metadata.js";
import type { RunStatus } from "../state/record.js";
import type { StepRecord } from "../state/steps.js";

/** A completed step of a run. */
export interface StepReport {
  /** Its number in the run, starting at 1. */
  readonly step: number;
  /** The node. */
  readonly node: string;
  /** The phase of the node; `""` for none. */
  readonly phase: string;
  /** Whether a checkpoint contains it. If not, it runs again on resume. */
  readonly saved: boolean;
  /** When it started, ISO 8601; `undefined` if unknown. */
  readonly startedAt: string | undefined;
  /** When it completed, ISO 8601. */
  readonly completedAt: string;
  /** How long it worked, in milliseconds; `undefined` if unknown. */
  readonly durationMs: number | undefined;
  /** How many attempts it took, across all resumes. */
  readonly attempts: number;
  /** The failed attempts, oldest first, if they are in the checkpoint; the newest 20. */
  readonly failedAttempts?: NonNullable<StepRecord["failedAttempts"]>;
  /** When the last attempt began, ISO 8601; absent if none failed, or if only the log has the step. */
  readonly lastAttemptAt?: string;
  /** How often it was restarted after its process had died; absent if never, or if only the log has the step. */
  readonly restarts?: number;
  /** Its items, tasks, calls of `once` and inner nodes, if they are in the checkpoint, in the order they ended; the newest 100. */
  readonly items?: NonNullable<StepRecord["items"]>;
  /** Its usage, including failed attempts that a checkpoint contains; `undefined` if there was none, or it is unknown. */
  readonly usage: UsageTotals | undefined;
  /** Its outputs, by name. */
  readonly outputs: Readonly<Record<string, Output>>;
}

/** The error that a run failed with. */
export interface ReportError {
  /** The name of the error, or its code if only the log has it. */
  readonly name: string;
  /** Its message. */
  readonly message: string;
  /** The node that was running. */
  readonly node: string;
  /** The stack, if the checkpoint has it; it may be cut. */
  readonly stack?: string;
}

/** What happened in a run, across all processes that worked on it. It is JSON, except for the values in outputs and agents. */
export interface RunReport {
  /** The run. */
  readonly runId: string;
  /** The name of its graph. */
  readonly graph: string;
  /** Its status. */
  readonly status: RunStatus;
  /** When it started, ISO 8601; `undefined` if unknown. */
  readonly startedAt: string | undefined;
  /** When something last happened, ISO 8601. */
  readonly updatedAt: string;
  /** From its start to `updatedAt`, in milliseconds, including pauses and downtime. */
  readonly elapsedMs: number | undefined;
  /** How often it was resumed. */
  readonly resumes: number;
  /** How often it was resumed after its process had died. */
  readonly crashes: number;
  /** The phase of the node that completed last; `""` for none. */
  readonly phase: string;
  /** Its metadata. */
  readonly metadata: Metadata;
  /** How the graph that ran it last saves and guards it; empty if unknown. */
  readonly config: Metadata;
  /** The completed steps, in order, as far as the store or the log has them. */
  readonly steps: readonly StepReport[];
  /** How many nodes have completed. */
  readonly completedSteps: number;
  /** The node that completed last; `undefined` before the first. */
  readonly lastStep: string | undefined;
  /** The node that is running or runs next; `undefined` if there is none, or it is unknown. */
  readonly nextStep: string | undefined;
  /** Totals of the run. */
  readonly totals: {
    /** The usage in the ledger. */
    readonly usage: UsageTotals;
    /** How long nodes worked, in milliseconds, without pauses and downtime. */
    readonly durationMs: number;
  };
  /** The usage of each node. */
  readonly nodes: Readonly<Record<string, UsageTotals>>;
  /** Work that was lost because a process died before it was saved, or because the run was rolled back. */
  readonly repeated: {
    /** How many visits of nodes were lost, including unfinished ones; without a log, one for each crash. */
    readonly visits: number;
    /** Their usage according to the log. The ledger does not include it. */
    readonly usage: UsageTotals;
  };
  /** The decisions, newest last. */
  readonly decisions: readonly Decision[];
  /** The agents, by id. */
  readonly agents: Readonly<Record<string, Agent>>;
  /** The confidence of the run; see `confidence` of the ledger. */
  readonly confidence: number | undefined;
  /** The error it failed with; `undefined` if it did not fail, or has continued since. */
  readonly error: ReportError | undefined;
}
