import type { RecordHeader } from "../../checkpoint/records/header.js";
import type { CheckpointStore } from "../../checkpoint/store.js";
import type { Process } from "./world.js";

/** Where the runs of a simulation are kept: what happens to it, and how it looks from outside. */
export interface Storage {
  /** The store of a process. */
  open(process: Process): CheckpointStore;
  /** Whether workers lose power along with it. */
  readonly isLocal: boolean;
  isUp: boolean;
  isFull: boolean;
  /** What all calls take in addition at the most, in milliseconds. */
  delay: number;
  /** How many acknowledged writes a power cut could undo. */
  readonly unsynced: number;
  /**
   * The power goes, and takes what was not synced, or leaves it torn.
   *
   * @param by - what decides how much of it.
   */
  cutPower(by: number, isTorn: boolean): void;
  /** Damages the newest checkpoint of a run that has an older one to fall back to; gives the run, if one has. */
  corrupt(by: number): string | undefined;
  /** The newest checkpoint of a run that can be read with all that it builds on. */
  newestWhole(runId: string): RecordHeader | undefined;
  /** The runs, as a listing has them. */
  runs(): readonly Pick<RecordHeader, "runId" | "status">[];
}

/** Hears what happens to the runs in a storage. */
export interface StorageObserver {
  /** A checkpoint was written, while somebody's claim was good or nobody's. */
  written(header: RecordHeader, by: Process, epoch: number | null, isClaimed: boolean): void;
  /** A process knows that a checkpoint is saved. */
  saved(checkpoint: Pick<RecordHeader, "runId" | "sequence" | "step">): void;
  /** A claim was given. */
  claimed(runId: string, by: Process, epoch: number): void;
  /** A claim was given back. */
  released(runId: string, epoch: number): void;
}
