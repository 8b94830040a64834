import { type FileHandle, open } from "node:fs/promises";
import { isRunEnd } from "../../events.js";
import { text } from "../../options.js";
import { checkLogPlace, LOG_FILE, type LogPlace, runPath } from "../run-files.js";
import { endOfLines, NEWLINE, partsBefore, START } from "./files.js";

/** One line of a log, as {@link readEventLog} yields it. */
export interface LogLine {
  /** When it happened, ISO 8601. */
  readonly ts: string;
  /** The name of the event. */
  readonly event: string;
  /** The run. */
  readonly run: string;
  /** The step it belongs to. */
  readonly step_id: string;
  /** The step that led to that one. */
  readonly parent_id: string;
  /** The node of that step. */
  readonly node: string;
  /** For an event of a graph inside a node: the nodes that lead to it; see `path` of an event. */
  readonly path?: readonly string[];
  /** The id of that graph's run, which no store has. */
  readonly inner_run?: string;
  /** The event's own fields. */
  readonly [field: string]: unknown;
}

/**
 * Reads the lines of one run in a log, oldest first, rotated files included. Torn lines are skipped. If there is no
 * log, there are no lines.
 *
 * @throws ConfigError if an argument is invalid.
 *
 * @example
 * ```ts
 * import { mkdtemp, rm } from "node:fs/promises";
 * import { tmpdir } from "node:os";
 * import { join } from "node:path";
 * import { State, StateGraph } from "waymark";
 * import { eventLog, readEventLog } from "waymark/observers/event-log";
 *
 * const root = await mkdtemp(join(tmpdir(), "log-"));
 * const log = eventLog({ root });
 * const graph = new StateGraph<{ n: number }>({ observer: log })
 *   .addNode("one", (state) => state)
 *   .setEntryPoint("one")
 *   .setExitPoint("one");
 * const { runId } = await graph.execute(State.create({ n: 0 }));
 * await log.close();
 *
 * const events: string[] = [];
 * for await (const { event } of readEventLog({ root }, runId)) events.push(event);
 * console.log(events.join(" ")); // graph.start node.start node.complete graph.complete
 * await rm(root, { recursive: true });
 * ```
 */
export function readEventLog(place: LogPlace, runId: string): AsyncGenerator<LogLine> {
  checkLogPlace("place", place);
  text("runId", runId);
  return new LogReader(place, runId).read();
}

/** A place between two lines of a log. */
export interface LogPosition {
  /** The number of the file; the newest has the one that it will get when it is moved. 0 is before the first. */
  readonly file: number;
  /** How many bytes of the file are before it. */
  readonly byte: number;
}

/** Reads the lines of one run in a log, each once. */
export class LogReader {
  readonly #path: string;
  readonly #runId: string;
  /** How a line of the run names it, in a log that many runs share. */
  readonly #mark: string;
  #file: number;
  #byte: number;

  constructor(place: LogPlace, runId: string, { file, byte }: LogPosition = { file: 0, byte: 0 }) {
    this.#path = runPath(place, runId, LOG_FILE);
    this.#runId = runId;
    this.#mark = place.path === undefined ? "" : JSON.stringify(runId);
    this.#file = file;
    this.#byte = byte;
  }

  /** Behind the line that was read last. */
  get position(): LogPosition {
    return { file: this.#file, byte: this.#byte };
  }

  /** Passes over all that is written. */
  async skip(): Promise<void> {
    const newest = await openIfThere(this.#path);
    if (newest === undefined) return;
    try {
      const { size, ino } = await newest.stat();
      this.#file = partsBefore(this.#path, ino).number;
      this.#byte = endOfLines(newest.fd, size);
    } finally {
      await newest.close();
    }
  }

  /** The lines that were written since, oldest first. */
  async *read(): AsyncGenerator<LogLine> {
    // Opened before the others are read: if it is moved out of the way meanwhile, its lines are not missed.
    const newest = await openIfThere(this.#path);
    try {
      const { parts, number } = partsBefore(this.#path, newest && (await newest.stat()).ino);
      for (const part of parts) {
        const file = part.number < this.#file ? undefined : await openIfThere(part.path);
        if (file !== undefined) yield* this.#linesOf(file, part.number);
      }
      if (newest !== undefined) yield* this.#linesOf(newest, number);
    } finally {
      await newest?.close();
    }
  }

  /** The same, all at once. */
  async lines(): Promise<readonly LogLine[]> {
    const lines: LogLine[] = [];
    for await (const line of this.read()) lines.push(line);
    return lines;
  }

  /** The run's lines in a file, which is closed then. */
  async *#linesOf(file: FileHandle, number: number): AsyncGenerator<LogLine> {
    const isSame = number === this.#file && (await isLineStart(file, this.#byte));
    this.#file = number;
    this.#byte = isSame ? this.#byte : 0;
    for await (const { line, end } of textsOf(file, this.#byte)) {
      this.#byte = end;
      // Most lines of a log that many runs share are not worth parsing.
      if (!line.includes(this.#mark)) continue;
      const parsed = parse(line);
      if (parsed?.run === this.#runId) yield parsed;
    }
  }
}

/** Whether a line is the last of its run, for now. */
export function isLastLine({ event, path }: LogLine): boolean {
  return path === undefined && isRunEnd({ type: event });
}

async function openIfThere(path: string): Promise<FileHandle | undefined> {
  try {
    return await open(path);
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
    throw error;
  }
}

/** Whether a line may start here; not if the file was replaced by another one. */
async function isLineStart(file: FileHandle, byte: number): Promise<boolean> {
  if (byte === 0) return true;
  const { bytesRead, buffer } = await file.read(Buffer.alloc(1), 0, 1, byte - 1);
  return bytesRead === 1 && buffer[0] === NEWLINE;
}

/** The lines of a file from here on, and where each ends; the file is closed then. A line without an end is left. */
async function* textsOf(
  file: FileHandle,
  start: number,
): AsyncGenerator<{ readonly line: string; readonly end: number }> {
  let rest: Uint8Array = new Uint8Array();
  let read = start;
  for await (const chunk of file.createReadStream({ start, highWaterMark: CHUNK })) {
    const bytes = Buffer.concat([rest, chunk as Uint8Array]);
    let from = 0;
    for (let at = bytes.indexOf(NEWLINE); at >= 0; at = bytes.indexOf(NEWLINE, from)) {
      const line = bytes.toString("utf8", from, at);
      from = at + 1;
      yield { line, end: read + from };
    }
    read += from;
    rest = bytes.subarray(from);
  }
}

const CHUNK = 256 * 1024;

/** Parses a line. If another writer's torn line precedes it, the line starts at its timestamp. */
function parse(written: string): LogLine | undefined {
  const start = written.lastIndexOf(START);
  const line = json(written) ?? (start > 0 ? json(written.slice(start)) : undefined);
  return isLine(line) ? line : undefined;
}

function json(written: string): unknown {
  try {
    return JSON.parse(written);
  } catch {
    return undefined;
  }
}

function isLine(value: unknown): value is LogLine {
  return (
    typeof value === "object" &&
    value !== null &&
    ["ts", "event", "run", "step_id", "parent_id", "node"].every(
      (key) => typeof Reflect.get(value, key) === "string",
    )
  );
}
