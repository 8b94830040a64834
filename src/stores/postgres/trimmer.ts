import type { Connection } from "./connection.js";
import type { SaveRow, Statements } from "./statements.js";

/** Every so many checkpoints of a run those that are not kept any more are removed; sooner when they are large. */
const EVERY = 32;
const EVERY_LARGE = 4;
const LARGE = 128 * 1024;
/** How many runs, and how many checkpoints, one statement is for. */
const RUNS = 100;
const CHECKPOINTS = 500;

/** Removes checkpoints that are too old to be kept: for many runs together, and never many at once. */
export class Trimmer {
  readonly #connection: Connection;
  readonly #statements: Statements;
  readonly #start: (task: () => Promise<unknown>) => void;
  readonly #due = new Set<string>();
  #trimming = false;

  /** @param start - starts a task that nobody waits for. */
  constructor(
    connection: Connection,
    statements: Statements,
    start: (task: () => Promise<unknown>) => void,
  ) {
    this.#connection = connection;
    this.#statements = statements;
    this.#start = start;
  }

  /** Looks whether there is something to remove now that this was saved. */
  saved({ runId, sequence, status, firstKept, bytes }: SaveRow): void {
    const goesOn = status === "in_progress" || status === "pending";
    if (firstKept <= 1 || (goesOn && sequence % (bytes < LARGE ? EVERY : EVERY_LARGE) > 0)) return;
    this.#due.add(runId);
    if (this.#trimming) return;
    this.#trimming = true;
    this.#start(() => this.#trim());
  }

  async #trim(): Promise<void> {
    try {
      while (this.#due.size > 0) {
        const runIds = [...this.#due].slice(0, RUNS);
        for (const runId of runIds) this.#due.delete(runId);
        await this.#trimAll(runIds);
      }
    } finally {
      this.#trimming = false;
    }
  }

  async #trimAll(runIds: readonly string[]): Promise<void> {
    let removed = CHECKPOINTS;
    try {
      while (removed === CHECKPOINTS) {
        const rows = await this.#connection.query(this.#statements.trim, [runIds, CHECKPOINTS]);
        removed = rows.length;
      }
    } catch (error) {
      // A run that has ended is not saved again, so the next of another tries this too.
      for (const runId of runIds) this.#due.add(runId);
      throw error;
    }
  }
}
