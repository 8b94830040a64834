import { hostname } from "node:os";
import type { Claim, ClaimHolder } from "../checkpoint/store.js";
import { inBackground, isoNow, monotonic } from "../clock.js";
import { isLiving, ownerName } from "./process.js";

/** How long a claim lasts after the last sign of life, unless the caller says otherwise, in milliseconds. */
const TTL = 30_000;

/** Keeps the leases of claims where other processes see them, by a clock that they share. */
export interface LeaseKeeper {
  /**
   * Gives an owner the lease of a run if no other owner's is still good.
   *
   * @returns its epoch, higher than those of all leases of this run before; `undefined` if one is good.
   */
  acquire(runId: string, owner: string, ttl: number): Promise<number | undefined>;
  /** Makes a lease last `ttl` from now; `false` if the run has another epoch, or it was released. */
  renew(runId: string, epoch: number, ttl: number): Promise<boolean>;
  /** Ends a lease; nothing if the run has another epoch. */
  release(runId: string, epoch: number): Promise<void>;
}

/** The claims of a store that other processes may take over once their lease has ended. */
export class Leases {
  readonly #keeper: LeaseKeeper;
  readonly #held = new Map<string, Lease>();
  /** The owners of leases that may be held although nobody has them: the same owner gets them back. */
  readonly #unreleased = new Map<string, string>();

  constructor(keeper: LeaseKeeper) {
    this.#keeper = keeper;
  }

  /** The lease that this store has, or had until somebody took it over. */
  held(runId: string): Lease | undefined {
    return this.#held.get(runId);
  }

  /** Claims a run; see `CheckpointStore.claim`. */
  async claim(runId: string, ttl = TTL): Promise<Claim | undefined> {
    const at = monotonic();
    const owner = this.#unreleased.get(runId) ?? newOwner();
    this.#unreleased.delete(runId);
    const epoch = await this.#keeper.acquire(runId, owner, ttl).catch((error: unknown) => {
      // It may have been given all the same.
      this.#unreleased.set(runId, owner);
      throw error;
    });
    if (epoch === undefined) return undefined;
    const lease = new Lease(epoch, owner, ttl, at, () => this.#keeper.renew(runId, epoch, ttl));
    // One that ran out unnoticed, while the event loop stood still for example.
    this.#held.get(runId)?.lose(TAKEN);
    this.#held.set(runId, lease);
    let released: Promise<void> | undefined;
    return {
      epoch,
      lost: lease.lost,
      release: () => {
        released ??= this.#release(runId, lease);
        return released;
      },
    };
  }

  /** Releases all, as far as the keeper can be reached: their leases end by themselves. */
  async close(): Promise<void> {
    const releases = [...this.#held].map(([runId, lease]) => this.#release(runId, lease));
    await Promise.allSettled(releases);
  }

  async #release(runId: string, lease: Lease): Promise<void> {
    lease.stop();
    if (this.#held.get(runId) === lease) this.#held.delete(runId);
    try {
      await this.#keeper.release(runId, lease.epoch);
    } catch (error) {
      this.#unreleased.set(runId, lease.owner);
      throw error;
    }
  }
}

/** Names this process, this moment and no other claim. */
function newOwner(): string {
  return JSON.stringify({ host: hostname(), pid: process.pid, since: isoNow(), id: ownerName() });
}

/** Who an owner is. */
export function holderOf(owner: string): ClaimHolder {
  try {
    const { host, pid, since } = JSON.parse(owner) as Partial<ClaimHolder>;
    return { host: String(host), pid: Number(pid), since: String(since) };
  } catch {
    return { host: "", pid: 0, since: "" };
  }
}

/** Whether the process of an owner lives; `undefined` if that can't be seen from here. */
export function isOwnerLiving(owner: string): boolean | undefined {
  try {
    return isLiving(String((JSON.parse(owner) as { id?: unknown }).id));
  } catch {
    return undefined;
  }
}

const TAKEN = "another process has claimed it";

/** Keeps a claim by renewing its lease well before it ends. */
export class Lease {
  readonly epoch: number;
  readonly owner: string;
  /** How long it lasts after a renewal, in milliseconds. */
  readonly ttl: number;
  readonly #renew: () => Promise<boolean>;
  readonly #lost = new AbortController();
  #until: number;
  #cancel: () => void = () => {};
  #stopped = false;

  /** @param at - when it was asked for: here it never lasts longer than where it is kept. */
  constructor(
    epoch: number,
    owner: string,
    ttl: number,
    at: number,
    renew: () => Promise<boolean>,
  ) {
    this.epoch = epoch;
    this.owner = owner;
    this.ttl = ttl;
    this.#renew = renew;
    this.#until = at + ttl;
    this.#schedule();
  }

  /** Aborts when another process may have the run. */
  get lost(): AbortSignal {
    return this.#lost.signal;
  }

  /** Notes that it was renewed by what was sent at this moment of `monotonic()`: a save, for example. */
  renewed(at: number): void {
    this.#until = Math.max(this.#until, at + this.ttl);
  }

  /** Renews it no more. */
  stop(): void {
    this.#stopped = true;
    this.#cancel();
  }

  /** Reports that another process may have the run. */
  lose(why: string): void {
    if (this.#stopped) return;
    this.stop();
    this.#lost.abort(new Error(`the claim on the run is lost: ${why}`));
  }

  /** It is renewed when a third of its time is over. */
  #schedule(least = 0): void {
    const wait = Math.max(this.#due - monotonic(), least);
    this.#cancel = inBackground(wait, () => this.#beat());
  }

  get #due(): number {
    return this.#until - (this.ttl * 2) / 3;
  }

  async #beat(): Promise<void> {
    const at = monotonic();
    if (at < this.#due) return this.#schedule();
    let problem = "no answer came in time";
    let stopWatching = (): void => {};
    const watch = (): void => {
      stopWatching = inBackground(Math.max(this.#until - monotonic(), 0), giveUp);
    };
    // A save may have renewed it meanwhile.
    const giveUp = (): void => {
      if (monotonic() < this.#until) watch();
      else this.lose(problem);
    };
    watch();
    try {
      if (await this.#renew()) this.renewed(at);
      else this.lose(TAKEN);
    } catch (error) {
      problem = `it could not be renewed: ${error instanceof Error ? error.message : String(error)}`;
    }
    stopWatching();
    if (monotonic() >= this.#until) this.lose(problem);
    if (!this.#stopped) this.#schedule(this.ttl / 10);
  }
}
