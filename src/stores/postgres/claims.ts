import { Batcher } from "../../concurrency.js";
import type { LeaseKeeper } from "../leases.js";
import type { Statement } from "../sql/backend.js";
import { runIdIn } from "../sql/text.js";
import type { Connection } from "./connection.js";
import { isRefused } from "./failure.js";
import { arrayOf, type Statements } from "./statements.js";

/** A lease to acquire, renew or release. */
interface LeaseRequest {
  readonly runId: string;
  readonly owner: string;
  readonly epoch: number;
  readonly ttl: number;
}

/** Keeps leases in the rows of the runs, by the clock of the database, many in one statement. */
export class PostgresLeases implements LeaseKeeper {
  readonly #acquiring: Batcher<LeaseRequest, number | undefined>;
  readonly #renewing: Batcher<LeaseRequest, boolean>;
  readonly #releasing: Batcher<LeaseRequest, undefined>;
  readonly #connection: Connection;
  readonly #statements: Statements;

  constructor(connection: Connection, statements: Statements) {
    const { claim, renew, release } = statements;
    this.#connection = connection;
    this.#statements = statements;
    const batched = <T>(
      statement: Statement,
      fields: readonly (keyof LeaseRequest)[],
      result: (epoch: number | undefined) => T,
    ): Batcher<LeaseRequest, T> =>
      new Batcher({
        isItemFault: isRefused,
        many: async (all) => {
          const lists = fields.map((field) => arrayOf(all.map((one) => one[field])));
          const rows = await connection.write(statement, lists);
          const epochs = new Map(rows.map((row) => [runIdIn(row), Number(row.epoch)]));
          return all.map(({ runId }) => result(epochs.get(runId)));
        },
      });
    this.#acquiring = batched(claim, ["runId", "owner", "ttl"], (epoch) => epoch);
    this.#renewing = batched(renew, ["runId", "epoch", "ttl"], (epoch) => epoch !== undefined);
    this.#releasing = batched(release, ["runId", "epoch"], () => undefined);
  }

  acquire(runId: string, owner: string, ttl: number): Promise<number | undefined> {
    return this.#acquiring.run({ runId, owner, ttl, epoch: 0 });
  }

  renew(runId: string, epoch: number, ttl: number): Promise<boolean> {
    return this.#renewing.run({ runId, epoch, ttl, owner: "" });
  }

  release(runId: string, epoch: number): Promise<void> {
    return this.#releasing.run({ runId, epoch, ttl: 0, owner: "" });
  }

  async owner(runId: string): Promise<string | undefined> {
    const [row] = await this.#connection.read(this.#statements.holder, [runId]);
    return row && String(row.owner);
  }

  async evict(runId: string, owner: string): Promise<void> {
    await this.#connection.write(this.#statements.evict, [runId, owner]);
  }
}
