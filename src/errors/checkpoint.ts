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
  /** The run that was asked for. */
  readonly runId: string;

  /** @param detail - what of the run was asked for, such as `at step 3`; nothing for the run itself. */
  constructor(runId: string, detail = "") {
    const what = detail === "" ? "has no checkpoint" : `has no checkpoint ${detail}`;
    super("CHECKPOINT_NOT_FOUND", `run ${JSON.stringify(runId)} ${what} in this store`);
    this.runId = runId;
  }
}

/**
 * A checkpoint is not what was written: its bytes, its hash or its shape are wrong.
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
  /** What was to be there, such as a hash. */
  readonly expected: string;
  /** What was there. */
  readonly actual: string;

  /** @param message - which checkpoint it is and where it lies. */
  constructor(message: string, options: { expected: string; actual: string; cause?: unknown }) {
    super("CHECKPOINT_CORRUPT", message, "cause" in options ? { cause: options.cause } : undefined);
    this.expected = options.expected;
    this.actual = options.actual;
  }
}

/**
 * Another writer saved this run first. The State that lost is not in the store.
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
  /** The run that two writers wanted. */
  readonly runId: string;
  /** The sequence that the loser built on. */
  readonly expected: number;
  /** The sequence that the store is at. */
  readonly actual: number;

  /** @param expected - the sequence the State was built on; `actual` is where the store is. */
  constructor(runId: string, expected: number, actual: number) {
    super(
      "CHECKPOINT_CONFLICT",
      expected === 0
        ? `run ${JSON.stringify(runId)} is already in this store: resume it, delete it, or use another runId`
        : `run ${JSON.stringify(runId)} was saved by another writer: this State builds on sequence ${expected}, the store is at ${actual}`,
    );
    this.runId = runId;
    this.expected = expected;
    this.actual = actual;
  }
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
 * A checkpoint's schema version can't be brought to the graph's.
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
  /** The version the graph wants. */
  readonly to: number;

  /** @param from - the version found; `to` the version wanted. */
  constructor(from: number, to: number, problem: string, options?: { cause?: unknown }) {
    super("MIGRATION", `schema version ${from} of a graph at version ${to}: ${problem}`, options);
    this.from = from;
    this.to = to;
  }
}
