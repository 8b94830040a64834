import { checkImport } from "../../checkpoint/arguments.js";
import type { ExportedCheckpoint } from "../../checkpoint/store.js";
import { CheckpointConflictError } from "../../errors.js";
import type { State } from "../../state/state.js";
import { Appender, type Base } from "./append.js";
import type { FileSystem } from "./file-system.js";
import { list } from "./listing.js";
import type { Root } from "./root.js";

/** What it takes to restore a run. */
export interface RestoreSettings {
  readonly fs: FileSystem;
  readonly folder: string;
  readonly durable: boolean;
  readonly root: Root;
  readonly encode: (state: State<object>, parentId: string) => Promise<Uint8Array>;
  /** Removes the run, if it is at this sequence. */
  readonly remove: (sequence: number) => Promise<unknown>;
}

/**
 * Writes the checkpoints of a run that is not there, each with its own id and sequence, oldest first:
 * who is killed in the middle leaves the beginning of its history. If it fails, nothing of it stays.
 *
 * @throws CheckpointConflictError when the run is there, or somebody else starts it meanwhile.
 */
export async function restoreRun(
  checkpoints: AsyncIterable<ExportedCheckpoint> | Iterable<ExportedCheckpoint>,
  settingsOf: (runId: string) => RestoreSettings,
): Promise<void> {
  let base: Base | undefined;
  let fs: FileSystem | undefined;
  let remove: RestoreSettings["remove"] | undefined;
  try {
    for await (const { state, parentId } of checkImport(checkpoints)) {
      const settings = settingsOf(state.runId);
      const { folder, durable, root, encode } = settings;
      fs = settings.fs;
      remove = settings.remove;
      base ??= await newRun(settings, state);
      const { checkpointId, sequence } = state;
      // Some between two may have been in quarantine.
      const before: Base = { ...base, sequence: Math.max(base.sequence, sequence - 1) };
      const bytes = await encode(state.savedAs({ checkpointId, sequence }), parentId);
      await root.makeFolder(folder);
      const appender = new Appender(fs, folder, durable);
      const next = await appender.append(before, async () => bytes, checkpointId);
      if (typeof next === "string") {
        throw new CheckpointConflictError(state.runId, 0, before.sequence + 1);
      }
      if (base.newest?.file !== undefined) await fs.close(base.newest.file);
      base = next;
    }
  } catch (error) {
    // The beginning of a run would be taken for the whole of it. Somebody may have gone on with it, though.
    if (base?.newest !== undefined) await remove?.(base.sequence).catch(() => {});
    throw error;
  } finally {
    for (const file of [base?.newest?.file, base?.folder]) {
      if (file !== undefined) await fs?.close(file).catch(() => {});
    }
  }
}

async function newRun(
  { fs, folder }: RestoreSettings,
  { runId, sequence }: State<object>,
): Promise<Base> {
  const { checkpoints = [], newest = 0 } = (await list(fs, folder)) ?? {};
  if (checkpoints.length > 0) throw new CheckpointConflictError(runId, 0, newest);
  return { sequence: sequence - 1, newest: undefined, folder: undefined };
}
