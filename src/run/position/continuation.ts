import { rolledBack, waitsForResume } from "../../checkpoint/fork.js";
import { progressOf, withProgress, withRecord } from "../../state/derive.js";
import { mergedMetadata } from "../../state/metadata.js";
import type { Recovery } from "../../state/record.js";
import { validated } from "../../state/schema.js";
import { recordOf, type State } from "../../state/state.js";
import { answered, refusedAnswers } from "../pauses/pauses.js";
import type { SavedGraph } from "../saved-graph.js";
import type { RunPosition } from "./position.js";
import { hasCrashed, withCrash } from "./recovery.js";

/** The reason of a checkpoint at which a run continued from a breakpoint before a node. */
const BREAKPOINT = "breakpoint";

/** A run that continues from what the store has. */
export interface Continuation<D extends object> {
  /** The newest State in the store. */
  readonly newest: State<D>;
  /** The State to continue from: the newest, an older one, or the one before it. */
  readonly from: State<D>;
  /** Where that is in the graph. */
  readonly position: RunPosition<D>;
  /** Whether an older checkpoint was asked for: its work is done again. */
  readonly setsBack: boolean;
  /** Set if this is an attempt to recover the run. */
  readonly recovery?: Recovery | undefined;
}

/** The State of a run that continues: its resume is counted, and its crash if its process died. */
export function resumed<D extends object>(
  { newest, position, setsBack }: Continuation<D>,
  graph: SavedGraph<D>,
): State<D> {
  const { identity, progress } = recordOf(position.state);
  // This graph works on the run from here on.
  const state = withRecord(position.state, {
    identity: { ...identity, ...mergedMetadata(identity, graph.settings.metadata) },
    progress: { ...progress, resumes: progress.resumes + 1 },
  });
  const { checkpointId, sequence, savedAt } = newest;
  // It differs from what the store has, even if the run is stopped before its first save.
  if (setsBack) return rolledBack(state.savedAs({ checkpointId, sequence, savedAt }));
  return hasCrashed(newest) ? withCrash(state, graph.topology.entry?.name ?? "") : state;
}

/**
 * What is saved of a run that continues, so that it is found if its process dies before the next save; `undefined` if
 * that is nothing. A failed run keeps its status and error until it gets further.
 */
export function noteOf<D extends object>(
  state: State<D>,
  { newest, position, setsBack, recovery }: Continuation<D>,
): State<D> | undefined {
  if (recovery !== undefined) return withProgress(state, { recovery, reason: "recovery" });
  const hasStarted = position.state.status !== "pending" || waitsForResume(newest);
  if (!hasStarted || setsBack) return undefined;
  const reason = state.reason === BREAKPOINT ? BREAKPOINT : "resume";
  const status = state.status === "failed" ? "failed" : "in_progress";
  return withProgress(state, { status, reason });
}

/** Whether a run has passed the breakpoint before the node that it continues with. */
export function isPastBreakpoint<D extends object>(
  { newest, from, position }: Continuation<D>,
  state: State<D>,
): boolean {
  const hasBegun = progressOf(position.state).unfinished !== undefined;
  const hasFailed = from.error !== undefined && from.error.node === from.nextNode;
  return hasBegun || hasFailed || newest.reason === BREAKPOINT || state.reason === BREAKPOINT;
}

/** A paused run with its input taken, or the error of an answer that does not fit. */
export interface Input<D extends object> {
  readonly state: State<D>;
  readonly error?: unknown;
}

/** Gives a paused run its input. It is saved before it is used. */
export async function withInput<D extends object>(
  state: State<D>,
  input: unknown,
  graph: SavedGraph<D>,
): Promise<Input<D>> {
  const node = progressOf(state).unfinished?.node ?? state.checkpointNode;
  const schemas = graph.topology.find(node)?.input;
  const refused = input === undefined ? await refusedAnswers(state, schemas) : undefined;
  if (refused !== undefined) return refused;
  const next = await answered(state, input, schemas);
  const { schema } = graph.settings;
  // Saved as it is, it would make every later resume fail.
  if (schema !== undefined && next.data !== state.data) await validated("data", next.data, schema);
  const stopped = state.pauses.some(({ breakpoint }) => breakpoint === "before");
  const reason = stopped ? BREAKPOINT : input === undefined ? "resume" : "input";
  const continued = withProgress(next, { status: "in_progress", reason });
  // The input may lead to another edge.
  return { state: withProgress(continued, { nextNode: graph.nextNode(continued) }) };
}
