import type { CheckpointStore, HistoryEntry } from "../../checkpoint/store.js";
import { sleep } from "../../clock.js";
import { isWaymarkError } from "../../errors.js";
import { isLastLine, type LogLine, LogReader } from "../../observers/log/reader.js";
import type { LogPlace } from "../../observers/run-files.js";
import { count } from "../output/units.js";
import { isLive } from "../store/live.js";

/** How often to look for the last event of a run that has ended. */
const TRIES = 20;
const PAUSE = 50;
/** The same while the run's process is alive: on a busy machine it may be far behind. */
const LIVING_TRIES = 400;

/** What happened since the last call. */
export interface RunUpdate {
  /** Events from the log, if there is one; they include checkpoints. */
  readonly events: readonly LogLine[];
  /** Without a log: the new checkpoints, oldest first. */
  readonly checkpoints: readonly HistoryEntry[];
  /** How the run ended, or that it is paused; `undefined` while it is running. */
  readonly end: { readonly text: string; readonly isGood: boolean } | undefined;
}

/** Follows a run through its store and its log. */
export class RunTail {
  readonly #store: CheckpointStore;
  readonly #runId: string;
  readonly #events: LogReader | undefined;
  #sequence = 0;
  /** The last event of the log. */
  #last: LogLine | undefined;

  constructor(store: CheckpointStore, runId: string, log: LogPlace | undefined) {
    this.#store = store;
    this.#runId = runId;
    this.#events = log && new LogReader(log, runId);
  }

  /** What is new. */
  async next(): Promise<RunUpdate> {
    // The store first: whatever it shows, the log then shows, too.
    const status = await this.#status();
    const history = [...((await this.#store.history?.(this.#runId)) ?? [])].reverse();
    const events = await this.#read(status !== undefined);
    const fresh = history.filter(({ sequence }) => sequence > this.#sequence);
    this.#sequence = Math.max(this.#sequence, ...fresh.map(({ sequence }) => sequence));
    const end = status === "gone" ? this.#goneEnd() : status;
    return { events, checkpoints: this.#last === undefined ? fresh : [], end };
  }

  /**
   * The new events. For a run that has ended, waits for its last event, which is written just after its last
   * checkpoint.
   */
  async #read(isOver: boolean): Promise<readonly LogLine[]> {
    const events: LogLine[] = [];
    for (let tries = 0; tries < TRIES || (await this.#isLate(tries)); tries++) {
      events.push(...((await this.#events?.lines()) ?? []));
      this.#last = events.at(-1) ?? this.#last;
      if (!isOver || this.#last === undefined || isLastLine(this.#last)) break;
      await sleep(PAUSE);
    }
    return events;
  }

  async #isLate(tries: number): Promise<boolean> {
    return tries < LIVING_TRIES && (await isLive(this.#store, this.#runId)) === true;
  }

  async #status(): Promise<RunUpdate["end"] | "gone"> {
    try {
      const { status, error, step, pauses } = await this.#store.load<object>(this.#runId);
      const after = `after ${count(step, "step")}`;
      if (status === "completed") return { text: `completed ${after}`, isGood: true };
      if (status === "failed") {
        return { text: `failed ${after}: ${error?.message ?? ""}`, isGood: false };
      }
      if (status !== "paused") return undefined;
      const reasons = pauses.map(({ reason }) => reason).join(", ");
      return { text: `is paused ${after}: ${reasons}`, isGood: true };
    } catch (error) {
      if (!isWaymarkError(error, "CHECKPOINT_NOT_FOUND")) throw error;
      return "gone";
    }
  }

  /** A graph removes the checkpoints of a run that completes, unless it preserves them. */
  #goneEnd(): RunUpdate["end"] {
    const isDone = this.#last?.event === "graph.complete";
    const text = isDone
      ? "completed"
      : "has no checkpoints left: it completed with checkpoint.preserve: false, or was removed";
    return { text, isGood: true };
  }
}
