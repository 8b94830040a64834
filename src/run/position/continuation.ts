import { ready, rolledBack, waitsForResume } from "../../checkpoint/fork.js";
import { isoNow } from "../../clock.js";
import { END } from "../../graph/node.js";
import { mergedMetadata, progressOf, withProgress, withRecord } from "../../state/derive.js";
import { isReason } from "../../state/fields.js";
import type { Recovery } from "../../state/record.js";
import { validated } from "../../state/schema.js";
import { recordOf, type State } from "../../state/state.js";
import { answered } from "../pauses/pauses.js";
import type { SavedGraph } from "../saved-graph.js";
import { notBegun } from "../visit/visit.js";
import type { RunPosition } from "./position.js";

/** A run that continues from what the store has. */
interface Continuation<D extends object> {
  /** The newest State in the store. */
  readonly newest: State<D>;
  /** The State to continue from: the newest, an older one, or the one before it. */
  readonly from: State<D>;
  /** Where that is in the graph. */
  readonly position: RunPosition<D>;
  /** Whether an older checkpoint was asked for: its work is done again. */
  readonly setsBack: boolean;
  /** Set if this is an attempt to recover the run. */
  readonly recovery: Recovery | undefined;
  /** The answer to its pauses. */
  readonly input: unknown;
}

/** A run as it continues. */
interface Continued<D extends object> {
  readonly state: State<D>;
  /** Whether to save it first, so that it is found if its process dies before the next save. */
  readonly save: "always" | "if possible" | "never";
  /** Why an answer was refused, and the run does not continue. */
  readonly error?: unknown;
}

/** The State that a run continues with: its resume is counted, its crash if its process died, its answers are taken. */
export async function continued<D extends object>(
  run: Continuation<D>,
  graph: SavedGraph<D>,
): Promise<Continued<D>> {
  const first = resumed(run, graph);
  if (run.position.state.status === "paused") return withInput(first, run.input, graph);
  const note = noteOf(first, run);
  const isDue = run.recovery !== undefined || graph.settings.mode !== "exit";
  if (note === undefined || !isDue) return { state: first, save: "never" };
  return { state: note, save: run.recovery === undefined ? "if possible" : "always" };
}

function resumed<D extends object>(
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

/** What is saved of a run that continues. A failed run keeps its status and error until it gets further. */
function noteOf<D extends object>(
  state: State<D>,
  { newest, position, setsBack, recovery }: Continuation<D>,
): State<D> | undefined {
  if (recovery !== undefined) return withProgress(state, { recovery, reason: "recovery" });
  const hasStarted = position.state.status !== "pending" || waitsForResume(newest);
  if (!hasStarted || setsBack) return undefined;
  const reason = isReason(state.reason, "breakpoint") ? "breakpoint" : "resume";
  const status = state.status === "failed" ? "failed" : "in_progress";
  return withProgress(state, { status, reason });
}

/** Gives a paused run its input. It is saved before it is used. */
async function withInput<D extends object>(
  state: State<D>,
  input: unknown,
  graph: SavedGraph<D>,
): Promise<Continued<D>> {
  const node = progressOf(state).unfinished?.node ?? state.checkpointNode;
  const schemas = graph.topology.find(node)?.input;
  const taken = await answered(state, input, schemas);
  if (taken.error !== undefined) return { ...taken, save: "always" };
  const next = taken.state;
  const { schema } = graph.settings;
  // Saved as it is, it would make every later resume fail.
  if (schema !== undefined && next.data !== state.data) await validated("data", next.data, schema);
  const stopped = state.pauses.some(({ breakpoint }) => breakpoint === "before");
  const reason = stopped ? "breakpoint" : input === undefined ? "resume" : "input";
  const given = withProgress(next, { status: "in_progress", reason });
  // The input may lead to another edge.
  return { state: withProgress(given, { nextNode: graph.nextNode(given) }), save: "always" };
}

/** Whether a run has passed the breakpoint before the node that it continues with. */
export function isPastBreakpoint<D extends object>(
  { newest, from, position }: Continuation<D>,
  state: State<D>,
): boolean {
  const hasBegun = progressOf(position.state).unfinished !== undefined;
  const hasFailed = from.error !== undefined && from.error.node === from.nextNode;
  const isPast = [newest, state].some(({ reason }) => isReason(reason, "breakpoint"));
  return hasBegun || hasFailed || isPast;
}

/** A State that was forked or set back, at its place in this graph, waiting to be resumed. */
export function waiting<D extends object>(
  given: State<D>,
  reason: "fork" | "rollback",
  graph: SavedGraph<D>,
): State<D> {
  const named = withProgress(given, { reason });
  const { state: stands, after, next: known } = graph.position(named);
  // Without the progress of a removed node, unless the config has a replacement for it.
  const state = known === undefined ? stands : named;
  const next = graph.next(state);
  // A completed run stays completed, unless the changes of a fork lead to another node.
  const isEnd = next === END && (after?.exit === true || state.status === "completed");
  const status = isEnd ? "completed" : "in_progress";
  const placed = withProgress(state, { status, nextNode: next === END ? undefined : next });
  return ready(placed, reason);
}

/** How often, and how, a run that its process left behind is tried again. */
export interface RecoveryPolicy {
  readonly maxAttempts: number;
  /** Whether to go back one step if an earlier attempt failed at the same place. */
  readonly fallsBack: boolean;
  /** Whether to leave forks and rolled-back runs alone until someone resumes them. */
  readonly leavesForks: boolean;
}

/** What to do with a run that its process left behind. */
export interface Recovering {
  /** The number of this attempt, starting at 1; 0 if the run is left alone. */
  readonly count: number;
  /** Whether there is no other attempt after this one. */
  readonly isLast: boolean;
  /** Whether to go back to an earlier step: the last save may be what makes the run fail. */
  readonly fallsBack: boolean;
  /** Counts this attempt, and is saved before the run continues; `undefined` if it does not. */
  readonly recovery?: Recovery;
  /** Why the run is left alone, if it is. */
  readonly leftAlone?: string;
}

/**
 * What an attempt to recover a run makes of its newest State. The number of attempts without progress is saved with
 * the run before it continues, so that a run that kills its process is not tried forever.
 */
export function recovering<D extends object>(newest: State<D>, policy: RecoveryPolicy): Recovering {
  const { status, reason } = newest;
  const { maxAttempts, fallsBack, leavesForks } = policy;
  if (status === "completed" || status === "paused") return alone("it has since ended or paused");
  if (leavesForks && waitsForResume(newest))
    return alone(`it waits to be resumed: its newest checkpoint is a ${reason}`);
  const { step, unfinished, recovery } = progressOf(newest);
  const before = furthest(recovery, step, unfinished?.count ?? 0);
  if (before.attempts >= maxAttempts)
    return { count: before.attempts, isLast: true, fallsBack: false };
  const count = before.attempts + 1;
  return {
    count,
    isLast: count >= maxAttempts,
    fallsBack: fallsBack && count > 1 && step === before.step,
    recovery: Object.freeze({ ...before, attempts: count }),
  };
}

function alone(leftAlone: string): Recovering {
  return { count: 0, isLast: false, fallsBack: false, leftAlone };
}

/** The furthest point a run has reached, and how often it was recovered there; progress resets the count. */
function furthest(before: Recovery | undefined, step: number, results: number): Recovery {
  const isFurther =
    before === undefined ||
    step > before.step ||
    (step === before.step && results > before.results);
  return isFurther ? { attempts: 0, step, results } : before;
}

/** How an attempt ends that did not get the run to its end. */
export type AttemptEnd = "taken-back" | "given-up";

/** The State to save when an attempt ends; `undefined` if the run stays as it is. */
export function attemptEnded<D extends object>(
  newest: State<D>,
  attempt: number,
  end: AttemptEnd,
): State<D> | undefined {
  if (end === "given-up") return givenUp(newest);
  const { recovery } = progressOf(newest);
  if (attempt === 0 || recovery?.attempts !== attempt) return undefined;
  const less = Object.freeze({ ...recovery, attempts: attempt - 1 });
  if (!hasCrashed(newest)) return withProgress(newest, { recovery: less });
  // So that a run that was stopped does not look like a crash.
  const reason = newest.status === "failed" ? "failure" : "abort";
  return withProgress(newest, { recovery: less, reason });
}

/** The run as failed, as there are no more attempts; `undefined` if it has failed already. */
export function givenUp<D extends object>(newest: State<D>): State<D> | undefined {
  if (newest.status === "failed") return undefined;
  const { recovery, unfinished, checkpointNode } = progressOf(newest);
  const error = Object.freeze({
    name: "RecoveryError",
    message: `the run was recovered ${recovery?.attempts ?? 0} times and got no further`,
    node: unfinished?.node ?? checkpointNode,
  });
  const reason = hasCrashed(newest) ? "recovery" : "failure";
  return withProgress(newest, { status: "failed", error, reason });
}

/** Whether the process that last saved a State died in the middle of the run. */
function hasCrashed<D extends object>(newest: State<D>): boolean {
  const { status, reason } = newest;
  // A failed run stays `failed` until it advances, so only the reason shows that it was resumed.
  if (status === "failed") return isReason(reason, "resume", "recovery");
  const isStopped = isReason(reason, "abort", "cancel");
  return status === "in_progress" && !isStopped && !waitsForResume(newest);
}

/** The same State with the crash counted, and with the restart noted for the node that begins again. */
function withCrash<D extends object>(state: State<D>, entry: string): State<D> {
  const { crashes, begun, unfinished, nextNode, checkpointNode } = progressOf(state);
  const node = unfinished?.node ?? nextNode ?? (checkpointNode === "" ? entry : undefined);
  if (node === undefined) return withProgress(state, { crashes: crashes + 1 });
  const known = begun?.node === node ? begun : { ...notBegun, node, startedAt: isoNow() };
  return withProgress(state, {
    crashes: crashes + 1,
    begun: Object.freeze({ ...known, restarts: known.restarts + 1 }),
  });
}
