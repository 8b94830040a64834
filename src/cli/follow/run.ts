import type { CheckpointStore, HistoryEntry } from "../../checkpoint/store.js";
import { isWaymarkError } from "../../errors.js";
import type { LogLine } from "../../observers/event-log/reader.js";
import type { LogPlace } from "../../observers/run-files.js";
import type { OpenStore } from "../store/open.js";
import { EventTail } from "./events.js";

/** What has happened since it was last asked. */
export interface News {
  /** Out of the log; where there is one, checkpoints are among them. */
  readonly events: readonly LogLine[];
  /** Where there is no log: the new checkpoints, oldest first. */
  readonly checkpoints: readonly HistoryEntry[];
  /** How the run has ended, or that it waits; `undefined` while it goes on. */
  readonly end: { readonly text: string; readonly isGood: boolean } | undefined;
}

/** Follows a run through its store and its log. */
export class RunTail {
  readonly #store: CheckpointStore;
  readonly #runId: string;
  readonly #events: EventTail | undefined;
  #sequence = 0;
  #hasLog = false;

  constructor({ store }: OpenStore, runId: string, log: LogPlace | undefined) {
    this.#store = store;
    this.#runId = runId;
    this.#events = log && new EventTail(log, runId);
  }

  /** What is new. */
  async next(): Promise<News> {
    // The store first: what it says is then in the log at least.
    const history = [...((await this.#store.history?.(this.#runId)) ?? [])].reverse();
    const events = (await this.#events?.next()) ?? [];
    this.#hasLog ||= events.length > 0;
    const fresh = history.filter(({ sequence }) => sequence > this.#sequence);
    this.#sequence = Math.max(this.#sequence, ...fresh.map(({ sequence }) => sequence));
    return { events, checkpoints: this.#hasLog ? [] : fresh, end: await this.#end(events) };
  }

  async #end(events: readonly LogLine[]): Promise<News["end"]> {
    try {
      const { status, error, step, pauses } = await this.#store.load<object>(this.#runId);
      const after = `after ${step} ${step === 1 ? "step" : "steps"}`;
      if (status === "completed") return { text: `completed ${after}`, isGood: true };
      if (status === "failed") {
        return { text: `failed ${after}: ${error?.message ?? ""}`, isGood: false };
      }
      if (status !== "paused") return undefined;
      const reasons = pauses.map(({ reason }) => reason).join(", ");
      return { text: `is paused ${after}: ${reasons}`, isGood: true };
    } catch (error) {
      if (!isWaymarkError(error, "CHECKPOINT_NOT_FOUND")) throw error;
      const isDone = events.some(({ event }) => event === "graph.complete");
      // A graph removes the checkpoints of a run that completes, unless it preserves them.
      const text = isDone
        ? "completed"
        : "has no checkpoints any more: it has completed, or was removed";
      return { text, isGood: true };
    }
  }
}
