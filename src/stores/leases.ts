import type { Claim, ClaimHolder } from "../checkpoint/store.js";
import { elapsedSince, inBackground, isoNow, type Moment, moment } from "../clock.js";
import { messageOf } from "../errors.js";
import { type Processes, systemProcesses } from "./process.js";

const TAKEN = "another process has claimed it";
const LATE = "no answer came in time";

/** How long a claim lasts after its last renewal by default, in milliseconds. */
const TTL = 30_000;

/** How often to renew a lease whose renewal arrived too late. */
const REGAIN_TRIES = 3;

/**
 * Renews a lease: `false` if another process may have the run, `undefined` if none has it although the lease
 * could not be renewed.
 */
type Renew = () => Promise<boolean | undefined>;

/** When the last renewal was requested, so that it never lasts longer here than in the store. */
export interface LastRenewal {
  at: Moment;
}

/** A claim on a run that this process holds until it releases it or loses it. */
export class Lease {
  /** Increases with each lease of the run. */
  readonly epoch: number;
  /** Names the claim, with its process. */
  readonly owner: string;
  /** How long it lasts after a renewal, in milliseconds. */
  readonly ttl: number;
  readonly #renew: Renew;
  readonly #lost = new AbortController();
  readonly #last: LastRenewal;
  #regaining: Promise<boolean> | undefined;
  #stopped = false;

  /**
   * @internal
   * @param last - shared by leases that are renewed together.
   */
  constructor(epoch: number, owner: string, ttl: number, last: LastRenewal, renew: Renew) {
    this.epoch = epoch;
    this.owner = owner;
    this.ttl = ttl;
    this.#last = last;
    this.#renew = renew;
  }

  /** Aborts when another process may have the run. */
  get lost(): AbortSignal {
    return this.#lost.signal;
  }

  /** @internal How many milliseconds are left. */
  get left(): number {
    return this.ttl - elapsedSince(this.#last.at);
  }

  /** @internal Whether it was released or lost. */
  get isStopped(): boolean {
    return this.#stopped;
  }

  /** @internal The claim that it stands for. */
  claim(release: () => Promise<void>): Claim {
    let released: Promise<void> | undefined;
    return {
      lost: this.lost,
      holds: () => this.holds(),
      release: () => {
        released ??= release();
        return released;
      },
    };
  }

  /** @internal Records a renewal by something sent at this time, such as a save. */
  renewed(at: Moment): void {
    if (elapsedSince(at) < elapsedSince(this.#last.at)) this.#last.at = at;
  }

  /** @internal Renews it now. */
  async renew(): Promise<boolean | undefined> {
    const at = moment();
    const isRenewed = await this.#renew();
    if (isRenewed === true) this.renewed(at);
    else if (isRenewed === false) this.lose(TAKEN);
    return isRenewed;
  }

  /**
   * Whether no other process can have the run. Known immediately until the lease expires; after that, for example
   * if the process was stopped or the machine slept, the keeper is asked.
   */
  holds(): boolean | Promise<boolean> {
    if (this.#lost.signal.aborted) return false;
    if (this.#stopped || this.left > 0) return true;
    this.#regaining ??= this.#regain().finally(() => {
      this.#regaining = undefined;
    });
    return this.#regaining;
  }

  async #regain(): Promise<boolean> {
    try {
      for (let tries = 0; this.left <= 0 && !this.#stopped; tries++) {
        if (tries === REGAIN_TRIES) this.lose(LATE);
        else if ((await this.renew()) === undefined) break;
      }
    } catch (error) {
      this.lose(unrenewed(error));
    }
    return !this.#lost.signal.aborted;
  }

  /** @internal Stops renewing it. */
  stop(): void {
    this.#stopped = true;
  }

  /** @internal Reports that another process may have the run. */
  lose(why: string): void {
    if (this.#stopped) return;
    this.stop();
    this.#lost.abort(new Error(`the claim on the run is lost: ${why}`));
  }
}

/** A lease that is renewed well before it expires. */
class TimedLease extends Lease {
  #cancel = this.#schedule();

  override stop(): void {
    super.stop();
    this.#cancel();
  }

  /** Schedules the renewal, after a third of its duration; returns a function that cancels it. */
  #schedule(least = 0): () => void {
    return inBackground(Math.max(this.#due, least), () => this.#beat());
  }

  /** In how many milliseconds it must be renewed. */
  get #due(): number {
    return this.left - (this.ttl * 2) / 3;
  }

  async #beat(): Promise<void> {
    if (this.#due > 0) {
      this.#cancel = this.#schedule();
      return;
    }
    let problem = LATE;
    let isRenewed: boolean | undefined;
    let stopWatching = (): void => {};
    // If the process was suspended, the lease may have expired already: nothing starts until the answer
    // arrives.
    const watch = (): void => {
      const [set, wait] = [moment(), Math.max(this.left, this.ttl / 3)];
      stopWatching = inBackground(wait, () => giveUp(elapsedSince(set) - wait));
    };
    // A save may have renewed it meanwhile; and after a suspension, timers fire before answers that have
    // already arrived are processed.
    const giveUp = (lateness: number): void => {
      if (this.left > 0 || lateness > this.ttl / 10) watch();
      else this.lose(problem);
    };
    watch();
    try {
      isRenewed = await this.renew();
    } catch (error) {
      problem = unrenewed(error);
    }
    stopWatching();
    // A renewal that succeeded before the process was suspended may have expired by now; the next one
    // decides.
    if (this.left <= 0 && !isRenewed) this.lose(problem);
    if (!this.isStopped) this.#cancel = this.#schedule(this.ttl / 10);
  }
}

function unrenewed(error: unknown): string {
  return `it could not be renewed: ${messageOf(error)}`;
}

/** Stores leases where other processes see them, by a shared clock. */
export interface LeaseKeeper {
  /**
   * Gives an owner the lease of a run unless another owner's is still valid.
   *
   * @returns its epoch, higher than that of any earlier lease of this run; `undefined` if another lease is
   *   valid.
   */
  acquire(runId: string, owner: string, ttl: number): Promise<number | undefined>;
  /** Extends a lease to `ttl` from now; `false` if the run has another epoch or the lease was released. */
  renew(runId: string, epoch: number, ttl: number): Promise<boolean>;
  /** Ends a lease; does nothing if the run has another epoch. */
  release(runId: string, epoch: number): Promise<void>;
  /** The owner of the valid lease; for a keeper whose `acquire` can't detect that the owner is dead. */
  owner?(runId: string): Promise<string | undefined>;
  /** Ends the lease of an owner, if it still has it. */
  evict?(runId: string, owner: string): Promise<void>;
}

/**
 * The claims of a store, for a backend that can store leases: renewed while the process works, and taken over by another
 * process once they have expired, or once their process is known to be dead.
 *
 * @example
 * ```ts
 * import { type LeaseKeeper, Leases } from "waymark/stores";
 *
 * const owners = new Map<string, string>();
 * const keeper: LeaseKeeper = {
 *   acquire: async (runId, owner) => (owners.has(runId) ? undefined : owners.set(runId, owner).size),
 *   renew: async (runId) => owners.has(runId),
 *   release: async (runId) => void owners.delete(runId),
 *   owner: async (runId) => owners.get(runId),
 * };
 * const leases = new Leases(keeper);
 * const claim = await leases.claim("monday");
 * const held = leases.held("monday");
 * console.log(claim?.epoch, held?.epoch, held?.holds()); // 1 1 true
 * console.log((await leases.holder("monday"))?.pid === process.pid); // true
 * console.log(await leases.claim("monday")); // undefined
 * await leases.close();
 * ```
 */
export class Leases {
  readonly #keeper: LeaseKeeper;
  readonly #processes: Processes;
  readonly #held = new Map<string, TimedLease>();
  /**
   * Owners of leases that may still be stored although they are no longer held here; the same owner can get them
   * back.
   */
  readonly #unreleased = new Map<string, string>();

  constructor(keeper: LeaseKeeper);
  /** @internal */
  constructor(keeper: LeaseKeeper, processes: Processes);
  constructor(keeper: LeaseKeeper, processes: Processes = systemProcesses) {
    this.#keeper = keeper;
    this.#processes = processes;
  }

  /** The lease that this store holds, or held until another process took it over. */
  held(runId: string): Lease | undefined {
    return this.#held.get(runId);
  }

  /** Claims a run; see `CheckpointStore.claim`. */
  async claim(runId: string, ttl = TTL): Promise<Claim | undefined> {
    const at = moment();
    const owner = this.#unreleased.get(runId) ?? newOwner(this.#processes);
    this.#unreleased.delete(runId);
    const epoch = await this.#acquire(runId, owner, ttl).catch((error: unknown) => {
      // The lease may have been granted nevertheless.
      this.#unreleased.set(runId, owner);
      throw error;
    });
    if (epoch === undefined) return undefined;
    const renew = (): Promise<boolean> => this.#keeper.renew(runId, epoch, ttl);
    const lease = new TimedLease(epoch, owner, ttl, { at }, renew);
    // An earlier lease that expired unnoticed, for example while the event loop was blocked.
    this.#held.get(runId)?.lose(TAKEN);
    this.#held.set(runId, lease);
    return { epoch, ...lease.claim(() => this.#release(runId, lease)) };
  }

  /** Does not wait for the lease of a process on this machine that is known to be dead. */
  async #acquire(runId: string, owner: string, ttl: number): Promise<number | undefined> {
    const keeper = this.#keeper;
    const epoch = await keeper.acquire(runId, owner, ttl);
    if (epoch !== undefined) return epoch;
    const other = await keeper.owner?.(runId);
    if (other === undefined || isOwnerLiving(other, this.#processes) !== false) return undefined;
    await keeper.evict?.(runId, other);
    return keeper.acquire(runId, owner, ttl);
  }

  /** Who has claimed a run; nobody if that process is known to be dead. For a keeper that has `owner`. */
  async holder(runId: string): Promise<ClaimHolder | undefined> {
    const owner = await this.#keeper.owner?.(runId);
    if (owner === undefined || isOwnerLiving(owner, this.#processes) === false) return undefined;
    return holderOf(owner);
  }

  /** Releases all leases. If the keeper can't be reached, they expire. */
  async close(): Promise<void> {
    const releases = [...this.#held].map(([runId, lease]) => this.#release(runId, lease));
    await Promise.allSettled(releases);
  }

  async #release(runId: string, lease: TimedLease): Promise<void> {
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

/** Identifies a claim, with its process and time. */
export function newOwner(processes: Processes, id = processes.newOwner()): string {
  const { host, pid } = processes;
  return JSON.stringify({ host, pid, since: isoNow(), id });
}

/** What an owner is made of; nothing if it can't be parsed. */
function parseOwner(owner: string): Partial<Record<keyof ClaimHolder | "id", unknown>> {
  try {
    return Object(JSON.parse(owner));
  } catch {
    return {};
  }
}

/**
 * The process behind an owner.
 *
 * @param otherwise - its process id, if `owner` can't be parsed.
 */
export function holderOf(owner: string, otherwise = 0): ClaimHolder {
  const { host = "", pid = otherwise, since = "" } = parseOwner(owner);
  return { host: String(host), pid: Number(pid), since: String(since) };
}

/** Whether the process of an owner is alive; `undefined` if that can't be determined here. */
export function isOwnerLiving(
  owner: string,
  processes: Processes = systemProcesses,
): boolean | undefined {
  return processes.isLiving(String(parseOwner(owner).id));
}
