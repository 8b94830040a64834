import { join } from "node:path";
import { DocumentCodec } from "../../codecs/document.js";
import type { CodecOptions } from "../../codecs/pipeline.js";
import { CheckpointCorruptionError } from "../../errors.js";
import type { FileSystem } from "../../stores/file/file-system.js";
import {
  checkpointName,
  folderName,
  ownerOf,
  QUARANTINE,
  quarantinedSequence,
} from "../../stores/file/layout.js";
import { list } from "../../stores/file/listing.js";
import { readRecord } from "../../stores/file/record.js";
import type { Checked, CheckedRun, Finding } from "./finding.js";

/** Looks at each file of a run; nothing is moved. */
export async function checkFiles(
  fs: FileSystem,
  root: string,
  runId: string,
  options: CodecOptions | undefined,
): Promise<CheckedRun> {
  const codec = new DocumentCodec(options);
  const folder = join(root, folderName(runId));
  const listing = await list(fs, folder);
  const { checkpoints = [], quarantined = [], temporaries = [] } = listing ?? {};
  const checked: Checked[] = [];
  for (const sequence of checkpoints) {
    const one = await checkFile(fs, join(folder, checkpointName(sequence)), runId, sequence, codec);
    if (one !== undefined) checked.push(one);
  }
  const leftovers = temporaries.filter((name) => !fs.isAlive(ownerOf(name) ?? ""));
  const others = leftovers.map((name): Finding => {
    const text = `${join(folder, name)} was left by a process that died while it saved`;
    return { level: "note", what: "leftover", runId, sequence: 0, text };
  });
  const aside = sequencesOf(quarantined);
  return { runId, checkpoints: checked, quarantined: aside, hasStrays: false, others };
}

/** The sequences of the files that a folder has in quarantine. */
export async function quarantinedIn(fs: FileSystem, folder: string): Promise<readonly number[]> {
  return sequencesOf(await fs.readdir(join(folder, QUARANTINE)).catch(() => []));
}

function sequencesOf(names: readonly string[]): readonly number[] {
  return names.map((name) => {
    const record = Number(/^record_(\d+)\./.exec(name)?.[1] ?? 0);
    return quarantinedSequence(name) ?? record;
  });
}

async function checkFile(
  fs: FileSystem,
  path: string,
  runId: string,
  sequence: number,
  codec: DocumentCodec,
): Promise<Checked | undefined> {
  let bytes: Uint8Array | undefined;
  try {
    bytes = await readRecord(fs, path);
    // A run that goes on lets go of old checkpoints.
    if (bytes === undefined) return undefined;
    const { header, state } = await codec.decode<object>(bytes, path, { runId, sequence });
    const { checkpointId, parentId } = header;
    return { sequence, checkpointId, parentId, origin: state.parent };
  } catch (error) {
    const header = bytes && DocumentCodec.header(bytes);
    const { checkpointId = "", parentId = "" } = header ?? {};
    const what = error instanceof CheckpointCorruptionError ? "corrupt" : "unreadable";
    const text = error instanceof Error ? error.message : String(error);
    return { sequence, checkpointId, parentId, fault: { what, text } };
  }
}
