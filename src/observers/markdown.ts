/**
 * A readable report that grows during a run.
 *
 * @packageDocumentation
 */
import { type AnyEvent, isRunEnd, type WaymarkEvent } from "../events.js";
import { checkOptions } from "../options.js";
import { AppendFile } from "./append-file.js";
import { readSections, section, sectionKey } from "./markdown/sections.js";
import {
  checkPlace,
  FileObserver,
  type FileObserverOptions,
  type FileSetting,
  fileObserverChecks,
  type LogPlace,
  PROGRESS_FILE,
} from "./run-files.js";

export type { FileObserverOptions, LogPlace } from "./run-files.js";

/** Options of {@link markdownProgress}: a `path` for all runs, or a `root` with `{runId}/progress.md` for each. */
export type MarkdownProgressOptions = LogPlace & FileObserverOptions;

/** An observer that writes a report. */
export interface MarkdownProgress {
  /** Writes a section for a `progress` event; never throws and never waits. */
  onEvent(event: AnyEvent): void;
  /** How many sections were not written because the disk was too slow or rejected them. */
  readonly dropped: number;
  /** Resolves when everything is written. */
  flush(): Promise<void>;
  /** Flushes and closes all files. Another event opens them again. */
  close(): Promise<void>;
}

/**
 * An observer that appends a section for each `context.progress({ title, summary, sources })` to a
 * Markdown file. A resumed run continues in the same file. If a node runs again and reports the same title, its
 * first section stays and no second one is written. Text from nodes can't break the document: HTML is shown as
 * text, and anything that would affect other sections is quoted.
 *
 * @throws ConfigError if an option is invalid.
 *
 * @example
 * ```ts
 * import { mkdtemp, readFile, rm } from "node:fs/promises";
 * import { tmpdir } from "node:os";
 * import { join } from "node:path";
 * import { State, StateGraph } from "waymark";
 * import { markdownProgress } from "waymark/observers/markdown";
 *
 * const folder = await mkdtemp(join(tmpdir(), "progress-"));
 * const path = join(folder, "progress.md");
 * const graph = new StateGraph({ observer: markdownProgress({ path }) })
 *   .addNode("read", (state, context) => {
 *     context.progress({ title: "Cairns", summary: "They mark a way.", sources: ["a book"] });
 *     return state;
 *   })
 *   .setEntryPoint("read")
 *   .setExitPoint("read");
 * await graph.execute(State.create({}));
 *
 * const report = await readFile(path, "utf8");
 * console.log(report.includes("## Cairns\n\nThey mark a way.")); // true
 * await rm(folder, { recursive: true });
 * ```
 */
export function markdownProgress(options: MarkdownProgressOptions): MarkdownProgress {
  checkOptions("markdownProgress", options, fileObserverChecks);
  checkPlace("markdownProgress", options);
  return new Progress(options);
}

class Progress extends FileObserver<Document> implements MarkdownProgress {
  /** How often the running node has reported each title, by run. */
  readonly #written = new Map<string, Map<string, number>>();

  constructor(options: MarkdownProgressOptions) {
    super(options, PROGRESS_FILE, (setting) => new Document(setting));
  }

  override onEvent(event: AnyEvent): void {
    const { type, runId, rootRunId = runId } = event;
    if (type === "progress") {
      this.fileOf(rootRunId).add(event, this.#count(runId, event.data.title));
    } else if (isRunEnd(event)) {
      this.#written.delete(runId);
      if (event.path === undefined) this.ended(runId);
    } else if (type === "node.start" || type === "node.retry") {
      // A node that starts again reports its titles again, from the first.
      this.#written.delete(runId);
    }
  }

  #count(runId: string, title: string): number {
    const counts = this.#written.get(runId) ?? new Map<string, number>();
    const count = counts.get(title) ?? 0;
    this.#written.set(runId, counts.set(title, count + 1));
    return count;
  }
}

/** One file, and the keys of the sections in it. */
class Document extends AppendFile {
  readonly #keys = new Set<string>();

  constructor({ path, maxPendingBytes, onError }: FileSetting) {
    const repair = (at: string, file: number): void => {
      for (const key of readSections(at, file)) this.#keys.add(key);
    };
    super({ path, maxPendingBytes, onError, repair });
  }

  add(event: WaymarkEvent<"progress">, count: number): void {
    const key = sectionKey(event, count);
    this.open();
    if (this.#keys.has(key)) return;
    if (this.append(section(key, event.data))) this.#keys.add(key);
  }
}
