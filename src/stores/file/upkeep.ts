import type { Retention, StoreContext } from "../../checkpoint/store.js";
import { now } from "../../clock.js";
import type { State } from "../../state/state.js";
import { Background } from "./background.js";
import { messageOf } from "./save-error.js";

const HOUR = 60 * 60 * 1000;

/** What is done on the side of saves. */
export interface UpkeepSettings {
  /** A larger checkpoint, in bytes, is told. */
  readonly warnBytes: number;
  /** Which runs to remove, about once an hour; none when it is not given. */
  readonly retention: Retention | undefined;
  /** Removes them. */
  readonly prune: (retention: Retention) => Promise<unknown>;
}

/** What a store does without being waited for. What goes wrong is told by an event, never thrown. */
export class Upkeep {
  readonly #settings: UpkeepSettings;
  readonly #background = new Background();
  #prunedAt = Number.NEGATIVE_INFINITY;

  constructor(settings: UpkeepSettings) {
    this.#settings = settings;
  }

  /** Starts a task. */
  start(task: () => Promise<unknown>, emit?: StoreContext["emit"], node = ""): void {
    this.#background.start(task, (error) =>
      emit?.("checkpoint.error", { action: "delete", node, error: messageOf(error) }),
    );
  }

  /** Warns of a checkpoint that is large, and removes old runs now and then. */
  afterSave<D extends object>(saved: State<D>, emit: StoreContext["emit"]): void {
    const { checkpointNode: node, bytes = 0 } = saved;
    const { warnBytes, retention, prune } = this.#settings;
    if (bytes > warnBytes) {
      const error = `the checkpoint has ${bytes} bytes, more than warnBytes (${warnBytes})`;
      emit?.("checkpoint.error", { action: "size", node, error });
    }
    if (retention === undefined || now() - this.#prunedAt <= HOUR) return;
    this.#prunedAt = now();
    this.start(() => prune(retention), emit, node);
  }

  /** Resolves when nothing is under way any more. */
  settled(): Promise<void> {
    return this.#background.settled();
  }
}
