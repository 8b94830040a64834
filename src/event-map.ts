import type {
  AiWarningData,
  AtNode,
  CheckpointDeleteData,
  CheckpointErrorData,
  CheckpointLoadData,
  CheckpointResumeData,
  CheckpointSaveData,
  CheckpointWarningData,
  CycleData,
  DecisionData,
  EdgeData,
  EdgeEvaluateData,
  GraphCompleteData,
  GraphFailData,
  GraphMismatchData,
  GraphPauseData,
  GraphStartData,
  ItemCompleteData,
  ItemData,
  ItemRetryData,
  ItemsCompleteData,
  ItemsData,
  KeyData,
  KeysData,
  NodeCompleteData,
  NodeRetryData,
  ParallelCompleteData,
  ParallelStartData,
  ProgressData,
  QuarantineData,
  QueueData,
  RouteExecuteData,
  RouteSelectData,
  UsageData,
} from "./event-data.js";

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

  /** A run starts, or continues after a resume. */
  "graph.start": GraphStartData;
  /** A run reached an exit point. */
  "graph.complete": GraphCompleteData;
  /** A run ended with an error, or was cancelled. */
  "graph.fail": GraphFailData;
  /** A run waits for input, or at a breakpoint. */
  "graph.pause": GraphPauseData;
  /** A checkpoint was made by a graph of another name or topology. */
  "graph.mismatch": GraphMismatchData;

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
  /** A run continues. */
  "checkpoint.resume": CheckpointResumeData;
  /** The checkpoints of a finished run were removed. */
  "checkpoint.delete": CheckpointDeleteData;
  /** A checkpoint that is not what was written was set aside. */
  "checkpoint.quarantine": QuarantineData;
  /** A save, a removal or a load failed, and the run continues without it. */
  "checkpoint.error": CheckpointErrorData;
  /** A checkpoint is large, or a corrupt one was passed over; never an error. */
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

  /** A run waits in the queue for a worker. */
  "run.waiting": QueueData;
  /** A worker has the run. */
  "run.active": QueueData;
  /** The run waits for a moment, or for input. */
  "run.delayed": QueueData;
  /** The run's worker died; another takes over. */
  "run.stalled": QueueData;
  /** The run has left the queue, completed. */
  "run.completed": QueueData;
  /** The run was taken out of the queue. */
  "run.cancelled": QueueData;
  /** The run failed for good. */
  "run.failed": QueueData;

  /** A node wrote into the ledger what a call used. */
  usage: UsageData;
  /** A call of `waymark/ai` does not fit the one that was recorded; never an error. */
  "ai.warning": AiWarningData;
  /** A node wrote a decision into the ledger. */
  decision: DecisionData;
  /** A node finished a part of what the run makes. */
  progress: ProgressData;
}
