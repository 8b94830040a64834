import { join } from "node:path";
import type { RunSummary } from "../../checkpoint/store.js";
import type { FileSystem } from "../file/file-system.js";
import { runOf } from "../file/layout.js";
import { namesIn } from "../file/listing.js";
import { inParallel } from "../file/runs.js";
import type { Log } from "./log.js";
import type { JournalReader } from "./reader.js";
import type { RecordHeader } from "./record.js";
import { listRecords, type RecordsFile, readRecordsFile } from "./records-file.js";
import type { Resolver } from "./resolver.js";

/** A run, as its newest record tells of it. */
export interface FoundRun {
  readonly summary: RunSummary;
  /** The id of that record. */
  readonly head: string;
}

/** All runs under a root: those in the log and those that were moved out of it. The log must have been read. */
export async function findJournalRuns(
  fs: FileSystem,
  root: string,
  log: Log,
  resolver: Resolver,
  reader: JournalReader,
): Promise<FoundRun[]> {
  const found = new Map<string, FoundRun>();
  // Before and after: a run may be moved out of the log meanwhile, or come back into it.
  const logged = new Set(runsIn(log));
  for (const run of await findMoved(fs, root)) found.set(run.summary.runId, run);
  for (const runId of runsIn(log)) logged.add(runId);
  await inParallel([...logged], async (runId) => {
    const run = await resolver.with(runId, async (view) => {
      const newest = (await resolver.known(view)).entries.at(-1);
      const [header] = newest === undefined ? [] : ((await reader.headers(view, [newest])) ?? []);
      return header && toRun(header);
    });
    if (run === undefined) found.delete(runId);
    else found.set(runId, run);
  });
  return [...found.values()];
}

/** The runs that have lines in the log. A name that is broken is no run's. */
function runsIn(log: Log): string[] {
  const views = [...log.views.values()].filter(({ lines }) => lines.length > 0);
  return views.map(({ runId }) => runId).filter((runId) => runId !== "");
}

async function findMoved(fs: FileSystem, root: string): Promise<FoundRun[]> {
  const names = (await namesIn(fs, root)) ?? [];
  const folders = names.filter((name) => runOf(name) !== undefined).sort();
  const found = await inParallel(folders, async (name) => {
    const folder = join(root, name);
    const { kind } = await fs.lstat(folder);
    // A file, or a link that leads elsewhere, is nobody's run.
    if (kind !== "folder") return undefined;
    const run = runOf(name);
    const file = await newestFile(fs, folder, typeof run === "object" ? run.runId : undefined);
    return file && toRun(file.newest);
  });
  return found.filter((run) => run !== undefined);
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
