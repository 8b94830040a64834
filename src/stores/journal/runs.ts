import { join } from "node:path";
import type { RunSummary } from "../../checkpoint/store.js";
import { type FileSystem, unless } from "../file/file-system.js";
import { runOf } from "../file/layout.js";
import { namesIn } from "../file/listing.js";
import { inParallel } from "../file/runs.js";
import type { AnchorsFile } from "./anchors.js";
import { runKey } from "./line.js";
import type { Log } from "./log.js";
import type { JournalReader } from "./reader.js";
import type { RecordHeader } from "./record.js";
import { listRecords, type RecordsFile, readRecordsFile } from "./records-file.js";
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
  readonly summary: RunSummary;
  /** The id of that record. */
  readonly head: string;
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
  const { runs } = await anchors.read();
  for (const { number, newest } of moved) {
    // A file that was written too late is no run.
    const { at = 0 } = runs.get(runKey(newest.runId)) ?? {};
    if (number >= at) found.set(newest.runId, toRun(newest));
  }
  for (const runId of runsIn(log)) logged.add(runId);
  await inParallel([...logged], async (runId) => {
    const newest = await resolver.with(runId, (view) => reader.newest(view));
    if (newest === null) found.delete(runId);
    else found.set(runId, toRun(newest));
  });
  return [...found.values()];
}

/** The runs that have lines in the log. A name that is broken is no run's. */
function runsIn(log: Log): string[] {
  const views = [...log.views.values()].filter(({ lines }) => lines.length > 0);
  return views.map(({ runId }) => runId).filter((runId) => runId !== "");
}

async function findMoved(fs: FileSystem, root: string): Promise<RecordsFile[]> {
  const names = (await namesIn(fs, root)) ?? [];
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

/** The newest file of a run's records that can be read. */
async function newestFile(
  fs: FileSystem,
  folder: string,
  runId: string | undefined,
): Promise<RecordsFile | undefined> {
  for (;;) {
    const { numbers } = await listRecords(fs, folder);
    let gone = false;
    for (const number of numbers.reverse()) {
      const file = await readRecordsFile(fs, folder, number, runId);
      if (file === "gone") gone = true;
      else if (file !== undefined) return file;
    }
    if (!gone) return undefined;
  }
}

function toRun(header: RecordHeader): FoundRun {
  const { runId, graph, status, node, step, timestamp, checkpointId } = header;
  return { summary: { runId, graph, status, node, step, timestamp }, head: checkpointId };
}
