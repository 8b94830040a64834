import { join } from "node:path";
import type { RunSummary } from "../../checkpoint/store.js";
import type { FileSystem } from "../file/file-system.js";
import { runOf } from "../file/layout.js";
import { namesIn } from "../file/listing.js";
import { inParallel } from "../file/runs.js";
import type { Log } from "./log.js";
import type { JournalReader } from "./reader.js";
import type { RecordHeader } from "./record.js";
import { listRecords, readRecordsFile } from "./records-file.js";
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
  for (const run of await findMoved(fs, root)) found.set(run.summary.runId, run);
  const logged = [...log.views.values()].filter(({ lines }) => lines.length > 0);
  await inParallel(logged, async ({ runId }) => {
    // A name that is broken is no run's.
    if (runId === "") return;
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

async function findMoved(fs: FileSystem, root: string): Promise<FoundRun[]> {
  const names = (await namesIn(fs, root)) ?? [];
  const folders = names.filter((name) => runOf(name) !== undefined).sort();
  const found = await inParallel(folders, async (name) => {
    const folder = join(root, name);
    const { kind } = await fs.lstat(folder);
    // A file, or a link that leads elsewhere, is nobody's run.
    if (kind !== "folder") return undefined;
    const run = runOf(name);
    const { numbers } = await listRecords(fs, folder);
    for (const number of numbers.reverse()) {
      const runId = typeof run === "object" ? run.runId : undefined;
      const file = await readRecordsFile(fs, folder, number, runId);
      if (file !== undefined && file !== "gone") return toRun(file.newest);
    }
    return undefined;
  });
  return found.filter((run) => run !== undefined);
}

function toRun(header: RecordHeader): FoundRun {
  const { runId, graph, status, node, step, timestamp, checkpointId } = header;
  return { summary: { runId, graph, status, node, step, timestamp }, head: checkpointId };
}
