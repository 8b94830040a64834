import type { Claim } from "../checkpoint/store.js";
import { after } from "../clock.js";
import { onAbort } from "../concurrency.js";
import { ExecutionError, isWaymarkError } from "../errors.js";
import type { Prepare } from "../run/resumer.js";
import type { RunStatus } from "../state/record.js";
import type { Unnamed } from "../unnamed.js";
import { Attempt, type AttemptSettings } from "./attempt.js";

/** A graph whose runs can be recovered: any {@link StateGraph}. @inline */
export interface RecoverableGraph {
  /** Its name, as saved in its checkpoints. */
  readonly name: string;
  /** Stops its runs so that they can be resumed. */
  drain(): Promise<void>;
  /** @internal */
  recover(
    runId: string,
    signal: AbortSignal,
    prepare: Prepare,
    claim?: Claim,
  ): Promise<{ readonly status: RunStatus } | undefined>;
}

/** What {@link recoverRuns} did with a run. */
export type RunRecovery = Unnamed<{
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
}>;

/** The outcome of a run, with its reason and error. */
type Outcome = Pick<RunRecovery, "outcome" | "reason" | "error">;

/** How one run is recovered. */
export interface RecoverySettings extends AttemptSettings {
  readonly timeoutMs: number;
  readonly signal: AbortSignal | undefined;
}

/** Milliseconds that a cancelled run may take to stop before it is abandoned. */
const GRACE = 5000;

/** Continues one run. Its claim is released when it has actually stopped. Never rejects. */
export async function recoverRun(
  graph: RecoverableGraph,
  runId: string,
  claim: Claim,
  settings: RecoverySettings,
): Promise<Omit<RunRecovery, "runId" | "graph">> {
  const attempt = new Attempt(settings);
  const deadline = new Deadline(settings.timeoutMs, settings.signal);
  const release = (): Promise<void> => claim.release().catch(() => {});
  const stopped = continueRun(graph, runId, claim, attempt, deadline).finally(release);
  const outcome = await Promise.race([stopped, deadline.late]);
  deadline.end();
  return { attempts: attempt.count, fellBack: attempt.fellBack, ...outcome };
}

async function continueRun(
  graph: RecoverableGraph,
  runId: string,
  claim: Claim,
  attempt: Attempt,
  deadline: Deadline,
): Promise<Outcome> {
  // Not cancellable, because the outcome of the attempt must be saved; if that fails, the attempt counts.
  const note = (prepare: Prepare): Promise<unknown> =>
    graph.recover(runId, new AbortController().signal, prepare, claim).catch(() => {});
  try {
    const state = await graph.recover(runId, deadline.signal, attempt.begin, claim);
    if (state?.status === "completed" || state?.status === "paused") {
      return { outcome: state.status };
    }
    if (attempt.gaveUp) return { outcome: "gave-up" };
    return { outcome: "skipped", reason: attempt.leftAlone };
  } catch (error) {
    if (isWaymarkError(error, "CHECKPOINT_CONFLICT")) {
      return { outcome: "skipped", reason: "another process has taken it", error };
    }
    const isAborted = isWaymarkError(error, "ABORTED");
    if (isAborted ? !deadline.passed : !(error instanceof ExecutionError)) {
      await note(attempt.undo);
      const reason = isAborted ? "the recovery was cancelled" : "it can't be resumed";
      return { outcome: "skipped", reason, error };
    }
    if (!attempt.gaveUp) return { outcome: isAborted ? "timed-out" : "failed", error };
    await note(attempt.giveUp);
    return { outcome: "gave-up", error };
  }
}

/** Cancels a run when its time is up, or when the caller's signal aborts. */
class Deadline {
  readonly #controller = new AbortController();
  readonly #outer: AbortSignal | undefined;
  /** Resolves if the run was cancelled and does not stop. */
  readonly late: Promise<Outcome>;
  #resolve: (outcome: Outcome) => void = () => {};
  #cancel: () => void;
  #ignore = (): void => {};
  #passed = false;

  constructor(timeoutMs: number, outer: AbortSignal | undefined) {
    this.late = new Promise((resolve) => {
      this.#resolve = resolve;
    });
    this.#outer = outer;
    this.#cancel = after(timeoutMs, () => {
      this.#passed = true;
      const error = new Error(`the recovery took longer than its timeout of ${timeoutMs} ms`);
      error.name = "TimeoutError";
      this.#stop(error);
    });
    if (outer?.aborted) this.#abort();
    else if (outer !== undefined) this.#ignore = onAbort(outer, this.#abort);
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Whether the time is up. */
  get passed(): boolean {
    return this.#passed;
  }

  end(): void {
    this.#cancel();
    this.#ignore();
  }

  readonly #abort = (): void => this.#stop(this.#outer?.reason);

  #stop(why: unknown): void {
    this.end();
    this.#controller.abort(why);
    const outcome = this.#passed ? "timed-out" : "skipped";
    const reason = "it was cancelled and does not stop: its node ignores context.signal";
    this.#cancel = after(GRACE, () => this.#resolve({ outcome, reason }));
  }
}
