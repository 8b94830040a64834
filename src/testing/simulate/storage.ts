import type { RecordHeader } from "../../checkpoint/records/header.js";
import type { CheckpointStore } from "../../checkpoint/store.js";
import type { Process } from "./world.js";

/** Where the runs of a simulation are stored: the faults it can have, and how it looks from outside. */
export interface Storage {
  open(process: Process): CheckpointStore;
  /** Whether workers lose power along with it. */
  readonly isLocal: boolean;
  isUp: boolean;
  isFull: boolean;
  /** The longest additional delay of all calls, in milliseconds. */
  delay: number;
  /** How many acknowledged writes a power cut could undo. */
  readonly unsynced: number;
  /**
   * Cuts the power: unsynced writes are lost or torn.
   *
   * @param by - determines how much is lost.
   */
  cutPower(by: number, isTorn: boolean): void;
  /** Damages the newest checkpoint of a run that has an older one to fall back to; returns the run, if there is one. */
  corrupt(by: number): string | undefined;
  /** The newest checkpoint of a run that can be read, including everything it builds on. */
  newestWhole(runId: string): RecordHeader | undefined;
  /** The runs, as a listing shows them. */
  runs(): readonly Pick<RecordHeader, "runId" | "status">[];
}

/** Receives what happens to the runs in a storage. */
export interface StorageObserver {
  /** A checkpoint was written, under a valid claim or none. */
  written(header: RecordHeader, by: Process, epoch: number | null, isClaimed: boolean): void;
  /** A checkpoint was acknowledged to a process. */
  saved(checkpoint: Pick<RecordHeader, "runId" | "sequence" | "step">): void;
  /** A claim was given. */
  claimed(runId: string, by: Process, epoch: number): void;
  /** A claim was given back. */
  released(runId: string, epoch: number): void;
}
