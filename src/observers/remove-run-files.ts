import { rm, rmdir } from "node:fs/promises";
import { dirname } from "node:path";
import { logFiles } from "./log/files.js";
import { LOG_FILE, type LogPlace, PROGRESS_FILE, runPath } from "./run-files.js";

/** Removes the log and the progress file of a run. A file that several runs share stays. */
export async function removeRunFiles(place: LogPlace | undefined, runId: string): Promise<void> {
  if (place?.root === undefined) return;
  const log = runPath(place, runId, LOG_FILE);
  for (const file of [...logFiles(log), runPath(place, runId, PROGRESS_FILE)]) {
    await rm(file, { force: true });
  }
  // Fails if anything else is in the folder, such as a quarantine: that is left for a person to deal with.
  await rmdir(dirname(log)).catch(() => {});
}
