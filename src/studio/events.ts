import { randomUUID } from "node:crypto";
import { listRuns } from "../checkpoint/retention.js";
import type { HistoryEntry, RunFilter, RunSummary } from "../checkpoint/store.js";
import { monotonic, sleep } from "../clock.js";
import { mapLimit } from "../concurrency.js";
import type { StudioEvent } from "./api.js";
import type { Studio } from "./context.js";
import { HttpError, securityHeaders } from "./http.js";
import type { Runs } from "./runs.js";

/** So many events are remembered for those who come back. */
const REMEMBERED = 1000;
/** More changes than this at once are no news, but a reason to fetch all again. */
const BURST = 500;
/** A run may show up later than one that was saved after it: clocks differ, and saves take time. */
const OVERLAP = 5000;
/** So many runs are looked through at once. */
const LOOKED = 1000;
/** So many streams may be open. */
const STREAMS = 100;
/** How often a stream that has nothing to say shows that it is there, in milliseconds. */
const BEAT = 15_000;
const PAGE = 200;
/** So many States are loaded at once. */
const AT_ONCE = 4;

/** An event with the id that a client continues behind. */
interface Sent {
  readonly id: string;
  readonly event: StudioEvent;
}

/** The changes of all runs of a store, numbered. It looks only while somebody asks. */
class Feed {
  readonly #studio: Studio;
  readonly #runs: Runs;
  /** Ids of another feed mean nothing here. */
  readonly #name = randomUUID().slice(0, 8);
  readonly #events: { readonly number: number; readonly event: StudioEvent }[] = [];
  #last = 0;
  /** What was seen of each run that was saved shortly before the newest. */
  #seen = new Map<string, Pick<RunSummary, "savedAt" | "step" | "status">>();
  #newest: string | undefined;
  #looking: Promise<void> | undefined;
  #lookedAt = Number.NEGATIVE_INFINITY;
  /** Whether there were changes since `#forgotAt` that are in no event. */
  #isBehind = false;
  #forgotAt = Number.NEGATIVE_INFINITY;

  constructor(studio: Studio, runs: Runs) {
    this.#studio = studio;
    this.#runs = runs;
  }

  /** Looks for changes, unless that has just been done. */
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

  /** The events behind an id; `undefined` if they are no longer known. */
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

  add(event: StudioEvent): void {
    this.#events.push({ number: ++this.#last, event });
    if (this.#events.length > REMEMBERED) this.#events.shift();
  }

  /** Leaves everybody behind, so that each client gets one reset. */
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
    const { isMore, runs } = await this.#recent();
    const isNew = ({ runId, savedAt, step, status }: RunSummary): boolean => {
      const seen = this.#seen.get(runId);
      return seen?.savedAt !== savedAt || seen.step !== step || seen.status !== status;
    };
    const changed = runs.filter(isNew).reverse();
    const isBurst = !isFirst && (isMore || changed.length > BURST);
    const isBehind = this.#isBehind || isBurst;
    // Rows first: what can't be loaded now is looked for again.
    const rows =
      isFirst || isBehind ? [] : await mapLimit(changed, AT_ONCE, (run) => this.#runs.row(run));
    for (const { runId, savedAt, step, status } of changed) {
      this.#seen.set(runId, { savedAt, step, status });
    }
    const newest = runs[0]?.savedAt ?? "";
    if (isFirst || newest > (this.#newest ?? "")) this.#newest = newest;
    const horizon = this.#horizon();
    for (const [runId, { savedAt }] of this.#seen) if (savedAt < horizon) this.#seen.delete(runId);
    this.#isBehind = isBehind;
    // While a burst lasts, those who listen need not fetch everything at every look; once it is over, they must.
    if (isBehind && (!isBurst || monotonic() - this.#forgotAt >= OVERLAP)) this.#forget();
    for (const data of rows) this.add({ event: "run", data });
  }

  /**
   * The runs that were saved since the last look, or shortly before it, newest first; and whether there are more since
   * then than can be looked through.
   */
  async #recent(): Promise<{ readonly runs: RunSummary[]; readonly isMore: boolean }> {
    const runs: RunSummary[] = [];
    const before = this.#newest ?? "";
    let cursor: RunFilter["cursor"];
    do {
      const page = await listRuns(this.#studio.settings.store, { cursor, limit: PAGE });
      this.#newest ??= page[0]?.savedAt;
      const horizon = this.#horizon();
      const fresh = page.filter(({ savedAt }) => savedAt >= horizon);
      runs.push(...fresh);
      cursor = fresh.length === PAGE ? fresh.at(-1) : undefined;
    } while (cursor !== undefined && runs.length < LOOKED);
    return { runs, isMore: cursor !== undefined && cursor.savedAt > before };
  }

  #horizon(): string {
    if (this.#newest === undefined || this.#newest === "") return "";
    return new Date(Date.parse(this.#newest) - OVERLAP).toISOString();
  }
}

/** The streams of a studio. */
export class Streams {
  readonly #studio: Studio;
  readonly #feed: Feed;
  readonly #open = new Set<AbortController>();

  constructor(studio: Studio, runs: Runs) {
    this.#studio = studio;
    this.#feed = new Feed(studio, runs);
  }

  /** A stream of the changes of all runs, or of one. */
  open(request: Request, runId: string | null): Response {
    if (this.#open.size >= STREAMS) {
      throw new HttpError(503, "TOO_MANY_STREAMS", `${STREAMS} streams are open already`);
    }
    const ending = new AbortController();
    this.#open.add(ending);
    request.signal.addEventListener("abort", () => ending.abort(), { once: true });
    const id = request.headers.get("last-event-id") ?? "";
    const { signal } = ending;
    const events = runId === null ? this.#all(id, signal) : this.#one(runId, id, signal);
    return this.#stream(events, ending);
  }

  /** Reports that a run was deleted here, which no store remembers. */
  deleted(runId: string): void {
    this.#feed.add({ event: "delete", data: { runId } });
  }

  /** Ends all streams. */
  close(): void {
    for (const ending of this.#open) ending.abort();
  }

  async *#all(lastId: string, signal: AbortSignal): AsyncGenerator<Sent | undefined> {
    const feed = this.#feed;
    await feed.refresh();
    let id = lastId === "" ? feed.position : lastId;
    yield ready(id);
    for (;;) {
      const events = feed.behind(id);
      if (events === undefined) {
        id = feed.position;
        yield { id, event: { event: "reset", data: {} } };
      }
      for (const sent of events ?? []) {
        ({ id } = sent);
        yield sent;
      }
      if (events?.length === 0) yield* this.#wait(signal);
      await feed.refresh();
    }
  }

  /** One run, by its history: the id of an event is the sequence of its checkpoint, whoever asks and whenever. */
  async *#one(
    runId: string,
    lastId: string,
    signal: AbortSignal,
  ): AsyncGenerator<Sent | undefined> {
    const { redaction } = this.#studio.settings;
    let [before, history] = await this.#history(runId, undefined);
    let last = /^\d{1,15}$/.test(lastId) ? Number(lastId) : (history[0]?.sequence ?? 0);
    yield ready(String(last));
    for (;;) {
      if ((history[0]?.sequence ?? 0) < last) {
        last = 0;
        yield { id: "0", event: { event: "delete", data: { runId } } };
      }
      for (const entry of history.filter(({ sequence }) => sequence > last).reverse()) {
        last = entry.sequence;
        const data = redaction.summary(entry);
        yield { id: String(last), event: { event: "checkpoint", data } };
      }
      yield* this.#wait(signal);
      [before, history] = await this.#history(runId, before, history);
    }
  }

  /** The history of a run, read again only if the run has been saved since. */
  async #history(
    runId: string,
    before: string | undefined,
    known: readonly HistoryEntry[] = [],
  ): Promise<[stamp: string | undefined, history: readonly HistoryEntry[]]> {
    const { store } = this.#studio.settings;
    const [run] = await listRuns(store, { runId, limit: 1 });
    const stamp = run && JSON.stringify([run.savedAt, run.step, run.status]);
    // Two saves in one millisecond look the same for a while, so a fresh one is always read.
    const isSettled = run !== undefined && Date.now() - Date.parse(run.savedAt) > OVERLAP;
    if (isSettled && stamp === before) return [stamp, known];
    return [stamp, run === undefined ? [] : ((await store.history?.(runId)) ?? [])];
  }

  /** Waits until the next look; shows now and then that the stream is alive. */
  async *#wait(signal: AbortSignal): AsyncGenerator<undefined> {
    const { pollMs } = this.#studio.settings;
    const isBeat = Math.floor(monotonic() / BEAT) !== Math.floor((monotonic() + pollMs) / BEAT);
    if (isBeat) yield undefined;
    await sleep(pollMs, signal);
  }

  /** Gives an event only when the client asks for it, so that a slow one costs no memory. */
  #stream(events: AsyncGenerator<Sent | undefined>, ending: AbortController): Response {
    const encoder = new TextEncoder();
    const end = (): void => {
      this.#open.delete(ending);
      ending.abort();
    };
    const body = new ReadableStream<Uint8Array>(
      {
        pull: async (controller) => {
          const next = await events.next().catch(() => undefined);
          if (next !== undefined && next.done !== true) {
            controller.enqueue(encoder.encode(textOf(next.value)));
            return;
          }
          end();
          controller.close();
        },
        cancel: end,
      },
      { highWaterMark: 0 },
    );
    const headers = { ...securityHeaders, "content-type": "text/event-stream; charset=utf-8" };
    return new Response(body, { headers });
  }
}

function ready(id: string): Sent {
  return { id, event: { event: "ready", data: {} } };
}

function textOf(sent: Sent | undefined): string {
  if (sent === undefined) return ": alive\n\n";
  const { id, event } = sent;
  // JSON has no line breaks of its own, so that nothing in data can end the event.
  return `id: ${id}\nevent: ${event.event}\ndata: ${JSON.stringify(event.data)}\n\n`;
}
