/**
 * Checkpoints in a SQLite database: one file for all runs.
 *
 * @packageDocumentation
 */
import { resolve } from "node:path";
import {
  RecordStore,
  type RecordStoreOptions,
  recordStoreChecks,
} from "../checkpoint/records/record-store.js";
import { ConfigError } from "../errors.js";
import { check, checkOptions, flag, hasMethods, integer, oneOf } from "../options.js";
import { SqliteBackend } from "./sqlite/backend.js";
import type { Load, SqliteClient, SqliteStatement, SqliteValue } from "./sqlite/connection.js";

export type { RecordStore, RecordStoreOptions } from "../checkpoint/records/record-store.js";
export type { CodecOptions } from "../codecs/pipeline.js";
export type { SqliteClient, SqliteStatement, SqliteValue };

/** Options of {@link SqliteStore}. */
export interface SqliteStoreOptions extends RecordStoreOptions {
  /** The file; `.waymark/waymark.db` by default. The first save creates it. */
  readonly path?: string;
  /** An open database instead of `path`, from `node:sqlite`, `bun:sqlite`, `better-sqlite3` or `libsql`. */
  readonly client?: SqliteClient;
  /**
   * `"fsync"`, the default: a save waits until the disk has it. `"os"`: it waits only until the operating
   * system has it, so a save survives a killed process, but a power cut may undo the last ones, newest first;
   * the database stays intact.
   */
  readonly durability?: "fsync" | "os";
  /**
   * Only read: no file is created or changed, saves and claims are rejected, a missing file has no runs. False
   * by default.
   */
  readonly readOnly?: boolean;
  /** Write a whole State at least once in this many checkpoints of a run; 256 by default, 1 for every one. */
  readonly snapshotEvery?: number;
}

/** What tests replace. */
interface Internals {
  readonly load?: Load;
  readonly busyFor?: number;
}

/** For how many milliseconds to wait for the lock of another process. */
const BUSY_FOR = 30_000;

const isPath = check(
  "the path of a file",
  (value) =>
    typeof value === "string" && !["", ":memory:"].includes(value) && !value.includes("\0"),
);

const isClient = check("a database with exec() and prepare()", (value) =>
  hasMethods(value, "exec", "prepare"),
);

/**
 * Keeps checkpoints in one SQLite file, for any number of runs and for all processes of a machine. It
 * needs Node 22.13 or later, Bun, or one of the packages `better-sqlite3` and `libsql`.
 *
 * A save is a transaction that writes only what changed, and only if the run is still at the State's
 * sequence; saves that come at the same time share one. While a run is claimed through this store, its
 * saves also need that claim: once another process has claimed the run, this one can't write to it.
 *
 * The file must be on a local disk. Any SQLite tool can read it; to copy it, close the store first, or use
 * `VACUUM INTO`.
 *
 * @example
 * ```ts
 * import Database from "libsql";
 * import { State } from "waymark";
 * import { SqliteStore } from "waymark/stores/sqlite";
 *
 * const store = new SqliteStore({ client: new Database(":memory:") });
 * const saved = await State.create({ topic: "cairns" }).checkpoint(store);
 * const loaded = await store.load<{ topic: string }>(saved.runId);
 * console.log(loaded.data.topic); // cairns
 * await store.close();
 * ```
 */
export class SqliteStore extends RecordStore {
  /** The file, as an absolute path; `undefined` if the store was given a client. */
  readonly path: string | undefined;

  /** @throws ConfigError if an option is invalid. */
  constructor(options?: SqliteStoreOptions);
  /** @internal */
  constructor(options: SqliteStoreOptions, internals: Internals);
  constructor(options: SqliteStoreOptions = {}, { load, busyFor = BUSY_FOR }: Internals = {}) {
    checkOptions("SqliteStore", options, {
      ...recordStoreChecks,
      path: isPath,
      client: isClient,
      durability: oneOf("fsync", "os"),
      readOnly: flag,
      snapshotEvery: integer(1),
    });
    const { durability = "fsync", readOnly = false, snapshotEvery = 256 } = options;
    if (options.client !== undefined && options.path !== undefined) {
      throw new ConfigError("SqliteStore.path", "must not be set together with client");
    }
    const client = options.client ?? resolve(options.path ?? ".waymark/waymark.db");
    const flushes = durability === "fsync";
    super(new SqliteBackend({ client, readOnly, flushes, busyFor, load }), {
      ...options,
      snapshotEvery,
    });
    this.path = typeof client === "string" ? client : undefined;
  }
}
