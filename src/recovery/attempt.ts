import type { HistoryEntry } from "../checkpoint/store.js";
import type { Prepare } from "../run/runner.js";
import type { Recovery } from "../state/record.js";
import { State } from "../state/state.js";

/** What an attempt to recover a run goes by. */
export interface AttemptSettings {
  readonly maxAttempts: number;
  readonly fallBack: boolean;
  /** The run's checkpoints, newest first. */
  readonly history: () => Promise<readonly HistoryEntry[]>;
}

/**
 * One attempt to recover a run. How often that was tried, without getting any further, is saved with the
 * run before it goes on, so that a run which kills its process is not tried for ever.
 */
export class Attempt {
  readonly #settings: AttemptSettings;
  #count = 0;
  #fellBack = false;
  #gaveUp = false;

  constructor(settings: AttemptSettings) {
    this.#settings = settings;
  }

  /** Which attempt this is, from 1 up; 0 when the run was left alone. */
  get count(): number {
    return this.#count;
  }

  /** Whether the run was set back by one checkpoint. */
  get fellBack(): boolean {
    return this.#fellBack;
  }

  /** Whether there have been enough attempts. */
  get gaveUp(): boolean {
    return this.#gaveUp || this.#count >= this.#settings.maxAttempts;
  }

  /** What the run goes on from; nothing when it needs no recovery, or had enough. */
  readonly begin: Prepare = async (newest, load) => {
    if (newest.status === "completed" || newest.status === "paused") return undefined;
    const place = placeOf(newest);
    const before = furthest(newest.recovery, place);
    this.#count = before.attempts;
    if (before.attempts >= this.#settings.maxAttempts) {
      this.#gaveUp = true;
      return givenUp(newest);
    }
    this.#count++;
    // When an attempt has failed here already, perhaps what was saved last is what makes it fail.
    const failedHere = before.attempts > 0 && place.step === before.step;
    const previous = failedHere && this.#settings.fallBack ? await this.#previous(newest) : "";
    this.#fellBack = previous !== "";
    const recovery = Object.freeze({ ...before, attempts: this.#count });
    const from = this.#fellBack ? await load(previous) : newest;
    const reason = this.#fellBack ? "rollback" : "recovery";
    return { state: State.progressed(from, { recovery, reason }), goOn: true };
  };

  /** The attempt was broken off by whoever started it, and does not count. */
  readonly undo: Prepare = async (newest) => {
    const { recovery } = newest;
    if (recovery === undefined || recovery.attempts !== this.#count) return undefined;
    const less = Object.freeze({ ...recovery, attempts: this.#count - 1 });
    return { state: State.progressed(newest, { recovery: less, reason: "recovery" }), goOn: false };
  };

  /** No more attempts: the run has failed. */
  readonly giveUp: Prepare = async (newest) => givenUp(newest);

  /** The id of the newest checkpoint with fewer nodes completed; `""` when there is none. */
  async #previous({ step }: { readonly step: number }): Promise<string> {
    const entries = await this.#settings.history();
    const isBefore = (entry: HistoryEntry) => entry.step < step && entry.status !== "paused";
    return entries.find(isBefore)?.checkpointId ?? "";
  }
}

type Place = Omit<Recovery, "attempts">;

function placeOf<D extends object>({ step, unfinished }: State<D>): Place {
  return { step, results: unfinished?.count ?? 0 };
}

/** How far a run has come in all, and how often it was recovered there; a run that has got further counts afresh. */
function furthest(before: Recovery | undefined, place: Place): Recovery {
  const isFurther =
    before === undefined ||
    place.step > before.step ||
    (place.step === before.step && place.results > before.results);
  return isFurther ? { attempts: 0, ...place } : before;
}

function givenUp<D extends object>(
  newest: State<D>,
): { readonly state: State<D>; readonly goOn: boolean } | undefined {
  if (newest.status === "failed") return undefined;
  const { recovery, unfinished, checkpointNode } = newest;
  const error = Object.freeze({
    name: "RecoveryError",
    message: `the run was recovered ${recovery?.attempts ?? 0} times and got no further`,
    node: unfinished?.node ?? checkpointNode,
  });
  const changes = { status: "failed", error, reason: "recovery" } as const;
  return { state: State.progressed(newest, changes), goOn: false };
}
