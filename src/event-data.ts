import type { Audit } from "./audit.js";
import type { Usage, UsageCall } from "./usage.js";

/** Where in a run something happened. */
export interface AtNode {
  /** The node. */
  readonly node: string;
  /** How many nodes have completed. */
  readonly step: number;
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
  /** Whether it continues after a resume. */
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
  /** What was thrown: by the node, the predicate or the store. */
  readonly cause?: unknown;
}

/** Why a run waits. */
export interface GraphPauseData extends AtNode {
  /** The reasons of its pauses. */
  readonly reason: string;
  /** What a node that paused before its end wrote into the ledger as used; its `node.complete` has only the rest. */
  readonly usage?: Usage;
}

/** What was expected, and what was found. */
export interface MismatchData {
  /** What should be there. */
  readonly expected: string;
  /** What was there. */
  readonly actual: string;
}

/** What has changed in a graph since a checkpoint was made. The lists are absent if the store does not know that graph. */
export interface GraphMismatchData extends MismatchData {
  /** Nodes that this graph has and that one had not. */
  readonly added?: readonly string[];
  /** Nodes that that graph had and this one has not. */
  readonly removed?: readonly string[];
  /** Nodes whose edges, or whose being an exit, are different. */
  readonly rewired?: readonly string[];
}

/** How a node ended. */
export interface NodeCompleteData extends AtNode {
  /** How long it took. */
  readonly durationMs: number;
  /** The message of the error it ended with. */
  readonly error?: string;
  /** What the node threw. */
  readonly cause?: unknown;
  /** What it wrote into the ledger as used. */
  readonly usage?: Usage;
}

/** An attempt that failed. */
export interface NodeRetryData extends AtNode {
  /** Which attempt it was, from 1 up. */
  readonly attempt: number;
  /** The message of its error. */
  readonly error: string;
  /** What the attempt threw. */
  readonly cause?: unknown;
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
  /** With `interval: "adaptive"`: what the decision was made of. */
  readonly adaptive?: AdaptiveDecision;
}

/** What a decision to save was made of, with `interval: "adaptive"`. */
export interface AdaptiveDecision {
  /** Work that was not saved, in milliseconds. */
  readonly unsavedMs: number;
  /** How much work is best between two saves, in milliseconds. */
  readonly intervalMs: number;
  /** What a save costs, in milliseconds. */
  readonly saveMs: number;
  /** The mean time between two failures, in milliseconds. */
  readonly failureMs: number;
}

/** A checkpoint that was read. */
export interface CheckpointLoadData extends AtNode, Audit {
  /** Its id. */
  readonly checkpointId: string;
}

/** Whose checkpoints were removed. */
export interface CheckpointDeleteData extends AtNode, Audit {}

/** Where a run continues. */
export interface CheckpointResumeData extends AtNode {
  /** The node that runs first. */
  readonly resumeNode: string;
}

/** A checkpoint that was set aside. */
export interface QuarantineData extends MismatchData {
  /** Where it lies, or lay. */
  readonly file: string;
}

/** What went wrong with a checkpoint while the run continues. */
export interface CheckpointErrorData {
  /** What was being done. */
  readonly action: "save" | "delete" | "load";
  /** The last node that completed. */
  readonly node: string;
  /** What went wrong. */
  readonly error: string;
}

/** Something about a checkpoint that somebody should know, and that stops nothing. */
export interface CheckpointWarningData {
  /** `size`: it is large; `fallback`: a corrupt one was passed over; `fresh-start`: all were corrupt, so the run starts over. */
  readonly kind: "size" | "fallback" | "fresh-start";
  /** The last node that completed. */
  readonly node: string;
  /** What it is about. */
  readonly message: string;
}

/** What one call used, as the node said it. */
export interface UsageData extends AtNode, UsageCall {}

/** Something about the calls of models and tools that somebody should know, and that stops nothing. */
export interface AiWarningData extends AtNode {
  /** `changed-call`: a model is asked something else than before the resume, so it was called again. */
  readonly kind: "changed-call";
  /** What it is about. */
  readonly message: string;
}

/** A decision of a node. */
export interface DecisionData extends AtNode {
  /** What kind of decision it is. */
  readonly type?: string;
  /** What was decided. */
  readonly description: string;
  /** Why. */
  readonly rationale?: string;
  /** How sure it is, from 0 to 1. */
  readonly confidence?: number;
  /** What else could have been decided. */
  readonly alternatives?: readonly string[];
  /** The id of the agent that decided. */
  readonly agent?: string;
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
  /** What it is called: a task's name, the item itself if it is a string or a number, else `#` and its place. */
  readonly item: string;
  /** How many items there are. */
  readonly total: number;
  /** The phase of a task that has one. */
  readonly phase?: string;
}

/** An attempt at one of a list of items that failed. */
export interface ItemRetryData extends ItemData {
  /** Which attempt it was, from 1 up. */
  readonly attempt: number;
  /** The message of its error. */
  readonly error: string;
  /** What the attempt threw. */
  readonly cause?: unknown;
  /** How long the item waits before the next. */
  readonly delayMs: number;
}

/** How one of a list of items ended. */
export interface ItemCompleteData extends ItemData {
  /** How long it took, all attempts together, in milliseconds. */
  readonly durationMs: number;
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

/** What a queue says of a run. */
export interface QueueData {
  /** The message of the error, if it failed. */
  readonly error?: string;
}
