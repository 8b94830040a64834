import { waitsForResume } from "../../checkpoint/fork.js";
import { isoNow } from "../../clock.js";
import { progressOf, withProgress } from "../../state/derive.js";
import type { Recovery } from "../../state/record.js";
import type { State } from "../../state/state.js";
import { noFailedAttempts, noItems } from "../../state/steps.js";

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
  return withProgress(newest, { recovery: less, reason: reasonOfStop(newest) });
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

/** The reason to save for a run that was stopped, so that it does not look like a crash. */
function reasonOfStop<D extends object>(newest: State<D>): string {
  if (!hasCrashed(newest)) return newest.reason;
  return newest.status === "failed" ? "failure" : "abort";
}

/** The checkpoint reasons of an unfinished run that was stopped, or created, on purpose. */
const deliberate: ReadonlySet<string> = new Set(["abort", "cancel", "fork", "rollback"]);

/** Whether the process that last saved a State died in the middle of the run. */
export function hasCrashed<D extends object>({ status, reason }: State<D>): boolean {
  // A failed run stays `failed` until it advances, so only the reason shows that it was resumed.
  if (status === "failed") return reason === "resume" || reason === "recovery";
  return status === "in_progress" && !deliberate.has(reason);
}

/** The same State with the crash counted, and with the restart noted for the node that begins again. */
export function withCrash<D extends object>(state: State<D>, entry: string): State<D> {
  const { crashes, begun, unfinished, nextNode, checkpointNode } = progressOf(state);
  const node = unfinished?.node ?? nextNode ?? (checkpointNode === "" ? entry : undefined);
  if (node === undefined) return withProgress(state, { crashes: crashes + 1 });
  const known =
    begun?.node === node
      ? begun
      : {
          ...{ node, startedAt: isoNow(), durationMs: 0, attempts: 0, restarts: 0 },
          failedAttempts: noFailedAttempts,
          usage: undefined,
          items: noItems,
        };
  return withProgress(state, {
    crashes: crashes + 1,
    begun: Object.freeze({ ...known, restarts: known.restarts + 1 }),
  });
}
