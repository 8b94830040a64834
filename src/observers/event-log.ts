/**
 * An append-only log of a run, with one line of JSON for each event.
 *
 * @packageDocumentation
 */
import { isoNow } from "../clock.js";
import { checkRedaction, type Redaction } from "../codecs/redact.js";
import { type AnyEvent, type EventTail, isRunEnd } from "../events.js";
import { callable, checkOptions, integer } from "../options.js";
import { AppendFile } from "./append-file.js";
import { Lines } from "./event-log/lines.js";
import { mendLines, repairLines, rotation } from "./log/files.js";
import { LogTail } from "./log/tail.js";
import {
  checkPlace,
  FileObserver,
  type FileObserverOptions,
  fileObserverChecks,
  LOG_FILE,
  type LogPlace,
} from "./run-files.js";

export type { Redaction } from "../codecs/redact.js";
export { type LogLine, readEventLog } from "./log/reader.js";
export type { FileObserverOptions, LogPlace } from "./run-files.js";

/** How {@link eventLog} writes. */
export interface EventLogSettings extends FileObserverOptions {
  /** The size in bytes beyond which a file is renamed to `events.0001.jsonl` and so on; at least 1024, 64 MB by default. */
  readonly maxBytes?: number;
  /** How many files of a log to keep; the oldest are deleted. At least 2, all by default. */
  readonly maxFiles?: number;
  /** What to redact: paths of fields (`error`, `*.token`), and regular expressions for any text. Nothing by default. */
  readonly redact?: Redaction;
  /** Which events to write; all by default. */
  readonly filter?: (event: AnyEvent) => boolean;
}

/** Options of {@link eventLog}: a `path` for all runs, or a `root` with `{runId}/events.jsonl` for each; and how to write. */
export type EventLogOptions = LogPlace & EventLogSettings;

/** An observer that writes a log. */
export interface EventLog {
  /** Writes one event; never throws and never waits. */
  onEvent(event: AnyEvent): void;
  /**
   * Reads the events of a run back. `graph.attach` follows other processes' runs by it, if the graph has this observer.
   * `cause` is not in a log, and all events have a `node`.
   */
  tail(runId: string, from: "start" | "now"): EventTail;
  /** How many events were not written because the disk was too slow or rejected them. */
  readonly dropped: number;
  /** Resolves when everything is written. */
  flush(): Promise<void>;
  /** Flushes and closes all files. Another event opens them again. */
  close(): Promise<void>;
}

const MAX_BYTES = 64 * 1024 * 1024;

/**
 * An observer that writes each event as one line of JSON: `ts, step_id, parent_id, event, node, run, source`
 * and the event's own fields. Events of a graph inside a node go to the log of the outermost run, with their
 * `path`. `parent_id` is the `step_id` of the step that led to this one, across resumes too. A line is written
 * as soon as its event happens, in one call: it survives a killed process (not a power cut), and several
 * processes may write to one file. While the disk is slow, lines wait in memory; when too many wait, further ones
 * are dropped, and a `log.dropped` line reports how many.
 *
 * @throws ConfigError if an option is invalid.
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
    ...fileObserverChecks,
    maxBytes: integer(1024, true),
    maxFiles: integer(2, true),
    redact: checkRedaction,
    filter: callable,
  });
  checkPlace("eventLog", options);
  return new JsonLog(options);
}

class JsonLog extends FileObserver<AppendFile> implements EventLog {
  readonly #place: LogPlace;
  readonly #filter: ((event: AnyEvent) => boolean) | undefined;
  readonly #lines: Lines;

  constructor(options: EventLogOptions) {
    const { redact = [], maxBytes = MAX_BYTES, maxFiles = Number.POSITIVE_INFINITY } = options;
    const lines = new Lines(redact);
    const isFull = rotation(maxBytes, maxFiles);
    super(options, LOG_FILE, ({ run, ...setting }) => {
      const notice = (count: number): string => lines.dropped(isoNow(), run, count);
      return new AppendFile({ ...setting, repair: repairLines, mend: mendLines, isFull, notice });
    });
    this.#place = options;
    this.#filter = options.filter;
    this.#lines = lines;
  }

  override onEvent(event: AnyEvent): void {
    // The trace of a run needs all of its events, including those that are filtered out.
    const line = this.#lines.line(event);
    const { runId, rootRunId = runId } = event;
    if (this.#filter?.(event) !== false) this.fileOf(rootRunId).append(line);
    if (isRunEnd(event) && event.path === undefined) this.ended(runId);
  }

  tail(runId: string, from: "start" | "now"): EventTail {
    return new LogTail(this.#place, runId, from);
  }
}
