import { join } from "node:path";
import { folderName } from "../../stores/file/layout.js";
import { LOG } from "../../stores/journal/layout.js";
import type { OpenStore } from "../store/open.js";
import { ReadOnlyFileSystem } from "../store/read-only-file-system.js";
import { checkFiles, quarantinedIn } from "./files.js";
import type { CheckedRun, Finding } from "./finding.js";
import { checkRecords } from "./records.js";
import { findingsOf } from "./run.js";

/** What was found in a store. */
export interface Inspection {
  /** How many runs and checkpoints were looked at. */
  readonly runs: number;
  readonly checkpoints: number;
  readonly findings: readonly Finding[];
}

/**
 * Looks at all checkpoints of these runs, byte by byte, and changes nothing.
 *
 * @param opened - a store that was opened to read.
 */
export async function inspect(
  opened: OpenStore,
  runIds: readonly string[],
  all: readonly string[],
): Promise<Inspection> {
  const there = new Set(all);
  const findings: Finding[] = [];
  let checkpoints = 0;
  for (const runId of runIds) {
    const checked = await check(opened, runId);
    // It has come to its end meanwhile, and its checkpoints are gone.
    if (checked.checkpoints.length === 0 && checked.quarantined.length === 0) continue;
    checkpoints += checked.checkpoints.length;
    findings.push(...findingsOf(checked, (id) => there.has(id)));
  }
  return { runs: runIds.length, checkpoints, findings: distinct(findings) };
}

async function check({ store, address, codec }: OpenStore, runId: string): Promise<CheckedRun> {
  if (address === undefined || !("root" in address)) {
    return checkRecords(store, runId, { quarantined: [], hasStrays: false });
  }
  const fs = new ReadOnlyFileSystem();
  const { kind, root } = address;
  if (kind === "file") return checkFiles(fs, root, runId, codec);
  const [quarantined, strays] = await Promise.all([
    quarantinedIn(fs, join(root, folderName(runId))),
    quarantinedIn(fs, join(root, LOG)),
  ]);
  return checkRecords(store, runId, { quarantined, hasStrays: strays.length > 0 });
}

/** What belongs to no run is found with each. */
function distinct(findings: readonly Finding[]): readonly Finding[] {
  return [...new Map(findings.map((one) => [JSON.stringify(one), one])).values()];
}
