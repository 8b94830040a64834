import { statSync } from "node:fs";
import { logFiles } from "../../observers/event-log/files.js";
import { LOG_FILE, type LogLine, readEventLog } from "../../observers/event-log/reader.js";
import { type LogPlace, runPath } from "../../observers/run-files.js";

/** Reads what was added to a run's log since the last call. */
export class EventTail {
  readonly #place: LogPlace;
  readonly #runId: string;
  #seen = 0;
  /** The line that was read last. */
  #last: string | undefined;
  #size = -1;

  constructor(place: LogPlace, runId: string) {
    this.#place = place;
    this.#runId = runId;
  }

  /** The new lines, oldest first. If the log has not grown, nothing is read. */
  async next(): Promise<readonly LogLine[]> {
    const size = this.#bytes();
    if (size === this.#size) return [];
    const lines: LogLine[] = [];
    for await (const line of readEventLog(this.#place, this.#runId)) lines.push(line);
    const fresh = lines.slice(this.#firstNew(lines));
    this.#seen = lines.length;
    this.#last = JSON.stringify(lines.at(-1));
    this.#size = size;
    return fresh;
  }

  /** Log rotation may remove old files while the log is followed, so the last line seen is searched for. */
  #firstNew(lines: readonly LogLine[]): number {
    const isLast = (line: LogLine | undefined): boolean => JSON.stringify(line) === this.#last;
    if (isLast(lines[this.#seen - 1])) return this.#seen;
    return lines.findLastIndex(isLast) + 1;
  }

  #bytes(): number {
    const files = logFiles(runPath(this.#place, this.#runId, LOG_FILE));
    const sizes = files.map((file) => statSync(file, { throwIfNoEntry: false })?.size ?? 0);
    return sizes.reduce((sum, one) => sum + one, 0);
  }
}

/** Whether an event ends or pauses a run. */
export function isEnd({ event }: LogLine): boolean {
  return event === "graph.complete" || event === "graph.fail" || event === "graph.pause";
}
