import { WaymarkError } from "./base.js";

/**
 * The store has no such run, or the run has no such checkpoint.
 *
 * @example
 * ```ts
 * import { CheckpointNotFoundError, MemoryStore } from "waymark";
 *
 * await new MemoryStore().load("gone").catch((error: unknown) => {
 *   if (error instanceof CheckpointNotFoundError) console.log(error.runId); // gone
 * });
 * ```
 */
export class CheckpointNotFoundError extends WaymarkError {
  /** The requested run; `""` if only a checkpoint was requested. */
  readonly runId: string;
  /** The requested step, if any. */
  readonly step: number | undefined;
  /** The requested checkpoint, if any. */
  readonly checkpointId: string | undefined;

  /**
   * @param at - the requested checkpoint of the run; the newest by default.
   * @param hint - why it may be missing.
   */
  constructor(
    runId: string,
    at: { readonly step?: number | undefined; readonly checkpointId?: string | undefined } = {},
    hint?: string,
  ) {
    const who = runId === "" ? "no run has a" : `run ${JSON.stringify(runId)} has no`;
    const which = wordsOf(at);
    const what = which === "" ? "checkpoint" : `checkpoint ${which}`;
    const why = hint === undefined ? "" : `; ${hint}`;
    super("CHECKPOINT_NOT_FOUND", `${who} ${what} in this store${why}`);
    this.runId = runId;
    this.step = at.step;
    this.checkpointId = at.checkpointId;
  }
}

/** The requested checkpoint in words; `""` for the newest. */
export function wordsOf({
  step,
  checkpointId,
}: Partial<Pick<CheckpointNotFoundError, "step" | "checkpointId">>): string {
  const parts = [
    step === undefined ? "" : `at step ${step}`,
    checkpointId === undefined ? "" : `with the id ${JSON.stringify(checkpointId)}`,
  ];
  return parts.filter((part) => part !== "").join(" ");
}

/**
 * A checkpoint is damaged: its bytes, its hash or its shape are wrong.
 *
 * @example
 * ```ts
 * import { CheckpointCorruptionError } from "waymark";
 *
 * const error = new CheckpointCorruptionError("checkpoint_0001.json is corrupt", {
 *   expected: "sha256 aa",
 *   actual: "sha256 bb",
 * });
 * console.log(error.code, error.expected, error.actual); // CHECKPOINT_CORRUPT sha256 aa sha256 bb
 * ```
 */
export class CheckpointCorruptionError extends WaymarkError {
  /** What was expected, such as a hash. */
  readonly expected: string;
  /** What was there. */
  readonly actual: string;

  /** @param message - names the checkpoint and where it is. */
  constructor(message: string, options: { expected: string; actual: string; cause?: unknown }) {
    super("CHECKPOINT_CORRUPT", message, options);
    this.expected = options.expected;
    this.actual = options.actual;
  }
}

/** A process that is working on a run. */
export interface ClaimHolder {
  /** The machine. */
  readonly host: string;
  /** The process id there. */
  readonly pid: number;
  /** Since when, ISO 8601; `""` if the store does not know. */
  readonly since: string;
}

/**
 * Another writer saved this run first, or is working on it. The losing State is not in the store.
 *
 * @example
 * ```ts
 * import { CheckpointConflictError, MemoryStore, State } from "waymark";
 *
 * const store = new MemoryStore();
 * const state = await State.create({ n: 0 }).checkpoint(store);
 * await state.set("n", 1).checkpoint(store);
 * await state.set("n", 2).checkpoint(store).catch((error: unknown) => {
 *   if (error instanceof CheckpointConflictError) console.log(error.expected, error.actual); // 1 2
 * });
 * ```
 */
export class CheckpointConflictError extends WaymarkError {
  /** The contested run. */
  readonly runId: string;
  /** The sequence that the loser built on. */
  readonly expected: number;
  /** The sequence that the store is at. */
  readonly actual: number;

  /** Who is working on the run, if that is the reason. */
  readonly holder: ClaimHolder | undefined;

  /**
   * @param expected - the sequence the State builds on; `actual` is the sequence that the store is at.
   * @param why - who has the run (`holder`, `undefined` if the store can't say), what ended this process's claim on
   *   it (`cause`), or what else is wrong with it (`problem`, which the message says after the run's name); none of
   *   them if another writer saved first.
   */
  constructor(runId: string, expected: number, actual: number, why: ConflictReason = {}) {
    const problem = why.problem ?? problemOf(expected, actual, why);
    super("CHECKPOINT_CONFLICT", `run ${JSON.stringify(runId)} ${problem}`, why);
    this.runId = runId;
    this.expected = expected;
    this.actual = actual;
    this.holder = why.holder;
  }
}

/** Why a State was not saved; see {@link CheckpointConflictError}. */
export interface ConflictReason {
  /** Who has the run; `undefined` if the store can't say. */
  readonly holder?: ClaimHolder | undefined;
  /** What ended this process's claim on it. */
  readonly cause?: unknown;
  /** What else is wrong: the message says it after the run's name. */
  readonly problem?: string;
}

function problemOf(expected: number, actual: number, why: ConflictReason): string {
  const { holder } = why;
  if ("holder" in why) {
    const by = holder === undefined ? "another process" : `process ${holder.pid} on ${holder.host}`;
    const since = holder === undefined || holder.since === "" ? "" : ` since ${holder.since}`;
    return `is being worked on by ${by}${since}: wait for it, or stop it`;
  }
  if ("cause" in why) return "may be worked on by another process now, so this one stopped";
  if (expected === 0) return "is already in this store: resume it, delete it, or use another runId";
  return `was saved by another writer: this State builds on sequence ${expected}, the store is at ${actual}`;
}

/**
 * A value can't be saved exactly, or a saved one can't be read.
 *
 * @example
 * ```ts
 * import { SerializationError, State } from "waymark";
 *
 * try {
 *   State.create({ order: { total: () => 5 } }).toJSON();
 * } catch (error) {
 *   if (error instanceof SerializationError) console.log(error.path); // data.order.total
 * }
 * ```
 */
export class SerializationError extends WaymarkError {
  /** Where the value is, such as `data.order.amount`. */
  readonly path: string;

  /** @param path - where the value is; it starts the message. */
  constructor(path: string, problem: string, options?: { cause?: unknown }) {
    super("SERIALIZATION", `${path} ${problem}`, options);
    this.path = path;
  }
}

/**
 * A checkpoint's schema version can't be converted to the graph's.
 *
 * @example
 * ```ts
 * import { MemoryStore, MigrationError, State, StateGraph } from "waymark";
 *
 * const checkpoint = { store: new MemoryStore(), interval: 1, preserve: true };
 * const graph = (version: number) =>
 *   new StateGraph<{ n: number }>({ version, checkpoint })
 *     .addNode("one", () => ({ n: 1 }))
 *     .setEntryPoint("one")
 *     .setExitPoint("one");
 * const { runId } = await graph(2).execute(State.create({ n: 0 }));
 * await graph(1).resume(runId).catch((error: unknown) => {
 *   if (error instanceof MigrationError) console.log(error.from, error.to); // 2 1
 * });
 * ```
 */
export class MigrationError extends WaymarkError {
  /** The version the checkpoint, or the failed migration, starts from. */
  readonly from: number;
  /** The version of the graph. */
  readonly to: number;

  /** @param from - the version found; `to` is the version of the graph. */
  constructor(from: number, to: number, problem: string, options?: { cause?: unknown }) {
    super(
      "MIGRATION",
      `the checkpoint has schema version ${from}, the graph ${to}: ${problem}`,
      options,
    );
    this.from = from;
    this.to = to;
  }
}
