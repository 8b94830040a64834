import { waitsForResume } from "../checkpoint/fork.js";
import type { HistoryEntry } from "../checkpoint/store.js";
import { isWaymarkError } from "../errors.js";
import { hasCrashed } from "../run/crash.js";
import type { Prepare } from "../run/resumer.js";
import { progressOf, withProgress } from "../state/derive.js";
import type { Recovery } from "../state/record.js";
import type { State } from "../state/state.js";

/** Settings of an attempt to recover a run. */
export interface AttemptSettings {
  readonly maxAttempts: number;
  /** Whether to go back one step if an earlier attempt failed at the same place. */
  readonly fallBack: boolean;
  /** Whether to skip forks and rolled-back runs that nobody has resumed; unset if this run was asked for explicitly. */
  readonly leavesForks?: boolean;
  /** The run's checkpoints, newest first. */
  readonly history: () => Promise<readonly HistoryEntry[]>;
}

/**
 * One attempt to recover a run. The number of attempts without progress is saved with the run before it continues,
 * so that a run that kills its process is not tried forever.
 */
export class Attempt {
  readonly #settings: AttemptSettings;
  #gaveUp = false;
  /** The number of this attempt, starting at 1; 0 if the run was left alone. */
  count = 0;
  /** Whether the run went back one step. */
  fellBack = false;
  /** Why the run was left alone, if it was. */
  leftAlone = "it has since ended or paused";

  constructor(settings: AttemptSettings) {
    this.#settings = settings;
  }

  /** Whether the attempts are used up. */
  get gaveUp(): boolean {
    return this.#gaveUp || this.count >= this.#settings.maxAttempts;
  }

  /**
   * Chooses the State to continue from; the run does not continue if it needs no recovery or has used up its
   * attempts.
   */
  readonly begin: Prepare = async (newest, load) => {
    if (newest.status === "completed" || newest.status === "paused") return undefined;
    if (this.#settings.leavesForks && waitsForResume(newest)) {
      this.leftAlone = `it waits to be resumed: its newest checkpoint is a ${newest.reason}`;
      return undefined;
    }
    const reached = reachedBy(newest);
    const before = furthest(progressOf(newest).recovery, reached);
    this.count = before.attempts;
    if (before.attempts >= this.#settings.maxAttempts) {
      this.#gaveUp = true;
      return givenUp(newest);
    }
    this.count++;
    // If an attempt already failed here, the last save may be what makes it fail.
    const failedHere = before.attempts > 0 && reached.step === before.step;
    const previous =
      failedHere && this.#settings.fallBack ? await this.#previous(newest.step, load) : undefined;
    this.fellBack = previous !== undefined;
    const recovery = Object.freeze({ ...before, attempts: this.count });
    return {
      state: withProgress(previous ?? newest, { recovery, reason: "recovery" }),
      continues: true,
    };
  };

  /** Takes back an attempt that does not count, such as a cancelled one. */
  readonly undo: Prepare = async (newest) => {
    const { recovery } = progressOf(newest);
    if (recovery === undefined || recovery.attempts !== this.count) return undefined;
    const less = Object.freeze({ ...recovery, attempts: this.count - 1 });
    return {
      state: withProgress(newest, { recovery: less, reason: stopOf(newest) }),
      continues: false,
    };
  };

  /** Marks the run as failed: there are no more attempts. */
  readonly giveUp: Prepare = async (newest) => givenUp(newest);

  /**
   * The newest State of an earlier step whose checkpoint can be read. Progress saves of the current step are
   * skipped; those of the earlier one are kept, so that nothing is done or asked twice.
   */
  async #previous<D extends object>(
    step: number,
    load: (checkpointId: string) => Promise<State<D>>,
  ): Promise<State<D> | undefined> {
    for (const entry of await this.#settings.history()) {
      if (entry.step >= step || entry.status === "paused") continue;
      try {
        return await load(entry.checkpointId);
      } catch (error) {
        if (!isWaymarkError(error, "CHECKPOINT_CORRUPT")) throw error;
      }
    }
    return undefined;
  }
}

/** How far a run has got. */
type Reached = Omit<Recovery, "attempts">;

function reachedBy<D extends object>(state: State<D>): Reached {
  const { step, unfinished } = progressOf(state);
  return { step, results: unfinished?.count ?? 0 };
}

/** The furthest point a run has reached, and how often it was recovered there; progress resets the count. */
function furthest(before: Recovery | undefined, reached: Reached): Recovery {
  const isFurther =
    before === undefined ||
    reached.step > before.step ||
    (reached.step === before.step && reached.results > before.results);
  return isFurther ? { attempts: 0, ...reached } : before;
}

function givenUp<D extends object>(
  newest: State<D>,
): { readonly state: State<D>; readonly continues: boolean } | undefined {
  if (newest.status === "failed") return undefined;
  const { recovery, unfinished, checkpointNode } = progressOf(newest);
  const error = Object.freeze({
    name: "RecoveryError",
    message: `the run was recovered ${recovery?.attempts ?? 0} times and got no further`,
    node: unfinished?.node ?? checkpointNode,
  });
  const reason = hasCrashed(newest) ? "recovery" : "failure";
  return { state: withProgress(newest, { status: "failed", error, reason }), continues: false };
}

/** The reason to save for a run that was stopped, so that it does not look like a crash. */
function stopOf<D extends object>(newest: State<D>): string {
  if (!hasCrashed(newest)) return newest.reason;
  return newest.status === "failed" ? "failure" : "abort";
}
