import { waitsForResume } from "../checkpoint/fork.js";
import type { HistoryEntry } from "../checkpoint/store.js";
import { isWaymarkError } from "../errors.js";
import { hasCrashed } from "../run/crash.js";
import type { Prepare } from "../run/resumer.js";
import { progressOf, withProgress } from "../state/derive.js";
import type { Recovery } from "../state/record.js";
import type { State } from "../state/state.js";

/** What an attempt to recover a run goes by. */
export interface AttemptSettings {
  readonly maxAttempts: number;
  /** Whether to go back by one step if an attempt has failed at the same place before. */
  readonly fallBack: boolean;
  /** Whether to leave alone what was forked or rolled back and not resumed since; not where somebody asked for the run. */
  readonly leavesForks?: boolean;
  /** The run's checkpoints, newest first. */
  readonly history: () => Promise<readonly HistoryEntry[]>;
}

/**
 * One attempt to recover a run. How often that was tried, without getting any further, is saved with the
 * run before it continues, so that a run which kills its process is not tried for ever.
 */
export class Attempt {
  readonly #settings: AttemptSettings;
  #gaveUp = false;
  /** Which attempt this is, from 1 up; 0 if the run was left alone. */
  count = 0;
  /** Whether the run was set back by one step. */
  fellBack = false;
  /** Why the run was left alone, if it was. */
  leftAlone = "it has since ended or paused";

  constructor(settings: AttemptSettings) {
    this.#settings = settings;
  }

  /** Whether there have been enough attempts. */
  get gaveUp(): boolean {
    return this.#gaveUp || this.count >= this.#settings.maxAttempts;
  }

  /** What the run continues from; nothing if it needs no recovery, or had enough. */
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
    // When an attempt has failed here already, perhaps what was saved last is what makes it fail.
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

  /** The attempt was broken off by whoever started it, and does not count. */
  readonly undo: Prepare = async (newest) => {
    const { recovery } = progressOf(newest);
    if (recovery === undefined || recovery.attempts !== this.count) return undefined;
    const less = Object.freeze({ ...recovery, attempts: this.count - 1 });
    return {
      state: withProgress(newest, { recovery: less, reason: stopOf(newest) }),
      continues: false,
    };
  };

  /** No more attempts: the run has failed. */
  readonly giveUp: Prepare = async (newest) => givenUp(newest);

  /**
   * The newest State of an earlier step whose checkpoint can be read. Progress saves of this step are passed over;
   * those of the earlier one stay, so that nothing is done or asked twice.
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

/** How far a run has come. */
type Reached = Omit<Recovery, "attempts">;

function reachedBy<D extends object>(state: State<D>): Reached {
  const { step, unfinished } = progressOf(state);
  return { step, results: unfinished?.count ?? 0 };
}

/** How far a run has come in all, and how often it was recovered there; a run that has got further starts counting again. */
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

/** The reason of a run that was stopped: no crash is to be read out of it. */
function stopOf<D extends object>(newest: State<D>): string {
  if (!hasCrashed(newest)) return newest.reason;
  return newest.status === "failed" ? "failure" : "abort";
}
