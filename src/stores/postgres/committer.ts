import type { Connection } from "./connection.js";
import { isRefused } from "./failure.js";
import { parametersOf, parametersOfAll, type SaveRow, type Statements } from "./statements.js";

/** How many statements may be under way; what comes meanwhile goes together in the next. */
const UNDER_WAY = 2;
/** The most saves, and about the most bytes, of one statement. */
const MOST_SAVES = 100;
const MOST_BYTES = 1024 * 1024;

interface Waiting {
  readonly row: SaveRow;
  readonly resolve: (isSaved: boolean) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Writes checkpoints. One alone is one statement; when many runs save at once, those that wait share
 * one, and with it a round trip and a flush. Each is fenced by itself.
 */
export class Committer {
  readonly #connection: Connection;
  readonly #statements: Statements;
  #waiting: Waiting[] = [];
  #underWay = 0;

  constructor(connection: Connection, statements: Statements) {
    this.#connection = connection;
    this.#statements = statements;
  }

  /** Whether it was saved; not when the run is not where the row says. */
  async save(row: SaveRow): Promise<boolean> {
    // There is no row yet that could be locked, but for one that was claimed.
    if (row.expected === 0 && row.epoch === null) {
      const saved = await this.#connection.query(this.#statements.start, parametersOf(row));
      return saved.length === 1;
    }
    return new Promise((resolve, reject) => {
      this.#waiting.push({ row, resolve, reject });
      if (this.#underWay < UNDER_WAY) this.#drain();
    });
  }

  async #drain(): Promise<void> {
    this.#underWay++;
    while (this.#waiting.length > 0) await this.#write(this.#take());
    this.#underWay--;
  }

  #take(): Waiting[] {
    let bytes = 0;
    const size = this.#waiting.findIndex(({ row }, index) => {
      bytes += row.bytes;
      return index > 0 && (index === MOST_SAVES || bytes > MOST_BYTES);
    });
    return this.#waiting.splice(0, size < 0 ? this.#waiting.length : size);
  }

  async #write(batch: readonly Waiting[]): Promise<void> {
    const [first] = batch;
    if (batch.length === 1 && first !== undefined) {
      return this.#one(first);
    }
    try {
      const rows = batch.map(({ row }) => row);
      const saved = await this.#connection.query(this.#statements.saveAll, parametersOfAll(rows));
      const ids = new Set(saved.map((row) => row.checkpoint_id));
      for (const { row, resolve } of batch) resolve(ids.has(row.checkpointId));
    } catch (error) {
      // One of them is to blame, and only that one is to suffer.
      if (isRefused(error)) await Promise.all(batch.map((one) => this.#one(one)));
      else for (const { reject } of batch) reject(error);
    }
  }

  async #one({ row, resolve, reject }: Waiting): Promise<void> {
    try {
      const saved = await this.#connection.query(this.#statements.save, parametersOf(row));
      resolve(saved.length === 1);
    } catch (error) {
      reject(error);
    }
  }
}
