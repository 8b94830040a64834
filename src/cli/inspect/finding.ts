/** Something that `validate` has found. */
export interface Finding {
  /** A problem is to be repaired; a note is good to know. */
  readonly level: "problem" | "note";
  /**
   * - `corrupt`: a checkpoint is not what was written;
   * - `unreadable`: it may be what was written, but can't be read here: a key is missing, or it is newer;
   * - `lost`: it needs a checkpoint that is corrupt;
   * - `gap`, `chain`: a checkpoint is missing, or names one that was never there;
   * - `empty`: the run has no checkpoint that is whole;
   * - `quarantine`, `leftover`, `orphan`: what was set aside, what a dead process left, a fork whose origin is gone;
   * - `log`: the journal's log holds something that is no record.
   */
  readonly what:
    | "corrupt"
    | "unreadable"
    | "lost"
    | "gap"
    | "chain"
    | "empty"
    | "quarantine"
    | "leftover"
    | "orphan"
    | "log";
  /** The run; `""` when it is about none. */
  readonly runId: string;
  /** The checkpoint's place in its run; 0 when it is about none. */
  readonly sequence: number;
  readonly text: string;
}

/** A checkpoint that was looked at. */
export interface Checked {
  readonly sequence: number;
  readonly checkpointId: string;
  readonly parentId: string;
  /** The run and the checkpoint that its run was forked from. */
  readonly origin?: { readonly runId: string; readonly checkpointId: string } | undefined;
  readonly fault?: { readonly what: Finding["what"]; readonly text: string };
}

/** What is in the place of a run. */
export interface CheckedRun {
  readonly runId: string;
  /** Oldest first. */
  readonly checkpoints: readonly Checked[];
  /** The sequences of what was set aside. */
  readonly quarantined: readonly number[];
  /** Whether something was set aside of which nobody knows what it was: it may be what is missing here. */
  readonly hasStrays: boolean;
  /** What else was found. */
  readonly others: readonly Finding[];
}
