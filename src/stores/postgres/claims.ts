import { Batcher } from "../../concurrency.js";
import type { LeaseKeeper } from "../leases.js";
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

/** Keeps leases in the rows of the runs, by the clock of the database: those of many runs together. */
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
    const list = (all: readonly LeaseRequest[], ...fields: (keyof LeaseRequest)[]): string[] =>
      fields.map((field) => arrayOf(all.map((one) => one[field])));
    this.#acquiring = new Batcher({
      isItemFault: isRefused,
      async many(all) {
        const rows = await connection.write(claim, list(all, "runId", "owner", "ttl"));
        const epochs = new Map(rows.map((row) => [runIdIn(row), Number(row.epoch)]));
        return all.map(({ runId }) => epochs.get(runId));
      },
    });
    this.#renewing = new Batcher({
      isItemFault: isRefused,
      async many(all) {
        const rows = await connection.write(renew, list(all, "runId", "epoch", "ttl"));
        const renewed = new Set(rows.map(runIdIn));
        return all.map(({ runId }) => renewed.has(runId));
      },
    });
    this.#releasing = new Batcher({
      isItemFault: isRefused,
      async many(all) {
        await connection.write(release, list(all, "runId", "epoch"));
        return all.map(() => undefined);
      },
    });
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
