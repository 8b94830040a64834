import type { NewRecord } from "../../checkpoint/records/backend.js";
import type { Connection } from "./connection.js";
import { arrayOf, type Statements } from "./statements.js";

/** So many superfluous checkpoints of a run are removed together; fewer if they are large. */
const MANY = 32;
const MANY_LARGE = 4;
const LARGE = 128 * 1024;
/** How many runs to remember. */
const REMEMBERED = 1000;
/** How many checkpoints one statement is for. */
const PER_STATEMENT = 500;

/** A run that was saved to. */
interface TrimmedRun {
  /** The id of its row, which no other run with its name ever has. */
  readonly id: string;
  isLarge: boolean;
  hasEnded: boolean;
  /** What is to be removed. */
  sequences: number[];
}

/** Removes superfluous checkpoints: of many runs together, and never many at once. */
export class Trimmer {
  readonly #connection: Connection;
  readonly #statements: Statements;
  /** The least recently saved run first. */
  readonly #runs = new Map<string, TrimmedRun>();
  #due: { readonly id: string; readonly sequence: number }[] = [];
  #trimming: Promise<void> | undefined;

  constructor(connection: Connection, statements: Statements) {
    this.#connection = connection;
    this.#statements = statements;
  }

  /** Notes what was saved. */
  saved(runId: string, id: string, { bytes, fields: { status } }: NewRecord): void {
    const known = this.#runs.get(runId);
    const run = known?.id === id ? known : { id, isLarge: false, hasEnded: false, sequences: [] };
    run.isLarge = bytes >= LARGE;
    run.hasEnded = status === "completed" || status === "failed";
    this.#runs.delete(runId);
    this.#runs.set(runId, run);
    for (const [oldest, forgotten] of this.#runs) {
      if (this.#runs.size <= REMEMBERED) break;
      this.#runs.delete(oldest);
      this.#add(forgotten);
    }
  }

  /** Removes checkpoints of a run, now or with others later. */
  async discard(runId: string, sequences: readonly number[]): Promise<void> {
    const run = this.#runs.get(runId) ?? (await this.#identify(runId));
    if (run === undefined) return;
    run.sequences.push(...sequences);
    const many = run.isLarge ? MANY_LARGE : MANY;
    if (!run.hasEnded && run.sequences.length < many) return;
    this.#add(run);
    await this.#trim();
  }

  /** Removes all that is left to remove. */
  async close(): Promise<void> {
    for (const run of this.#runs.values()) this.#add(run);
    this.#runs.clear();
    if (this.#due.length > 0) await this.#trim();
  }

  /** The run that has this name at the moment; its checkpoints are removed at once. */
  async #identify(runId: string): Promise<TrimmedRun | undefined> {
    const [row] = await this.#connection.read(this.#statements.identify, [runId]);
    return row && { id: String(row.id), isLarge: false, hasEnded: true, sequences: [] };
  }

  #add(run: TrimmedRun): void {
    for (const sequence of run.sequences) this.#due.push({ id: run.id, sequence });
    run.sequences = [];
  }

  /** Those who come while it works share its work, and its failure. */
  #trim(): Promise<void> {
    this.#trimming ??= this.#trimAll().finally(() => {
      this.#trimming = undefined;
    });
    return this.#trimming;
  }

  async #trimAll(): Promise<void> {
    while (this.#due.length > 0) {
      const some = this.#due.splice(0, PER_STATEMENT);
      const ids = arrayOf(some.map(({ id }) => Number(id)));
      const sequences = arrayOf(some.map(({ sequence }) => sequence));
      try {
        await this.#connection.write(this.#statements.discard, [ids, sequences]);
      } catch (error) {
        // Removed with what comes next.
        this.#due.unshift(...some);
        throw error;
      }
    }
  }
}
