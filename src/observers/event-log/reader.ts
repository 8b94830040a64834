import { type FileHandle, open } from "node:fs/promises";
import { type LogPlace, runPath } from "../run-files.js";
import { partsBefore, START } from "./files.js";

/** The name of a run's log. */
export const LOG_FILE = "events.jsonl";

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
export async function* readEventLog(place: LogPlace, runId: string): AsyncGenerator<LogLine> {
  for await (const text of textsOf(runPath(place, runId, LOG_FILE))) {
    // Most lines of a log that many runs share are not worth parsing.
    if (place.path !== undefined && !text.includes(JSON.stringify(runId))) continue;
    const line = parse(text);
    if (line?.run === runId) yield line;
  }
}

async function* textsOf(path: string): AsyncGenerator<string> {
  // Opened before the others are read: if it is rotated in the meantime, its lines are not missed.
  const newest = await openIfThere(path);
  try {
    for (const part of partsBefore(path, newest && (await newest.stat()).ino)) {
      const file = await openIfThere(part);
      if (file !== undefined) yield* linesOf(file);
    }
    if (newest !== undefined) yield* linesOf(newest);
  } finally {
    await newest?.close();
  }
}

async function openIfThere(path: string): Promise<FileHandle | undefined> {
  try {
    return await open(path);
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
    throw error;
  }
}

/** The lines of a file; closes it at the end. */
async function* linesOf(file: FileHandle): AsyncGenerator<string> {
  let rest = "";
  for await (const chunk of file.createReadStream({ encoding: "utf8" })) {
    const lines = (rest + String(chunk)).split("\n");
    rest = lines.pop() ?? "";
    yield* lines;
  }
  yield rest;
}

/** Parses a line. If another writer's torn line precedes it, the line starts at its timestamp. */
function parse(text: string): LogLine | undefined {
  const start = text.lastIndexOf(START);
  const line = json(text) ?? (start > 0 ? json(text.slice(start)) : undefined);
  return isLine(line) ? line : undefined;
}

function json(text: string): unknown {
  try {
    return JSON.parse(text);
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
