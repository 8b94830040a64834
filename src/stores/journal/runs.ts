import { join } from "node:path";
import type { RunSummary } from "../../checkpoint/store.js";
import { type FileSystem, unless } from "../file/file-system.js";
import { runOf } from "../file/layout.js";
import { namesInRoot } from "../file/listing.js";
import { inParallel } from "../file/runs.js";
import { type AnchorsFile, isDone } from "./anchors.js";
import { runKey } from "./line.js";
import type { Log } from "./log.js";
import type { JournalReader } from "./reader.js";
import type { RecordHeader } from "./record.js";
import { listRecords, readRecordsFile } from "./records-file.js";
import type { Resolver } from "./resolver.js";

/** What it takes to find runs. */
export interface RunsSettings {
  readonly fs: FileSystem;
  readonly root: string;
  readonly log: Log;
  readonly anchors: AnchorsFile;
  readonly resolver: Resolver;
  readonly reader: JournalReader;
}

/** A run, as its newest record tells of it. */
export interface FoundRun {
  readonly runId: string;
  /** The header of that record; `undefined` when there are records, and none can be read. */
  readonly newest: RecordHeader | undefined;
}

/** All runs under a root: those in the log and those that were moved out of it. The log must have been read. */
export async function findJournalRuns({
  fs,
  root,
  log,
  anchors,
  resolver,
  reader,
}: RunsSettings): Promise<FoundRun[]> {
  const found = new Map<string, FoundRun>();
  // Before and after: a run may be moved out of the log meanwhile, or come back into it.
  const logged = new Set(runsIn(log));
  const moved = await findMoved(fs, root);
  const { runs, upTo } = await anchors.read();
  for (const { runId, newest, number } of moved) {
    // A file that was written too late is no run.
    const { at = 0 } = runs.get(runKey(runId)) ?? {};
    if (number >= at && isDone({ newest, number }, upTo)) found.set(runId, { runId, newest });
  }
  for (const runId of runsIn(log)) logged.add(runId);
  await inParallel([...logged], async (runId) => {
    const newest = await resolver.with(runId, (view) => reader.newest(view));
    if (newest === "none") found.delete(runId);
    else found.set(runId, { runId, newest: newest === "unreadable" ? undefined : newest });
  });
  return [...found.values()];
}

/** A run's summary out of the header of its newest record. */
export function summaryOf({
  runId,
  graph,
  status,
  node,
  step,
  timestamp,
}: RecordHeader): RunSummary {
  return { runId, graph, status, node, step, timestamp };
}

/** The runs that have lines in the log. */
function runsIn(log: Log): string[] {
  const views = [...log.views.values()].filter(({ lines }) => lines.length > 0);
  return views.map(({ runId }) => runId);
}

interface MovedRun extends FoundRun {
  /** The number of the newest file of its records. */
  readonly number: number;
}

async function findMoved(fs: FileSystem, root: string): Promise<MovedRun[]> {
  const names = (await namesInRoot(fs, root)) ?? [];
  const folders = names.filter((name) => runOf(name) !== undefined).sort();
  const found = await inParallel(folders, async (name) => {
    const folder = join(root, name);
    const there = await unless(["ENOENT"], fs.lstat(folder), undefined);
    // A file, or a link that leads elsewhere, is nobody's run.
    if (there?.kind !== "folder") return undefined;
    const run = runOf(name);
    return newestFile(fs, folder, typeof run === "object" ? run.runId : undefined);
  });
  return found.filter((file) => file !== undefined);
}

/** A run by the newest file of its records that can be read, or the newest of all. */
async function newestFile(
  fs: FileSystem,
  folder: string,
  runId: string | undefined,
): Promise<MovedRun | undefined> {
  for (;;) {
    const { numbers } = await listRecords(fs, folder);
    const highest = numbers.at(-1);
    if (highest === undefined) return undefined;
    let gone = false;
    for (const number of numbers.reverse()) {
      const file = await readRecordsFile(fs, folder, number, runId);
      gone ||= file === undefined;
      if (file?.newest !== undefined)
        return { runId: file.newest.runId, newest: file.newest, number };
    }
    if (gone) continue;
    // Where the folder does not tell which run it is, nothing does.
    return runId === undefined ? undefined : { runId, newest: undefined, number: highest };
  }
}
