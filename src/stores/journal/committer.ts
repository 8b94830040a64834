import { after } from "../../clock.js";
import { type Line, type LineKind, partsOf } from "./line.js";
import type { LineFiles } from "./line-files.js";
import type { Log } from "./log.js";
import { type Place, parseRecordHeader } from "./record.js";
import type { Resolver } from "./resolver.js";
import { entryAt, type RunView } from "./view.js";

/** What a committer needs of its store. */
export interface CommitterSettings {
  readonly log: Log;
  readonly files: LineFiles;
  readonly resolver: Resolver;
  /** So many milliseconds after it was appended a line is flushed at the latest, where that is not done at once or left to the system. */
  readonly flushEvery: number | undefined;
  /** How large a file of the log gets before the next is begun. */
  readonly logBytes: number;
  /** Is told that a file of the log was sealed. */
  readonly onSealed: () => void;
  /** Is told what a flush failed with that nobody waited for. */
  readonly onFlushFailed: (error: unknown) => void;
  /** Runs something that nobody waits for. */
  readonly start: (task: () => Promise<unknown>) => void;
}

/** A line to append. */
export interface Appended {
  readonly kind: LineKind;
  readonly line: Buffer;
  /** The record that the line is; `undefined` for the end of a run. */
  readonly place: Place | undefined;
  /** The sequence that its State was built on. */
  readonly builtOn: number;
}

/** What became of a line: it counts; it has to be written again; or others were before it, or have ended its run. */
type Settled = "kept" | "stale" | "lost";

/** A line that waits to be written. */
interface Queued extends Appended {
  readonly view: RunView;
  readonly settle: (outcome: Settled) => void;
  readonly fail: (error: unknown) => void;
}

/** How much to write at once, in bytes; what comes on top waits for the next write. */
const BATCH = 8 * 1024 * 1024;

/**
 * Appends lines to the log. All that come while one write and its flush are under way go together
 * into the next, so that many runs share the cost of a flush.
 */
export class Committer {
  readonly #settings: CommitterSettings;
  #queue: Queued[] = [];
  #writing = false;
  #lastBatch = 0;
  #rolling = false;
  #cancelFlush: (() => void) | undefined;
  #flushFailed: { readonly error: unknown } | undefined;

  constructor(settings: CommitterSettings) {
    this.#settings = settings;
  }

  /**
   * Appends a line; it is as durable as the log makes it when the promise resolves.
   *
   * @returns `stale` when it was not written, because its run is not any more where it was thought to be,
   *   or too late; `lost` when it was written and does not count, or not any more.
   */
  append(view: RunView, { kind, line, place, builtOn }: Appended): Promise<Settled> {
    return new Promise((settle, fail) => {
      this.#queue.push({ view, kind, line, place, builtOn, settle, fail });
      if (!this.#writing) this.#drain();
    });
  }

  /**
   * Flushes what was appended and not flushed yet, and closes the log.
   *
   * @throws what a flush failed with, if no save was refused for it.
   */
  close(): Promise<void> {
    const { log } = this.#settings;
    return log.inTurn(async () => {
      await this.#flush();
      await log.close();
      const failed = this.#flushFailed;
      this.#flushFailed = undefined;
      if (failed !== undefined) throw failed.error;
    });
  }

  /** Ends the file that is written to, so that all that was written can be compacted. */
  async roll(): Promise<void> {
    const { log, onSealed } = this.#settings;
    await log.inTurn(async () => {
      await log.follow();
      if (log.number > 0) await log.seal();
    });
    onSealed();
  }

  async #drain(): Promise<void> {
    const { log } = this.#settings;
    this.#writing = true;
    try {
      while (this.#queue.length > 0) {
        // Where several runs were at it last time, all that can go on by now get into this batch.
        if (this.#lastBatch > 1) await new Promise((resolve) => setImmediate(resolve));
        await log.inTurn(() => this.#write(this.#batch()));
      }
    } finally {
      this.#writing = false;
    }
  }

  #batch(): Queued[] {
    let bytes = 0;
    const end = this.#queue.findIndex(({ line }) => {
      bytes += line.length;
      return bytes > BATCH;
    });
    const batch = this.#queue.splice(0, end < 0 ? this.#queue.length : Math.max(end, 1));
    this.#lastBatch = batch.length;
    return batch;
  }

  async #write(batch: readonly Queued[]): Promise<void> {
    const { log, flushEvery } = this.#settings;
    let items = batch;
    try {
      if (this.#flushFailed !== undefined) throw this.#flushFailed.error;
      if (!log.isReady) await log.ready();
      items = batch.filter((item) => {
        if (fits(item)) return true;
        item.settle("stale");
        return false;
      });
      if (items.length === 0) return;
      const lines = items.map(({ line }) => line);
      const offsets = await log.append(lines);
      if (typeof offsets === "string") await this.#settleByLog(items, offsets);
      else this.#settleAt(items, offsets);
      if (flushEvery !== undefined) this.#flushLater(flushEvery);
      this.#rollIfLarge();
    } catch (error) {
      this.#flushFailed = undefined;
      for (const { view, place, builtOn } of items) {
        if (place !== undefined) view.unsure.set(place.checkpointId, builtOn);
      }
      // Some of it may be there all the same.
      await log.follow().catch(() => {});
      for (const item of items) item.fail(error);
    }
  }

  #settleAt(items: readonly Queued[], offsets: readonly number[]): void {
    const { log } = this.#settings;
    const { number } = log;
    items.forEach(({ view, kind, line: { length }, place, settle }, index) => {
      const offset = offsets[index] ?? 0;
      const sequence = place?.sequence ?? 0;
      const line: Line = { kind, run: view.key, sequence, log: number, offset, length };
      log.note(view, line);
      if (place === undefined) view.known?.clear();
      else view.known?.add(place, entryAt(line));
      settle("kept");
    });
  }

  /**
   * Others wrote too: what counts is what the log says now. A record that had its place in the log is
   * never written again: others may have built on it, and its run may have been deleted since.
   */
  async #settleByLog(items: readonly Queued[], how: "mixed" | "late"): Promise<void> {
    for (const { view, place, settle } of items) {
      if (place === undefined) settle("stale");
      else if (await this.#counts(view, place)) settle("kept");
      else settle(how === "mixed" ? "lost" : "stale");
    }
  }

  async #counts(view: RunView, { sequence, checkpointId }: Place): Promise<boolean> {
    const { log, files, resolver } = this.#settings;
    for (;;) {
      const known = await resolver.known(view, true);
      const entry = known.entries.find((one) => one.sequence === sequence);
      if (entry === undefined) return false;
      if (entry.id !== undefined) return entry.id === checkpointId;
      const [text] = (await files.read(view.runId, [entry])) ?? [];
      if (text !== undefined)
        return parseRecordHeader(partsOf(text)?.header ?? "")?.checkpointId === checkpointId;
      // It was moved out of the log meanwhile.
      view.known = undefined;
      await log.refresh();
    }
  }

  #flushLater(ms: number): void {
    if (this.#cancelFlush !== undefined) return;
    const { log } = this.#settings;
    this.#cancelFlush = after(ms, () => {
      void log.inTurn(() => this.#flush());
    });
  }

  /** Never fails: what was appended was acknowledged already, so it is told to the next who asks for something. */
  async #flush(): Promise<void> {
    if (this.#cancelFlush === undefined) return;
    this.#cancelFlush();
    this.#cancelFlush = undefined;
    const { log, onFlushFailed } = this.#settings;
    try {
      await log.flush();
    } catch (error) {
      this.#flushFailed = { error };
      onFlushFailed(error);
    }
  }

  #rollIfLarge(): void {
    const { log, logBytes, onSealed, start } = this.#settings;
    if (this.#rolling || log.size < logBytes) return;
    this.#rolling = true;
    start(async () => {
      try {
        const { number } = log;
        await log.inTurn(async () => {
          if (log.number === number) await log.seal();
        });
        onSealed();
      } finally {
        this.#rolling = false;
      }
    });
  }
}

/** Whether the run is still where the line needs it to be. */
function fits({ view, place }: Queued): boolean {
  if (place === undefined) return true;
  return view.known !== undefined && (view.known.head?.id ?? "") === place.previous;
}
