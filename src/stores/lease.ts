import type { Claim } from "../checkpoint/store.js";
import { elapsedSince, type Moment, moment } from "../clock.js";
import { messageOf } from "../errors.js";

export const TAKEN = "another process has claimed it";
export const LATE = "no answer came in time";

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

export function unrenewed(error: unknown): string {
  return `it could not be renewed: ${messageOf(error)}`;
}
