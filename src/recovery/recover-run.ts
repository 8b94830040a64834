import type { Claim } from "../checkpoint/store.js";
import { after } from "../clock.js";
import { abortWith, defer, onAbort } from "../concurrency.js";
import { ExecutionError, isWaymarkError } from "../errors.js";
import type { AttemptEnd, RecoveryPolicy } from "../run/position/continuation.js";
import type { RecoveryAttempt } from "../run/runner.js";
import type { AnyGraph } from "../run/state-graph.js";

/** What {@link recoverRuns} did with a run. */
export interface RunRecovery {
  /** The run. */
  readonly runId: string;
  /** The name of its graph. */
  readonly graph: string;
  /**
   * - `completed`, `paused`: it continued and ended with that status;
   * - `failed`, `timed-out`: this attempt failed or timed out; the next startup tries again;
   * - `gave-up`: the attempts are used up; the run is marked as failed and not tried again;
   * - `skipped`: it was left alone, or the attempt does not count; `reason` says why.
   */
  readonly outcome: "completed" | "paused" | "failed" | "timed-out" | "gave-up" | "skipped";
  /** How often it was tried without progress, including this time. */
  readonly attempts: number;
  /** Whether it first went back one step, past checkpoints that can be read. */
  readonly fellBack: boolean;
  /** Why it was skipped or abandoned. */
  readonly reason?: string;
  /** The error of the run, or of the attempt to load it. */
  readonly error?: unknown;
}

/** What is known of an attempt while it is under way. */
type Attempt = Pick<RecoveryAttempt<object>, "count" | "isLast" | "fellBack">;

/** The outcome of a run, with its reason and error. */
type Outcome = Pick<RunRecovery, "outcome" | "reason" | "error">;

/** How one run is recovered. */
export interface RecoverySettings {
  readonly policy: RecoveryPolicy;
  readonly timeoutMs: number;
  readonly signal: AbortSignal | undefined;
}

/** Milliseconds that a cancelled run may take to stop before it is abandoned. */
const GRACE = 5000;

/** Continues one run. Its claim is released when it has actually stopped. Never rejects. */
export async function recoverRun(
  graph: AnyGraph,
  runId: string,
  claim: Claim,
  { policy, timeoutMs, signal }: RecoverySettings,
): Promise<Omit<RunRecovery, "runId" | "graph">> {
  const deadline = new Deadline(timeoutMs, signal);
  let attempt: Attempt = { count: 0, isLast: false, fellBack: false };
  const continued = async (): Promise<Outcome> => {
    try {
      const { result, ...begun } = await graph.recover(runId, policy, deadline.signal, claim);
      attempt = begun;
      const { status } = await result;
      if (begun.leftAlone !== undefined) return { outcome: "skipped", reason: begun.leftAlone };
      return { outcome: status === "completed" || status === "paused" ? status : "gave-up" };
    } catch (error) {
      const { count, isLast } = attempt;
      const end = (how: AttemptEnd): Promise<void> =>
        graph.endAttempt(runId, count, how, claim).catch(() => {});
      return afterError(error, isLast, deadline.passed, end);
    }
  };
  const stopped = continued().finally(() => claim.release().catch(() => {}));
  const outcome = await Promise.race([stopped, deadline.late]);
  deadline.end();
  return { attempts: attempt.count, fellBack: attempt.fellBack, ...outcome };
}

/**
 * The outcome of an attempt that ended with an error.
 *
 * @param end - saves how it ended; if that fails, the attempt counts.
 */
async function afterError(
  error: unknown,
  isLast: boolean,
  isLate: boolean,
  end: (how: AttemptEnd) => Promise<void>,
): Promise<Outcome> {
  if (isWaymarkError(error, "CHECKPOINT_CONFLICT")) {
    return { outcome: "skipped", reason: "another process has taken it", error };
  }
  const isAborted = isWaymarkError(error, "ABORTED");
  if (isAborted ? !isLate : !(error instanceof ExecutionError)) {
    await end("taken-back");
    const reason = isAborted ? "the recovery was cancelled" : "it can't be resumed";
    return { outcome: "skipped", reason, error };
  }
  if (!isLast) return { outcome: isAborted ? "timed-out" : "failed", error };
  await end("given-up");
  return { outcome: "gave-up", error };
}

/** Cancels a run when its time is up, or when the caller's signal aborts. */
class Deadline {
  readonly signal: AbortSignal;
  /** Resolves if the run was cancelled and does not stop. */
  readonly late: Promise<Outcome>;
  readonly end: () => void;
  #passed = false;

  constructor(timeoutMs: number, outer: AbortSignal | undefined) {
    const controller = new AbortController();
    const { promise, resolve } = defer<Outcome>();
    this.signal = controller.signal;
    this.late = promise;
    let cancel = after(timeoutMs, () => {
      this.#passed = true;
      const error = new Error(`the recovery took longer than its timeout of ${timeoutMs} ms`);
      error.name = "TimeoutError";
      controller.abort(error);
    });
    onAbort(this.signal, () => {
      cancel();
      const outcome = this.#passed ? "timed-out" : "skipped";
      const reason = "it was cancelled and does not stop: its node ignores context.signal";
      cancel = after(GRACE, () => resolve({ outcome, reason }));
    });
    const ignore = abortWith(controller, outer);
    this.end = () => {
      cancel();
      ignore();
    };
  }

  /** Whether the time is up. */
  get passed(): boolean {
    return this.#passed;
  }
}
