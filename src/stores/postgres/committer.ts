import type { Connection } from "./connection.js";
import type { Statement } from "./database.js";
import { Sharing } from "./sharing.js";
import { parametersOf, parametersOfAll, type SaveRow, type Statements } from "./statements.js";

/** Writes checkpoints. When many runs save at once they share a statement; each is fenced by itself. */
export class Committer {
  readonly #connection: Connection;
  readonly #statements: Statements;
  readonly #saves: Sharing<SaveRow, boolean>;

  constructor(connection: Connection, statements: Statements) {
    this.#connection = connection;
    this.#statements = statements;
    this.#saves = new Sharing({
      together: (rows) => this.#together(rows),
      alone: (row) => this.#alone(row, statements.save),
      bytes: ({ bytes }) => bytes,
    });
  }

  /** Whether it was saved; not when the run is not where the row says. */
  save(row: SaveRow): Promise<boolean> {
    // There is no row yet that could be locked, but for one that was claimed.
    const isFirst = row.expected === 0 && row.epoch === null;
    return isFirst ? this.#alone(row, this.#statements.start) : this.#saves.ask(row);
  }

  async #together(rows: readonly SaveRow[]): Promise<boolean[]> {
    const saved = await this.#connection.query(this.#statements.saveAll, parametersOfAll(rows));
    const ids = new Set(saved.map((row) => row.checkpoint_id));
    return rows.map(({ checkpointId }) => ids.has(checkpointId));
  }

  async #alone(row: SaveRow, statement: Statement): Promise<boolean> {
    return (await this.#connection.query(statement, parametersOf(row))).length === 1;
  }
}
