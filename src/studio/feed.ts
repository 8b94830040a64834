import { randomUUID } from "node:crypto";
import { listRuns } from "../checkpoint/any-store.js";
import type { RunFilter, RunSummary } from "../checkpoint/store.js";
import { monotonic } from "../clock.js";
import { mapLimit } from "../concurrency.js";
import type { StudioEvent } from "./api.js";
import type { Studio } from "./context.js";
import type { Runs } from "./runs.js";

/** How many events are kept for clients that reconnect. */
const REMEMBERED = 1000;
/** With more changes than this at once, clients fetch everything again. */
const BURST = 500;
/** How much later, in milliseconds, a run may appear than one that was saved after it: clocks differ, and saves take time. */
export const OVERLAP = 5000;
/** How many runs one look reads at most. */
const LOOKED = 1000;
/** How many runs are listed at once. Among these newest runs, deletions by other processes are noticed. */
const PAGE = 200;
/** How many States are loaded concurrently. */
const AT_ONCE = 4;

/** An event with the id that a client continues after. */
export interface Sent {
  readonly id: string;
  readonly event: StudioEvent;
}

/** The numbered changes of all runs of a store. It polls only while a client reads. */
export class Feed {
  readonly #studio: Studio;
  readonly #runs: Runs;
  /** Part of each id, since the ids of another feed are not valid here. */
  readonly #name = randomUUID().slice(0, 8);
  readonly #events: { readonly number: number; readonly event: StudioEvent }[] = [];
  #last = 0;
  /** The last known state of the runs that were saved within `OVERLAP` before the newest. */
  #seen = new Map<string, Pick<RunSummary, "savedAt" | "step" | "status">>();
  #newest: string | undefined;
  /** When the newest runs were saved, at the last look. */
  #listed = new Map<string, string>();
  /** Runs that were deleted here since the last look began. */
  readonly #deleted = new Set<string>();
  #looking: Promise<void> | undefined;
  #lookedAt = Number.NEGATIVE_INFINITY;
  /** Whether there were changes since `#forgotAt` without an event. */
  #isBehind = false;
  #forgotAt = Number.NEGATIVE_INFINITY;

  constructor(studio: Studio, runs: Runs) {
    this.#studio = studio;
    this.#runs = runs;
  }

  /** Looks for changes, unless the last look is recent. */
  refresh(): Promise<void> {
    const isFresh = monotonic() - this.#lookedAt < this.#studio.settings.pollMs / 2;
    if (this.#looking === undefined && isFresh) return Promise.resolve();
    this.#looking ??= this.#look().finally(() => {
      this.#looking = undefined;
      this.#lookedAt = monotonic();
    });
    return this.#looking;
  }

  get position(): string {
    return this.#idOf(this.#last);
  }

  /** The events after an id; `undefined` if they are no longer kept. */
  behind(id: string): Sent[] | undefined {
    const [name, text] = id.split(".");
    const number = Number(text);
    const first = this.#events[0]?.number ?? this.#last + 1;
    const isKnown = Number.isSafeInteger(number) && number >= first - 1 && number <= this.#last;
    if (name !== this.#name || !isKnown) return undefined;
    const from = number - first + 1;
    return this.#events
      .slice(from)
      .map((one) => ({ id: this.#idOf(one.number), event: one.event }));
  }

  /** Reports that a run was deleted here. */
  deleted(runId: string): void {
    this.#deleted.add(runId);
    this.#listed.delete(runId);
    this.#add({ event: "delete", data: { runId } });
  }

  #add(event: StudioEvent): void {
    this.#events.push({ number: ++this.#last, event });
    if (this.#events.length > REMEMBERED) this.#events.shift();
  }

  /** Drops all events, so that each client gets one reset. */
  #forget(): void {
    this.#events.length = 0;
    this.#last++;
    this.#isBehind = false;
    this.#forgotAt = monotonic();
  }

  #idOf(number: number): string {
    return `${this.#name}.${number}`;
  }

  async #look(): Promise<void> {
    const isFirst = this.#newest === undefined;
    this.#deleted.clear();
    const { isMore, runs, listed } = await this.#recent();
    const isNew = ({ runId, savedAt, step, status }: RunSummary): boolean => {
      const seen = this.#seen.get(runId);
      return seen?.savedAt !== savedAt || seen.step !== step || seen.status !== status;
    };
    const changed = runs.filter(isNew).reverse();
    const isBurst = !isFirst && (isMore || changed.length > BURST);
    const isBehind = this.#isBehind || isBurst;
    // Rows first: if one can't be loaded, the next look tries again.
    const rows =
      isFirst || isBehind ? [] : await mapLimit(changed, AT_ONCE, (run) => this.#runs.row(run));
    const gone = await this.#gone(listed);
    const isHere = ({ runId }: Pick<RunSummary, "runId">): boolean => !this.#deleted.has(runId);
    for (const { runId, savedAt, step, status } of changed.filter(isHere)) {
      this.#seen.set(runId, { savedAt, step, status });
    }
    this.#listed = new Map(listed.filter(isHere).map(({ runId, savedAt }) => [runId, savedAt]));
    const newest = runs[0]?.savedAt ?? "";
    if (isFirst || newest > (this.#newest ?? "")) this.#newest = newest;
    const horizon = this.#horizon();
    for (const [runId, { savedAt }] of this.#seen) if (savedAt < horizon) this.#seen.delete(runId);
    this.#isBehind = isBehind;
    // During a burst, clients need not fetch everything at every look; once it is over, they must.
    if (isBehind && (!isBurst || monotonic() - this.#forgotAt >= OVERLAP)) this.#forget();
    for (const data of rows.filter(isHere)) this.#add({ event: "run", data });
    for (const data of gone.filter(isHere)) this.#add({ event: "delete", data });
  }

  /** The runs that were listed at the last look and have been deleted since. */
  async #gone(listed: readonly RunSummary[]): Promise<Pick<RunSummary, "runId">[]> {
    const now = new Set(listed.map(({ runId }) => runId));
    const oldest = listed.length < PAGE ? "" : (listed.at(-1)?.savedAt ?? "");
    const missing = [...this.#listed].filter(
      ([runId, savedAt]) => !now.has(runId) && savedAt >= oldest,
    );
    // A save during the look may have moved the run, and a corrupt run is not listed.
    const found = await mapLimit(missing, AT_ONCE, async ([runId]) =>
      (await this.#runs.find(runId)) === undefined ? [{ runId }] : [],
    );
    return found.flat();
  }

  /**
   * The newest runs (`listed`); those saved since the last look or shortly before it, newest first (`runs`); and whether
   * more runs have been saved since then than one look reads.
   */
  async #recent(): Promise<{
    readonly listed: RunSummary[];
    readonly runs: RunSummary[];
    readonly isMore: boolean;
  }> {
    const runs: RunSummary[] = [];
    let listed: RunSummary[] | undefined;
    const before = this.#newest ?? "";
    let cursor: RunFilter["cursor"];
    do {
      const page = await listRuns(this.#studio.settings.store, { cursor, limit: PAGE });
      listed ??= page;
      this.#newest ??= page[0]?.savedAt;
      const horizon = this.#horizon();
      const fresh = page.filter(({ savedAt }) => savedAt >= horizon);
      runs.push(...fresh);
      cursor = fresh.length === PAGE ? fresh.at(-1) : undefined;
    } while (cursor !== undefined && runs.length < LOOKED);
    return { listed, runs, isMore: cursor !== undefined && cursor.savedAt > before };
  }

  #horizon(): string {
    if (this.#newest === undefined || this.#newest === "") return "";
    return new Date(Date.parse(this.#newest) - OVERLAP).toISOString();
  }
}
