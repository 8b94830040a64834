/**
 * The log of a run: every event as a line of JSON, in a file that only grows.
 *
 * @packageDocumentation
 */
import { join } from "node:path";
import { isoNow } from "../clock.js";
import { ConfigError } from "../errors.js";
import type { AnyEvent } from "../events.js";
import { callable, checkOptions, integer, text } from "../options.js";
import { folderName } from "../stores/file/layout.js";
import { AppendFile } from "./append-file.js";
import { type LogPlace, Rotation, repairLines } from "./event-log/files.js";
import { checkRedaction, Lines, type LogRedaction } from "./event-log/lines.js";
import { isEnd } from "./event-log/trace.js";

export type { LogPlace } from "./event-log/files.js";
export type { LogRedaction } from "./event-log/lines.js";
export { type LogLine, readEventLog } from "./event-log/reader.js";

/** Options of {@link eventLog}: where to write, and how. */
export type EventLogOptions = LogPlace & {
  /** A file that grows larger, in bytes, is renamed to `events.0001.jsonl` and so on; at least 1024, 64 MB by default. */
  readonly maxBytes?: number;
  /** How many files of a log to keep, the newest; at least 2, all by default. */
  readonly maxFiles?: number;
  /** How much may wait in memory while the disk is slow, in bytes; at least 0, 8 MB by default. What is more is dropped and counted. */
  readonly maxPendingBytes?: number;
  /** What must not be in the log; nothing is taken out by default. */
  readonly redact?: LogRedaction;
  /** Which events to write; all by default. */
  readonly filter?: (event: AnyEvent) => boolean;
  /** Is told what kept a line from being written; the first such error is printed by default. */
  readonly onError?: (error: unknown) => void;
};

/** An observer that writes a log. */
export interface EventLog {
  /** Writes one event; never throws and never waits. */
  onEvent(event: AnyEvent): void;
  /** How many events were not written: the disk was too slow, or refused them. */
  readonly dropped: number;
  /** Resolves when nothing waits in memory any more. */
  flush(): Promise<void>;
  /** Flushes and lets go of all files. Another event opens them again. */
  close(): Promise<void>;
}

const MB = 1024 * 1024;
/** Of so many runs at once the files are held open; the others' are opened for each event. */
const OPEN_RUNS = 100;

/**
 * An observer that writes each event as one line of JSON: `ts, step_id, parent_id, event, node, run,
 * source` and the event's own fields. `parent_id` is the `step_id` of the step that led to this one,
 * also over a resume. A line is written when it happens, by one call: it survives the death of the
 * process (not a power cut), and several processes may write to one file. When the disk is slow,
 * lines wait in memory; when too many do, they are dropped, and a line `log.dropped` says how many.
 *
 * @throws ConfigError when an option is not what it must be.
 *
 * @example
 * ```ts
 * import { mkdtemp, readFile, rm } from "node:fs/promises";
 * import { tmpdir } from "node:os";
 * import { join } from "node:path";
 * import { State, StateGraph } from "waymark";
 * import { eventLog } from "waymark/observers/event-log";
 *
 * const root = await mkdtemp(join(tmpdir(), "log-"));
 * const graph = new StateGraph<{ n: number }>({ observer: eventLog({ root }) })
 *   .addNode("count", (state) => ({ n: state.data.n + 1 }))
 *   .setEntryPoint("count")
 *   .setExitPoint("count");
 * await graph.execute(State.create({ n: 0 }, { runId: "monday" }));
 *
 * const lines = (await readFile(join(root, "monday", "events.jsonl"), "utf8")).trim().split("\n");
 * const last = JSON.parse(lines.at(-1) ?? "");
 * console.log(last.event, last.step_id, last.run); // graph.complete count-000 monday
 * await rm(root, { recursive: true });
 * ```
 */
export function eventLog(options: EventLogOptions): EventLog {
  checkOptions("eventLog", options, {
    root: text,
    path: text,
    maxBytes: integer(1024, true),
    maxFiles: integer(2, true),
    maxPendingBytes: integer(0),
    redact: checkRedaction,
    filter: callable,
    onError: callable,
  });
  if ((options.root === undefined) === (options.path === undefined)) {
    throw new ConfigError("eventLog", "wants either a root or a path");
  }
  return new JsonLog(options);
}

class JsonLog implements EventLog {
  readonly #options: EventLogOptions;
  readonly #lines: Lines;
  readonly #rotation: Rotation;
  readonly #files = new Map<string, AppendFile>();
  /** Files that were let go while something was still to be written. */
  readonly #closing = new Set<Promise<void>>();
  #dropped = 0;
  #failed = false;

  constructor(options: EventLogOptions) {
    const { redact = [], maxBytes = 64 * MB, maxFiles = Number.POSITIVE_INFINITY } = options;
    this.#options = options;
    this.#lines = new Lines(redact);
    this.#rotation = new Rotation(maxBytes, maxFiles);
  }

  get dropped(): number {
    let dropped = this.#dropped;
    for (const file of this.#files.values()) dropped += file.dropped;
    return dropped;
  }

  onEvent(event: AnyEvent): void {
    const line = this.#lines.line(event);
    if (this.#options.filter?.(event) === false) return;
    this.#file(event.runId).append(line);
    if (isEnd(event) && this.#options.root !== undefined) this.#release(event.runId);
  }

  async flush(): Promise<void> {
    await Promise.all([...this.#closing, ...[...this.#files.values()].map((file) => file.flush())]);
  }

  async close(): Promise<void> {
    for (const key of [...this.#files.keys()]) this.#release(key);
    await this.flush();
  }

  #file(runId: string): AppendFile {
    const key = this.#options.root === undefined ? "" : runId;
    const known = this.#files.get(key);
    if (known !== undefined) return known;
    const oldest = this.#files.size >= OPEN_RUNS ? this.#files.keys().next().value : undefined;
    if (oldest !== undefined) this.#release(oldest);
    const file = this.#create(key);
    this.#files.set(key, file);
    return file;
  }

  #create(run: string): AppendFile {
    const { root, path, maxPendingBytes = 8 * MB } = this.#options;
    return new AppendFile({
      path: root === undefined ? path : join(root, folderName(run), "events.jsonl"),
      maxPendingBytes,
      repair: repairLines,
      isFull: (...file) => this.#rotation.isFull(...file),
      notice: (count) => this.#lines.dropped(isoNow(), run, count),
      onError: (error) => this.#report(error),
    });
  }

  /** Closes a file; what it dropped stays counted. */
  #release(key: string): void {
    const file = this.#files.get(key);
    if (file === undefined) return;
    this.#files.delete(key);
    const closed = file.close().finally(() => {
      this.#dropped += file.dropped;
      this.#closing.delete(closed);
    });
    this.#closing.add(closed);
  }

  #report(error: unknown): void {
    const first = !this.#failed;
    this.#failed = true;
    try {
      if (this.#options.onError !== undefined) this.#options.onError(error);
      else if (first) console.error("waymark: the event log can't be written.", error);
    } catch (thrown) {
      if (first) console.error("waymark: onError of the event log failed.", thrown);
    }
  }
}
