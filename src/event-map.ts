import type { Usage, UsageCall } from "./usage.js";

/** The position in a run where something happened. */
export type AtNode = {
  /** The node. */
  readonly node: string;
  /** How many nodes have completed. */
  readonly step: number;
};

/** How many keys a State has, or how many were set. */
export type KeysData = {
  /** How many. */
  readonly keys: number;
};

/** Which key was set. The value is not in the event. */
export type KeyData = {
  /** The key. */
  readonly key: string;
};

/** How a run starts. */
export type GraphStartData = {
  /** The graph's entry point. */
  readonly entryPoint: string;
  /** How many nodes have completed. */
  readonly step: number;
  /** Whether it continues after a resume. */
  readonly resumed: boolean;
};

/** Where a run ended. */
export type GraphCompleteData = {
  /** The exit point. */
  readonly exitPoint: string;
  /** How many nodes have completed. */
  readonly step: number;
};

/** Why a run ended early. */
export type GraphFailData = AtNode & {
  /** The code of the error. */
  readonly code: string;
  /** Its message. */
  readonly error: string;
  /** What was thrown: by the node, the predicate or the store. */
  readonly cause?: unknown;
};

/** Why a run waits. */
export type GraphPauseData = AtNode & {
  /** The reasons of its pauses. */
  readonly reason: string;
  /** The usage that a node recorded in the ledger before it paused; its `node.complete` has only the rest. */
  readonly usage?: Usage;
};

/** What was expected, and what was found. */
export type MismatchData = {
  /** What should be there. */
  readonly expected: string;
  /** What was there. */
  readonly actual: string;
};

/**
 * How a graph has changed since a checkpoint was made. The lists are absent if the store does not have the
 * earlier topology.
 */
export type GraphMismatchData = MismatchData & {
  /** Nodes that only this graph has. */
  readonly added?: readonly string[];
  /** Nodes that only the earlier graph had. */
  readonly removed?: readonly string[];
  /** Nodes whose edges differ, or that became or ceased to be exit points. */
  readonly rewired?: readonly string[];
};

/** How a node ended. */
export type NodeCompleteData = AtNode & {
  /** How long it took, in milliseconds. */
  readonly durationMs: number;
  /** The message of the error it ended with. */
  readonly error?: string;
  /** What the node threw. */
  readonly cause?: unknown;
  /** The usage it recorded in the ledger. */
  readonly usage?: Usage;
};

/** An attempt that failed. */
export type NodeRetryData = AtNode & {
  /** Which attempt it was, from 1 up. */
  readonly attempt: number;
  /** The message of its error. */
  readonly error: string;
  /** What the attempt threw. */
  readonly cause?: unknown;
  /** How long the run waits before the next attempt, in milliseconds. */
  readonly delayMs: number;
};

/** An edge. */
export type EdgeData = {
  /** The node it leads from. */
  readonly from: string;
  /** The node it leads to. */
  readonly to: string;
  /** Its name, if it has one. */
  readonly name?: string;
};

/** An edge, and the result of its predicate. */
export type EdgeEvaluateData = EdgeData & {
  /** Whether it is taken. */
  readonly result: boolean;
};

/** A node that runs again. */
export type CycleData = AtNode & {
  /** The number of this visit, starting at 2. */
  readonly visitCount: number;
};

/** Who touched a checkpoint, if the graph's `audit` option says so. */
export type Audit = {
  /** A person or a service. */
  readonly actor?: string;
  /** The purpose. */
  readonly purpose?: string;
};

/** A checkpoint that was saved. */
export type CheckpointSaveData = AtNode &
  Audit & {
    /** Its position in the run's history. */
    readonly sequence: number;
    /** Its id. */
    readonly checkpointId: string;
    /** Why it was saved. */
    readonly reason: string;
    /** Its size in bytes, if the store knows it. */
    readonly bytes?: number;
    /** How long the save took, in milliseconds. */
    readonly durationMs: number;
    /** With `interval: "adaptive"`: what the decision was based on. */
    readonly adaptive?: AdaptiveDecision;
  };

/** What a decision to save was based on, with `interval: "adaptive"`. */
export type AdaptiveDecision = {
  /** What made the save due; absent if something else did: the start, a pause, a trigger, the end. */
  readonly rule?: "interval" | "maxLoss.ms" | "maxLoss.costUsd";
  /** The unsaved work, in milliseconds. */
  readonly unsavedMs: number;
  /** The cost of that work, by the ledger. */
  readonly unsavedUsd: number;
  /** The optimal amount of work between two saves, in milliseconds. */
  readonly intervalMs: number;
  /** How much unsaved work makes a save due before the next node, in milliseconds: less if that node takes long. */
  readonly dueMs: number;
  /** What a save costs, in milliseconds. */
  readonly saveMs: number;
  /** The mean time between two failures, in milliseconds. */
  readonly failureMs: number;
};

/** A checkpoint that was read. */
export type CheckpointLoadData = AtNode &
  Audit & {
    /** Its id. */
    readonly checkpointId: string;
  };

/** Whose checkpoints were removed. */
export type CheckpointDeleteData = AtNode & Audit;

/** Where a run continues. */
export type CheckpointResumeData = AtNode & {
  /** The node that runs first. */
  readonly resumeNode: string;
};

/** A checkpoint that was set aside. */
export type QuarantineData = MismatchData & {
  /** Where it is or was. */
  readonly file: string;
};

/** A problem with a checkpoint that does not stop the run. */
export type CheckpointErrorData = {
  /** What was being done. */
  readonly action: "save" | "delete" | "load";
  /** The last node that completed. */
  readonly node: string;
  /** What went wrong. */
  readonly error: string;
};

/** A warning about a checkpoint. */
export type CheckpointWarningData = {
  /**
   * `size`: it is large; `fallback`: a corrupt one was skipped; `fresh-start`: all were corrupt, so the run
   * starts over.
   */
  readonly kind: "size" | "fallback" | "fresh-start";
  /** The last node that completed. */
  readonly node: string;
  /** What it is about. */
  readonly message: string;
};

/** The usage of one call, as the node recorded it. */
export type UsageData = AtNode & UsageCall;

/** A warning about model and tool calls. */
export type AiWarningData = AtNode & {
  /** `changed-call`: the model was asked something different than before the resume, so it was called again. */
  readonly kind: "changed-call";
  /** What it is about. */
  readonly message: string;
};

/** A decision of a node. */
export type DecisionData = AtNode & {
  /** What kind of decision it is. */
  readonly type?: string;
  /** What was decided. */
  readonly description: string;
  /** Why. */
  readonly rationale?: string;
  /** The confidence, from 0 to 1. */
  readonly confidence?: number;
  /** What else was considered. */
  readonly alternatives?: readonly string[];
  /** The id of the agent that decided. */
  readonly agent?: string;
};

/** A finished part of a run's output. */
export type ProgressData = AtNode & {
  /** Its heading. */
  readonly title: string;
  /** What was found or made. */
  readonly summary: string;
  /** Its sources. */
  readonly sources: readonly string[];
  /** The task of a dag, or the item of a list, that made it; as in the events of the item. */
  readonly item?: string;
};

/** The progress of a list of items. */
export type ItemsData = AtNode & {
  /** How many items there are. */
  readonly total: number;
  /** How many have completed, including those of an earlier attempt or process. */
  readonly completed: number;
};

/** How a list of items starts in parallel. */
export type ParallelStartData = ItemsData & {
  /** How many run at once. */
  readonly concurrency: number;
};

/** How a list of items ended. */
export type ItemsCompleteData = ItemsData & {
  /** The message of the error it ended with. */
  readonly error?: string;
};

/** How a list of items ended in parallel. */
export type ParallelCompleteData = ItemsCompleteData & {
  /** How many failed. */
  readonly failed: number;
};

/** One of a list of items. */
export type ItemData = AtNode & {
  /** Its index in the list. */
  readonly index: number;
  /** Its name: a task's name, the item itself if it is a string or a number, otherwise `#` and its index. */
  readonly item: string;
  /** How many items there are. */
  readonly total: number;
  /** The phase of a task that has one. */
  readonly phase?: string;
};

/** A failed attempt at one of a list of items. */
export type ItemRetryData = ItemData & {
  /** Which attempt it was, from 1 up. */
  readonly attempt: number;
  /** The message of its error. */
  readonly error: string;
  /** What the attempt threw. */
  readonly cause?: unknown;
  /** How long the item waits before the next attempt, in milliseconds. */
  readonly delayMs: number;
};

/** How one of a list of items ended. */
export type ItemCompleteData = ItemData & {
  /** How long all attempts took together, in milliseconds. */
  readonly durationMs: number;
  /** The message of the error it ended with. */
  readonly error?: string;
};

/** The route that was chosen. */
export type RouteSelectData = AtNode & {
  /** Its name. */
  readonly route: string;
  /** Whether the fallback runs, because there is no such route. */
  readonly fallback: boolean;
};

/** How the handler of a route ended. */
export type RouteExecuteData = RouteSelectData & {
  /** The message of the error it ended with. */
  readonly error?: string;
};

/** What a queue reports about a run. */
export type QueueData = {
  /** The message of the error, if it failed. */
  readonly error?: string;
};

/** What each event carries in `data`. Packages that emit their own events add to this interface. */
export interface EventMap {
  /** A State was created. */
  "state.create": KeysData;
  /** A State was cloned. */
  "state.clone": KeysData;
  /** One key was set. */
  "state.set": KeyData;
  /** Several keys were set, by `merge`, `update` or a node that returned an object. */
  "state.merge": KeysData;

  /** A run starts, or continues after a resume. */
  "graph.start": GraphStartData;
  /** A run reached an exit point. */
  "graph.complete": GraphCompleteData;
  /** A run ended with an error, or was cancelled. */
  "graph.fail": GraphFailData;
  /** A run is waiting for input, or stopped at a breakpoint. */
  "graph.pause": GraphPauseData;
  /** A checkpoint was made by a graph of another name or topology. */
  "graph.mismatch": GraphMismatchData;

  /** A node is about to run. */
  "node.start": AtNode;
  /** A node returned, or threw. */
  "node.complete": NodeCompleteData;
  /** An attempt of a node failed; there will be another. */
  "node.retry": NodeRetryData;

  /** A predicate was evaluated. */
  "edge.evaluate": EdgeEvaluateData;
  /** The run follows this edge. */
  "edge.transition": EdgeData;
  /** A node is about to run again. */
  "cycle.detected": CycleData;

  /** A checkpoint is in the store. */
  "checkpoint.save": CheckpointSaveData;
  /** A checkpoint was read. */
  "checkpoint.load": CheckpointLoadData;
  /** A run continues. */
  "checkpoint.resume": CheckpointResumeData;
  /** The checkpoints of a finished run were removed. */
  "checkpoint.delete": CheckpointDeleteData;
  /** A damaged checkpoint was set aside. */
  "checkpoint.quarantine": QuarantineData;
  /** A save, a removal or a load failed, and the run continues without it. */
  "checkpoint.error": CheckpointErrorData;
  /** A checkpoint is large, or a corrupt one was skipped; never an error. */
  "checkpoint.warning": CheckpointWarningData;

  /** A chain starts, or continues. */
  "chain.start": ItemsData;
  /** A chain ended, or failed. */
  "chain.complete": ItemsCompleteData;
  /** A step of a chain is about to run. */
  "step.start": ItemData;
  /** A step of a chain returned, or threw. */
  "step.complete": ItemCompleteData;
  /** A parallel node starts, or continues. */
  "parallel.start": ParallelStartData;
  /** A parallel node ended, or failed. */
  "parallel.complete": ParallelCompleteData;
  /** A worker of a parallel node begins an item. */
  "worker.start": ItemData;
  /** An attempt at an item failed; there will be another. */
  "worker.retry": ItemRetryData;
  /** A worker returned, or threw. */
  "worker.complete": ItemCompleteData;
  /** A route is about to be chosen. */
  "route.evaluate": AtNode;
  /** A route was chosen. */
  "route.select": RouteSelectData;
  /** The handler of a route returned, or threw. */
  "route.execute": RouteExecuteData;

  /** A run is waiting in the queue for a worker. */
  "run.waiting": QueueData;
  /** A worker has the run. */
  "run.active": QueueData;
  /** The run is waiting for a point in time, or for input. */
  "run.delayed": QueueData;
  /** The run's worker died; another takes over. */
  "run.stalled": QueueData;
  /** The run has left the queue, completed. */
  "run.completed": QueueData;
  /** The run was removed from the queue. */
  "run.cancelled": QueueData;
  /** The run failed for good. */
  "run.failed": QueueData;

  /** A node recorded the usage of a call in the ledger. */
  usage: UsageData;
  /** A call of `waymark/ai` does not match the recorded one; never an error. */
  "ai.warning": AiWarningData;
  /** A node recorded a decision in the ledger. */
  decision: DecisionData;
  /** A node finished a part of the run's output. */
  progress: ProgressData;
}
