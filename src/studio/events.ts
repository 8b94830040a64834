import { listRuns } from "../checkpoint/any-store.js";
import type { HistoryEntry } from "../checkpoint/store.js";
import { monotonic, sleep } from "../clock.js";
import type { Studio } from "./context.js";
import { Feed, OVERLAP, type Sent } from "./feed.js";
import { HttpError, securityHeaders } from "./http.js";
import type { Runs } from "./runs.js";

/** The maximum number of open streams. */
const STREAMS = 100;
/** The number of checkpoints that a stream holds. */
const CHECKPOINTS = 1000;
/** How often an idle stream sends a comment to stay open, in milliseconds. */
const BEAT = 15_000;

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
      throw new HttpError(503, "TOO_MANY_STREAMS", `there are already ${STREAMS} open streams`);
    }
    const ending = new AbortController();
    this.#open.add(ending);
    request.signal.addEventListener("abort", () => ending.abort(), { once: true });
    const id = request.headers.get("last-event-id") ?? "";
    const { signal } = ending;
    const events = runId === null ? this.#all(id, signal) : this.#one(runId, id, signal);
    return this.#stream(events, ending);
  }

  /** Reports that a run was deleted here, since no store records that. */
  deleted(runId: string): void {
    this.#feed.deleted(runId);
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

  /** The checkpoints of one run. The id of an event is the checkpoint's sequence, so any server can continue the stream. */
  async *#one(
    runId: string,
    lastId: string,
    signal: AbortSignal,
  ): AsyncGenerator<Sent | undefined> {
    const { redaction } = this.#studio.settings;
    let last = /^\d{1,15}$/.test(lastId)
      ? Number(lastId)
      : (await this.#look(runId, Number.POSITIVE_INFINITY)).newest;
    yield ready(String(last));
    let stamp: string | undefined;
    for (;;) {
      const look = await this.#look(runId, last, stamp);
      ({ stamp } = look);
      if (look.newest < last) {
        last = 0;
        yield { id: "0", event: { event: "delete", data: { runId } } };
      }
      for (const entry of look.entries) {
        last = entry.sequence;
        const data = redaction.summary(entry);
        yield { id: String(last), event: { event: "checkpoint", data } };
      }
      if (look.newest > last) stamp = undefined;
      else yield* this.#wait(signal);
    }
  }

  /**
   * The checkpoints of a run after `last`, oldest first; from the beginning if the run was replaced by one with fewer
   * checkpoints. There may be more: only so many are returned, since they stay in memory while a slow client reads them.
   * The history is read only if the run has been saved since it had the stamp `before`.
   */
  async #look(
    runId: string,
    last: number,
    before?: string,
  ): Promise<{
    readonly stamp: string | undefined;
    readonly newest: number;
    readonly entries: readonly HistoryEntry[];
  }> {
    const { store } = this.#studio.settings;
    const [run] = await listRuns(store, { runId, limit: 1 });
    const stamp = run && JSON.stringify([run.savedAt, run.step, run.status]);
    // Two saves in one millisecond look the same, so the history of a run that was just saved is always read.
    const isSettled = run !== undefined && Date.now() - Date.parse(run.savedAt) > OVERLAP;
    if (isSettled && stamp === before) return { stamp, newest: last, entries: [] };
    const history = run === undefined ? [] : ((await store.history?.(runId)) ?? []);
    const newest = history[0]?.sequence ?? 0;
    const from = newest < last ? 0 : last;
    const behind = history.filter(({ sequence }) => sequence > from);
    return { stamp, newest, entries: behind.slice(-CHECKPOINTS).reverse() };
  }

  /** Waits until the next look, and keeps the connection open. */
  async *#wait(signal: AbortSignal): AsyncGenerator<undefined> {
    const { pollMs } = this.#studio.settings;
    const isBeat = Math.floor(monotonic() / BEAT) !== Math.floor((monotonic() + pollMs) / BEAT);
    if (isBeat) yield undefined;
    await sleep(pollMs, signal);
  }

  /** Produces an event only when the client reads, so that a slow client uses no memory. */
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
            controller.enqueue(encoder.encode(messageText(next.value)));
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

function messageText(sent: Sent | undefined): string {
  if (sent === undefined) return ": alive\n\n";
  const { id, event } = sent;
  // JSON escapes line breaks, so nothing in the data can end the event.
  return `id: ${id}\nevent: ${event.event}\ndata: ${JSON.stringify(event.data)}\n\n`;
}
