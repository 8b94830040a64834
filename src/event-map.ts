/** Where in a run something happened. */
export interface AtNode {
  /** The node. */
  readonly node: string;
  /** How many nodes have completed. */
  readonly step: number;
}

/** Who had to do with a checkpoint, where the graph's `audit` option says so. */
export interface Audit {
  /** A person or a service. */
  readonly actor?: string;
  /** What for. */
  readonly purpose?: string;
}

/** How many keys a State has, or how many were set. */
export interface KeysData {
  /** How many. */
  readonly keys: number;
}

/** Which key was set. The value is not in the event. */
export interface KeyData {
  /** The key. */
  readonly key: string;
}

/** How a run starts. */
export interface GraphStartData {
  /** The graph's entry point. */
  readonly entryPoint: string;
  /** How many nodes have completed. */
  readonly step: number;
  /** Whether it goes on after a resume. */
  readonly resumed: boolean;
}

/** Where a run ended. */
export interface GraphCompleteData {
  /** The exit point. */
  readonly exitPoint: string;
  /** How many nodes have completed. */
  readonly step: number;
}

/** Why a run ended early. */
export interface GraphFailData extends AtNode {
  /** The code of the error. */
  readonly code: string;
  /** Its message. */
  readonly error: string;
}

/** Why a run waits. */
export interface GraphPauseData extends AtNode {
  /** The reasons of its pauses. */
  readonly reason: string;
  /** What a node that paused before its end wrote into the ledger as used; its `node.complete` tells only the rest. */
  readonly usage?: Readonly<Record<string, number | undefined>>;
}

/** What was wanted, and what was found. */
export interface MismatchData {
  /** What was to be there. */
  readonly expected: string;
  /** What was there. */
  readonly actual: string;
}

/** How a node ended. */
export interface NodeCompleteData extends AtNode {
  /** How long it took. */
  readonly durationMs: number;
  /** The message of the error it ended with. */
  readonly error?: string;
  /** What it wrote into the ledger as used. */
  readonly usage?: Readonly<Record<string, number | undefined>>;
}

/** An attempt that failed. */
export interface NodeRetryData extends AtNode {
  /** Which attempt it was, from 1 up. */
  readonly attempt: number;
  /** The message of its error. */
  readonly error: string;
  /** How long the run waits before the next. */
  readonly delayMs: number;
}

/** An edge. */
export interface EdgeData {
  /** The node it comes from. */
  readonly from: string;
  /** The node it goes to. */
  readonly to: string;
  /** Its name, if it has one. */
  readonly name?: string;
}

/** An edge, and what its predicate said. */
export interface EdgeEvaluateData extends EdgeData {
  /** Whether it is taken. */
  readonly result: boolean;
}

/** A node that runs again. */
export interface CycleData extends AtNode {
  /** Which visit this is, from 2 up. */
  readonly visitCount: number;
}

/** A checkpoint that was saved. */
export interface CheckpointSaveData extends AtNode, Audit {
  /** Its place in the run's history. */
  readonly sequence: number;
  /** Its id. */
  readonly checkpointId: string;
  /** Why it was saved. */
  readonly reason: string;
  /** How large it is, where the store says so. */
  readonly bytes?: number;
  /** How long the save took. */
  readonly durationMs: number;
}

/** A checkpoint that was read. */
export interface CheckpointLoadData extends AtNode, Audit {
  /** Its id. */
  readonly checkpointId: string;
}

/** Whose checkpoints were removed. */
export interface CheckpointDeleteData extends AtNode, Audit {}

/** Where a run goes on. */
export interface CheckpointResumeData extends AtNode {
  /** The node that runs first. */
  readonly resumeNode: string;
}

/** A checkpoint that was set aside. */
export interface QuarantineData extends MismatchData {
  /** Where it lies, or lay. */
  readonly file: string;
}

/** What went wrong with a checkpoint while the run goes on. */
export interface CheckpointErrorData {
  /** What was being done; `size` tells of a checkpoint that is larger than it should be. */
  readonly action: "save" | "delete" | "load" | "size";
  /** The last node that completed. */
  readonly node: string;
  /** What went wrong. */
  readonly error: string;
}

/** A decision of a node. */
export interface DecisionData extends AtNode {
  /** What was decided. */
  readonly description: string;
  /** Why. */
  readonly rationale?: string;
  /** How sure it is, from 0 to 1. */
  readonly confidence?: number;
  /** What else could have been decided. */
  readonly alternatives?: readonly string[];
}

/** A finished part of what a run makes. */
export interface ProgressData extends AtNode {
  /** Its heading. */
  readonly title: string;
  /** What was found or made. */
  readonly summary: string;
  /** Where it is from. */
  readonly sources: readonly string[];
}

/** How far a list of items is. */
export interface ItemsData extends AtNode {
  /** How many items there are. */
  readonly total: number;
  /** How many are done, those of an earlier attempt or process too. */
  readonly completed: number;
}

/** How a list of items starts in parallel. */
export interface ParallelStartData extends ItemsData {
  /** How many run at once. */
  readonly concurrency: number;
}

/** How a list of items ended. */
export interface ItemsCompleteData extends ItemsData {
  /** The message of the error it ended with. */
  readonly error?: string;
}

/** How a list of items ended in parallel. */
export interface ParallelCompleteData extends ItemsCompleteData {
  /** How many failed. */
  readonly failed: number;
}

/** One of a list of items. */
export interface ItemData extends AtNode {
  /** Its place in the list, from 0 up. */
  readonly index: number;
  /** How many items there are. */
  readonly total: number;
}

/** How one of a list of items ended. */
export interface ItemCompleteData extends ItemData {
  /** The message of the error it ended with. */
  readonly error?: string;
}

/** The route that was chosen. */
export interface RouteSelectData extends AtNode {
  /** Its name. */
  readonly route: string;
  /** Whether the fallback runs, because there is no such route. */
  readonly fallback: boolean;
}

/** How the handler of a route ended. */
export interface RouteExecuteData extends RouteSelectData {
  /** The message of the error it ended with. */
  readonly error?: string;
}

/** What each event carries in `data`. Packages that emit their own events add to this interface. */
export interface EventMap {
  /** A State was made. */
  "state.create": KeysData;
  /** A State was cloned. */
  "state.clone": KeysData;
  /** One key was set. */
  "state.set": KeyData;
  /** Several keys were set, by `merge`, `update` or a node that returned an object. */
  "state.merge": KeysData;

  /** A run starts, or goes on after a resume. */
  "graph.start": GraphStartData;
  /** A run reached an exit point. */
  "graph.complete": GraphCompleteData;
  /** A run ended with an error, or was cancelled. */
  "graph.fail": GraphFailData;
  /** A run waits for input, or at a breakpoint. */
  "graph.pause": GraphPauseData;
  /** A checkpoint was made by a graph of another name or topology. */
  "graph.mismatch": MismatchData;

  /** A node is about to run. */
  "node.start": AtNode;
  /** A node returned, or threw. */
  "node.complete": NodeCompleteData;
  /** An attempt of a node failed; there will be another. */
  "node.retry": NodeRetryData;

  /** A predicate was asked. */
  "edge.evaluate": EdgeEvaluateData;
  /** The run goes along this edge. */
  "edge.transition": EdgeData;
  /** A node is about to run again. */
  "cycle.detected": CycleData;

  /** A checkpoint is in the store. */
  "checkpoint.save": CheckpointSaveData;
  /** A checkpoint was read. */
  "checkpoint.load": CheckpointLoadData;
  /** A run goes on. */
  "checkpoint.resume": CheckpointResumeData;
  /** The checkpoints of a finished run were removed. */
  "checkpoint.delete": CheckpointDeleteData;
  /** A checkpoint that is not what was written was set aside. */
  "checkpoint.quarantine": QuarantineData;
  /** A save, a removal or a load failed and the run goes on without it, or a checkpoint is large. */
  "checkpoint.error": CheckpointErrorData;

  /** A chain starts, or goes on. */
  "chain.start": ItemsData;
  /** A chain ended, or failed. */
  "chain.complete": ItemsCompleteData;
  /** A step of a chain is about to run. */
  "step.start": ItemData;
  /** A step of a chain returned, or threw. */
  "step.complete": ItemCompleteData;
  /** A parallel node starts, or goes on. */
  "parallel.start": ParallelStartData;
  /** A parallel node ended, or failed. */
  "parallel.complete": ParallelCompleteData;
  /** A worker of a parallel node begins an item. */
  "worker.start": ItemData;
  /** A worker returned, or threw. */
  "worker.complete": ItemCompleteData;
  /** A route is about to be chosen. */
  "route.evaluate": AtNode;
  /** A route was chosen. */
  "route.select": RouteSelectData;
  /** The handler of a route returned, or threw. */
  "route.execute": RouteExecuteData;

  /** A node wrote a decision into the ledger. */
  decision: DecisionData;
  /** A node finished a part of what the run makes. */
  progress: ProgressData;
}
