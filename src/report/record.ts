import type { Agent, Decision, Output, UsageTotals } from "../state/ledger.js";
import type { Metadata, RunStatus } from "../state/record.js";
import type { StepRecord } from "../state/steps.js";

/** One visit of a node that completed. */
export interface StepReport {
  /** Its place in the run, from 1 up. */
  readonly step: number;
  /** The node. */
  readonly node: string;
  /** What the node is a part of; `""` for nothing. */
  readonly phase: string;
  /** Whether a checkpoint holds it. If not, it runs again on resume. */
  readonly saved: boolean;
  /** When it started, ISO 8601; `undefined` when neither checkpoint nor log knows. */
  readonly startedAt: string | undefined;
  /** When it completed, ISO 8601. */
  readonly completedAt: string;
  /** How long it worked, in milliseconds; `undefined` when neither checkpoint nor log knows. */
  readonly durationMs: number | undefined;
  /** How often it was tried, over all resumes. */
  readonly attempts: number;
  /** The attempts that failed, oldest first; the newest 20, as the checkpoint has them. */
  readonly failedAttempts?: NonNullable<StepRecord["failedAttempts"]>;
  /** When the last attempt began, ISO 8601; absent if none failed, or where only the log knows it. */
  readonly lastAttemptAt?: string;
  /** How often it was begun again after its process had died; absent for never, or where only the log knows it. */
  readonly restarts?: number;
  /** Its items, tasks, calls of `once` and inner nodes, in the order they ended; the newest 100, as the checkpoint has them. */
  readonly items?: NonNullable<StepRecord["items"]>;
  /** What it used, including failed attempts that a checkpoint holds; `undefined` for nothing, or if unknown. */
  readonly usage: UsageTotals | undefined;
  /** What it made, by name. */
  readonly outputs: Readonly<Record<string, Output>>;
}

/** What made a run end early. */
export interface ReportError {
  /** The name of the error, or its code when only the log knows of it. */
  readonly name: string;
  /** Its message. */
  readonly message: string;
  /** The node that was running. */
  readonly node: string;
  /** Where it was thrown, as far as the checkpoint keeps it. */
  readonly stack?: string;
}

/** What happened in a run, over all processes that worked on it. All of it is JSON, except what outputs and agents hold. */
export interface RunReport {
  /** The run. */
  readonly runId: string;
  /** The name of its graph. */
  readonly graph: string;
  /** What it is doing, or how it ended. */
  readonly status: RunStatus;
  /** When it started, ISO 8601; `undefined` if unknown. */
  readonly startedAt: string | undefined;
  /** When something last happened, ISO 8601. */
  readonly updatedAt: string;
  /** From start to last event, in milliseconds, including times when nobody worked on it. */
  readonly elapsedMs: number | undefined;
  /** How often it was resumed. */
  readonly resumes: number;
  /** How often it was resumed after its process had died. */
  readonly crashes: number;
  /** The phase of the node that completed last; `""` for none. */
  readonly phase: string;
  /** What the run belongs to. */
  readonly metadata: Metadata;
  /** The steps that completed, in their order; those that neither store nor log remember are not there. */
  readonly steps: readonly StepReport[];
  /** How many nodes have completed. */
  readonly completedSteps: number;
  /** The node that completed last; `undefined` before the first. */
  readonly lastStep: string | undefined;
  /** The node that runs next, or is running; `undefined` if none is, or it is unknown. */
  readonly nextStep: string | undefined;
  /** Sums over the run. */
  readonly totals: {
    /** What the ledger says was used. */
    readonly usage: UsageTotals;
    /** How long nodes worked, in milliseconds: without the time when nobody worked on the run. */
    readonly durationMs: number;
  };
  /** What was used by each node. */
  readonly nodes: Readonly<Record<string, UsageTotals>>;
  /** Work that was done and lost, because a process died before it was saved or the run was set back. */
  readonly repeated: {
    /** How many visits of nodes, unfinished ones too; without a log one for each crash. */
    readonly visits: number;
    /** What they used, as the log shows. The ledger does not count it. */
    readonly usage: UsageTotals;
  };
  /** What was decided, newest last. */
  readonly decisions: readonly Decision[];
  /** The agents, by id. */
  readonly agents: Readonly<Record<string, Agent>>;
  /** How sure the run is; see `confidence` of the ledger. */
  readonly confidence: number | undefined;
  /** What made it end early; `undefined` if nothing did, or it has continued since. */
  readonly error: ReportError | undefined;
}
