/**
 * Checkpoints in Postgres: embedded in the process by PGlite, or on a server.
 *
 * @packageDocumentation
 */
import { checkAt, checkSave } from "../checkpoint/arguments.js";
import type {
  CheckpointAt,
  CheckpointStore,
  Claim,
  ClaimOptions,
  ExportedCheckpoint,
  HistoryEntry,
  Retention,
  RunFilter,
  RunSummary,
  SaveOptions,
  StoreContext,
} from "../checkpoint/store.js";
import { now } from "../clock.js";
import { CheckpointSaveError, isWaymarkError, show } from "../errors.js";
import { checkOptions, integer } from "../options.js";
import { checkRunId } from "../state/run-id.js";
import type { State } from "../state/state.js";
import { Background } from "./file/background.js";
import { exportRun, importRun } from "./file/whole-runs.js";
import { RecordCodec } from "./journal/record.js";
import { Claims } from "./postgres/claims.js";
import type {
  EmbeddedPostgres,
  PostgresClient,
  PostgresConnection,
  PostgresPool,
  PostgresQueryable,
} from "./postgres/client.js";
import { Committer } from "./postgres/committer.js";
import { checkConnection, type Load } from "./postgres/connect.js";
import { Connection } from "./postgres/connection.js";
import { explain, isUnsure, messageOf } from "./postgres/failure.js";
import { Listing } from "./postgres/listing.js";
import {
  type PostgresStoreOptions,
  type ResolvedOptions,
  resolveOptions,
} from "./postgres/options.js";
import { PostgresReader } from "./postgres/reader.js";
import { type Statements, statementsFor } from "./postgres/statements.js";
import { Trimmer } from "./postgres/trimmer.js";
import { PostgresWriter } from "./postgres/writer.js";

export type {
  EmbeddedPostgres,
  PostgresClient,
  PostgresConnection,
  PostgresPool,
  PostgresQueryable,
  PostgresStoreOptions,
};

const HOUR = 60 * 60 * 1000;

/** How long a claim is good after the last sign of life, unless said otherwise, in milliseconds. */
const TTL = 30_000;

/**
 * Keeps checkpoints in two tables of Postgres, on a server by a `Pool` of pg, or in a folder by PGlite;
 * both are optional packages. The tables are the same, so a project can begin embedded and move. The
 * store makes them itself when it is first used.
 *
 * A save is one statement that writes only what changed, and only if the run is where the State thinks.
 * While a run is claimed through this store, its saves also need that claim: once another process has
 * claimed the run, this one can write nothing more to it. What is lost with a connection is tried again.
 *
 * A server keeps what it acknowledged through a power cut. PGlite keeps it when the process is killed, but
 * never flushes to the disk; and one process at a time can have its folder.
 *
 * @example
 * ```ts
 * import { PGlite } from "@electric-sql/pglite";
 * import { State } from "waymark";
 * import { PostgresStore } from "waymark/stores/postgres";
 *
 * const store = new PostgresStore({ client: new PGlite() });
 * const saved = await State.create({ topic: "cairns" }).checkpoint(store);
 * const loaded = await store.load<{ topic: string }>(saved.runId);
 * console.log(loaded.data.topic); // cairns
 * await store.close();
 * ```
 */
export class PostgresStore implements CheckpointStore {
  /** The schema that its tables are in. */
  readonly schema: string;
  readonly #options: ResolvedOptions;
  readonly #connection: Connection;
  readonly #statements: Statements;
  readonly #claims: Claims;
  readonly #reader: PostgresReader;
  readonly #writer: PostgresWriter;
  readonly #listing: Listing;
  readonly #background = new Background();
  #prunedAt = Number.NEGATIVE_INFINITY;
  /** Whom to tell what goes wrong in the background. */
  #emit: StoreContext["emit"];

  /** @throws ConfigError when an option is not what it must be. */
  constructor(options: PostgresStoreOptions);
  /** @internal */
  constructor(options: PostgresStoreOptions, load: Load);
  constructor(options: PostgresStoreOptions, load?: Load) {
    const resolved = resolveOptions(options);
    checkConnection(resolved.client);
    const { schema, codec: codecOptions, snapshotEvery } = resolved;
    const connection = new Connection(resolved, load);
    const statements = statementsFor(schema);
    const claims = new Claims(connection, statements);
    const codec = new RecordCodec(codecOptions, snapshotEvery);
    const shared = { schema, connection, statements, claims, codec };
    this.schema = schema;
    this.#options = resolved;
    this.#connection = connection;
    this.#statements = statements;
    this.#claims = claims;
    this.#reader = new PostgresReader(shared);
    this.#listing = new Listing(connection, statements, claims, schema);
    this.#writer = new PostgresWriter({
      ...shared,
      committer: new Committer(connection, statements),
      trimmer: new Trimmer(connection, statements, (task) => this.#start(task)),
      checkSize: (state, bytes) => {
        const { maxBytes } = resolved;
        if (bytes <= maxBytes) return;
        const problem = `the record has ${bytes} bytes, more than maxBytes (${maxBytes})`;
        throw this.#unsaved(state, `${problem}: keep less in the State, or raise it`);
      },
    });
  }

  /**
   * Writes a State, or what changed in it, as a row of its own.
   *
   * @throws CheckpointConflictError when the run is not at the sequence that the State carries, or was
   *   claimed by another process since this one has.
   * @throws CheckpointSaveError when it is larger than `maxBytes`, or the database fails and goes on
   *   failing; the checkpoints before it are as they were.
   * @throws SerializationError when the data can't be kept exactly.
   */
  async save<D extends object>(state: State<D>, options: SaveOptions = {}): Promise<State<D>> {
    checkSave(state, options);
    if (options.emit !== undefined) this.#emit = options.emit;
    try {
      const saved = await this.#writer.save(state, options.keep ?? this.#options.keep);
      this.#afterSave(saved, options);
      return saved;
    } catch (error) {
      throw isWaymarkError(error) ? error : this.#unsaved(state, explain(error), error);
    }
  }

  /**
   * The newest State of a run that is whole, or the one asked for. A corrupt row is marked as
   * quarantined, told by a `checkpoint.quarantine` event, and the newest that does not need it is taken.
   *
   * @throws CheckpointNotFoundError when there is none.
   * @throws CheckpointCorruptionError that lists them when all are corrupt.
   * @throws the driver's own error when the database can't be asked.
   */
  async load<D extends object>(
    runId: string,
    at: CheckpointAt = {},
    context: StoreContext = {},
  ): Promise<State<D>> {
    checkRunId(runId);
    checkAt(at, context);
    const { state, head } = await this.#reader.load<D>(runId, at, context.emit);
    this.#writer.loaded(state, head);
    return state;
  }

  /**
   * Removes a run and its history; an absent run is fine. A claim on it stays.
   *
   * @throws CheckpointConflictError when it was claimed by another process since this one has.
   */
  async delete(runId: string): Promise<void> {
    await this.#listing.delete(checkRunId(runId));
  }

  /** The ids of all runs; {@link PostgresStore.runs} gives them page by page. */
  async list(): Promise<string[]> {
    const rows = await this.#connection.query(this.#statements.list);
    return rows.map((row) => String(row.run_id));
  }

  /** The checkpoints of a run, newest first; no State is read. */
  async history(runId: string): Promise<HistoryEntry[]> {
    return this.#reader.history(checkRunId(runId));
  }

  /** The runs that fit a filter, most recent first. A page costs the same wherever it is. */
  async runs(filter?: RunFilter): Promise<RunSummary[]> {
    return this.#listing.runs(filter);
  }

  /** Removes old runs that are finished; one that was saved to meanwhile, or is claimed, is left alone. */
  async prune(retention: Retention): Promise<string[]> {
    return this.#listing.prune(retention);
  }

  /**
   * Says that this process works on a run; `undefined` when another claim is still good, by the clock of
   * the database. It is renewed until it is released, or this process ends or hangs for longer than
   * `ttl`, 30 seconds by default. The claim's `lost` aborts when it could not be renewed in time, or
   * another has the run. Once another has claimed it, this store can't save the run.
   */
  async claim(runId: string, options: ClaimOptions = {}): Promise<Claim | undefined> {
    checkOptions("options", options, { ttl: integer(1) });
    return this.#claims.claim(checkRunId(runId), options.ttl ?? TTL);
  }

  /** All kept checkpoints of a run, oldest first. */
  async *export(runId: string): AsyncGenerator<ExportedCheckpoint> {
    const load = ({ checkpointId = "" }) => this.load<object>(runId, { checkpointId });
    yield* exportRun(await this.history(runId), load);
  }

  /**
   * Keeps the checkpoints that another store exported. If that fails, none of them stays: the beginning
   * of a run would be taken for the whole of it. A process that is killed leaves it: delete it then.
   *
   * @throws CheckpointConflictError when the run is there already.
   */
  async import(
    checkpoints: AsyncIterable<ExportedCheckpoint> | Iterable<ExportedCheckpoint>,
  ): Promise<void> {
    await importRun(
      checkpoints,
      ({ state, parentId }, after) => this.#writer.restore(state, parentId, after),
      (last) => this.#listing.delete(last.runId, last.sequence),
    );
  }

  /**
   * Waits for what is done in the background, releases all claims, and closes what the store has opened
   * itself; a client that it was given stays open. The store may be used again.
   */
  async close(): Promise<void> {
    await this.#claims.close();
    await this.#background.settled();
    await this.#connection.close();
  }

  /** Does something that nobody waits for. */
  #start(task: () => Promise<unknown>, node = ""): void {
    this.#background.start(task, (error) =>
      this.#emit?.("checkpoint.error", { action: "delete", node, error: messageOf(error) }),
    );
  }

  #afterSave<D extends object>(saved: State<D>, { emit }: SaveOptions): void {
    const { checkpointNode: node, bytes = 0 } = saved;
    const { warnBytes, retention } = this.#options;
    if (bytes > warnBytes) {
      const error = `the record has ${bytes} bytes, more than warnBytes (${warnBytes})`;
      emit?.("checkpoint.error", { action: "size", node, error });
    }
    if (retention === undefined || now() - this.#prunedAt <= HOUR) return;
    this.#prunedAt = now();
    this.#start(() => this.prune(retention), node);
  }

  #unsaved<D extends object>(
    state: State<D>,
    problem: string,
    cause?: unknown,
  ): CheckpointSaveError {
    const { runId, checkpointNode: nodeName } = state;
    const what = isUnsure(cause) && cause !== undefined ? "perhaps nothing" : "nothing";
    const message = `${what} of run ${show(runId)} was saved in Postgres: ${problem}`;
    return new CheckpointSaveError(message, { nodeName, state, path: [], cause });
  }
}
