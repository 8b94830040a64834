import { hostname } from "node:os";
import { v7 } from "uuid";
import type { Claim } from "../../checkpoint/store.js";
import { CheckpointConflictError, show } from "../../errors.js";
import type { Connection } from "./connection.js";
import { messageOf } from "./failure.js";
import { Sharing } from "./sharing.js";
import { arrayOf, type Statements } from "./statements.js";

/** A claim that this store holds, or thinks it does. */
export interface Held {
  readonly epoch: number;
  /** How long a lease is good, in milliseconds. */
  readonly ttl: number;
  /** Says that the lease was renewed by a statement that was sent at this moment. */
  renewed(at: number): void;
}

/** A claim that is wanted. */
interface Wanted {
  readonly runId: string;
  readonly owner: string;
  readonly ttl: number;
}

/** A claim that was given. */
interface Given {
  readonly runId: string;
  readonly epoch: number;
  readonly ttl: number;
}

/** The claims of a store. Whether one still holds, the clock of the database says. */
export class Claims {
  readonly #held = new Map<string, Lease>();
  readonly #claims: Sharing<Wanted, number | undefined>;
  readonly #renewals: Sharing<Given, boolean>;
  readonly #releases: Sharing<Given, undefined>;

  constructor(connection: Connection, { claim, renew, release }: Statements) {
    const runIds = (all: readonly { runId: string }[]): string =>
      arrayOf(all.map(({ runId }) => runId));
    const epochs = (all: readonly Given[]): string => arrayOf(all.map(({ epoch }) => epoch));
    const ttls = (all: readonly { ttl: number }[]): string => arrayOf(all.map(({ ttl }) => ttl));
    this.#claims = new Sharing({
      async together(all) {
        const owners = arrayOf(all.map(({ owner }) => owner));
        const rows = await connection.query(claim, [runIds(all), owners, ttls(all)]);
        const claimed = new Map(rows.map((row) => [String(row.run_id), Number(row.epoch)]));
        return all.map(({ runId }) => claimed.get(runId));
      },
    });
    this.#renewals = new Sharing({
      async together(all) {
        const rows = await connection.query(renew, [runIds(all), epochs(all), ttls(all)]);
        const renewed = new Set(rows.map((row) => String(row.run_id)));
        return all.map(({ runId }) => renewed.has(runId));
      },
    });
    this.#releases = new Sharing({
      async together(all) {
        await connection.query(release, [runIds(all), epochs(all)]);
        return all.map(() => undefined);
      },
    });
  }

  /** The claim on a run whose epoch its saves must carry. */
  held(runId: string): Held | undefined {
    return this.#held.get(runId);
  }

  /**
   * Refuses to go on with a run that this store had claimed, and another has since.
   *
   * @param epoch - where the run is, as is its sequence.
   */
  check(runId: string, epoch: number, sequence: number): void {
    const held = this.#held.get(runId);
    if (held === undefined || held.epoch === epoch) return;
    const error = new CheckpointConflictError(runId, sequence, sequence);
    error.message = `run ${show(runId)} was claimed by another process since: this one's claim has epoch ${held.epoch}, the run has ${epoch}`;
    throw error;
  }

  /** Claims a run; `undefined` when a lease is still good. */
  async claim(runId: string, ttl: number): Promise<Claim | undefined> {
    const owner = `${hostname()}:${process.pid}:${v7()}`;
    const at = performance.now();
    const epoch = await this.#claims.ask({ runId, owner, ttl });
    if (epoch === undefined) return undefined;
    const lease = new Lease(epoch, ttl, at, () => this.#renewals.ask({ runId, epoch, ttl }));
    // One that ran out unnoticed, while the event loop stood still for example.
    this.#held.get(runId)?.lose("somebody else has claimed it");
    this.#held.set(runId, lease);
    let released: Promise<void> | undefined;
    return {
      epoch: lease.epoch,
      lost: lease.lost,
      release: () => {
        released ??= this.#release(runId, lease);
        return released;
      },
    };
  }

  /** Releases all. */
  async close(): Promise<void> {
    const all = [...this.#held];
    await Promise.all(all.map(([runId, lease]) => this.#release(runId, lease).catch(() => {})));
  }

  async #release(runId: string, lease: Lease): Promise<void> {
    lease.stop();
    if (this.#held.get(runId) === lease) this.#held.delete(runId);
    await this.#releases.ask({ runId, epoch: lease.epoch, ttl: lease.ttl });
  }
}

/** A timer that is set for longer goes off at once. */
const LONGEST_TIMER = 2 ** 31 - 1;

/** Keeps a claim by renewing its lease well before it ends. */
class Lease implements Held {
  readonly epoch: number;
  readonly ttl: number;
  readonly #renew: () => Promise<boolean>;
  readonly #lost = new AbortController();
  #until: number;
  #timer: NodeJS.Timeout | undefined;
  #stopped = false;

  constructor(epoch: number, ttl: number, at: number, renew: () => Promise<boolean>) {
    this.epoch = epoch;
    this.ttl = ttl;
    this.#renew = renew;
    // The lease began no earlier than its statement was sent, so here it never lasts longer than there.
    this.#until = at + ttl;
    this.#wait();
  }

  get lost(): AbortSignal {
    return this.#lost.signal;
  }

  renewed(at: number): void {
    this.#until = Math.max(this.#until, at + this.ttl);
  }

  stop(): void {
    this.#stopped = true;
    clearTimeout(this.#timer);
  }

  /** A third of its time after it was renewed, by this or by a save, it is renewed again. */
  #wait(least = 0): void {
    const wait = Math.max(this.#due - performance.now(), least);
    this.#timer = setTimeout(() => this.#beat(), Math.min(wait, LONGEST_TIMER));
    // A run that waits for nothing that could still happen must not keep the process from its end.
    this.#timer.unref();
  }

  get #due(): number {
    return this.#until - (this.ttl * 2) / 3;
  }

  async #beat(): Promise<void> {
    const at = performance.now();
    if (at < this.#due) return this.#wait();
    let problem = "no answer came in time";
    let late: NodeJS.Timeout | undefined;
    const watch = (): void => {
      const left = Math.max(this.#until - performance.now(), 0);
      late = setTimeout(giveUp, Math.min(left, LONGEST_TIMER)).unref();
    };
    // A save may have renewed it meanwhile.
    const giveUp = (): void => {
      if (performance.now() < this.#until) watch();
      else this.lose(problem);
    };
    watch();
    try {
      if (await this.#renew()) this.renewed(at);
      else this.lose("somebody else has claimed it");
    } catch (error) {
      problem = `it could not be renewed: ${messageOf(error)}`;
    }
    clearTimeout(late);
    if (performance.now() >= this.#until) this.lose(problem);
    if (!this.#stopped) this.#wait(this.ttl / 10);
  }

  /** Says that somebody else may have the run. */
  lose(why: string): void {
    if (this.#stopped) return;
    this.stop();
    this.#lost.abort(new Error(`the claim on the run is lost: ${why}`));
  }
}
