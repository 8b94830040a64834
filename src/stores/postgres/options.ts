import { checkKeep, checkRetention, DEFAULT_KEEP } from "../../checkpoint/retention.js";
import type { Retention } from "../../checkpoint/store.js";
import type { CodecOptions } from "../../codecs/pipeline.js";
import { check, checkOptions, flag, integer } from "../../options.js";
import type { PostgresClient } from "./client.js";

/** Options of `PostgresStore`. */
export interface PostgresStoreOptions {
  /** A `Pool` of pg, a `PGlite`, or a string to make one of; see {@link PostgresClient}. */
  readonly client: PostgresClient;
  /** The schema for the tables; `waymark` by default. It is created when it is needed. */
  readonly schema?: string;
  /** How many checkpoints of each run to keep, the newest; at least 2, 5 by default, `Infinity` for all. */
  readonly keep?: number;
  /**
   * At the latest, every so many checkpoints of a run are written whole; 256 by default, 1 for all of
   * them. Sooner when what changed since the last whole one comes to more than that one, and to
   * more than 16 KB: so to load a State about twice its size is read at most.
   */
  readonly snapshotEvery?: number;
  /** Which finished runs to remove, in the background, about once an hour while runs are saved; none by default. */
  readonly retention?: Retention;
  /** The largest record of a checkpoint, in bytes; a larger one is refused. 100 MB by default. */
  readonly maxBytes?: number;
  /** A larger record, in bytes, is told by a `checkpoint.error` event with the action `size`. 500 KB by default. */
  readonly warnBytes?: number;
  /**
   * For how many milliseconds to try again what a lost connection, a server that starts, or too many
   * connections kept from happening; 10,000 by default, 0 for never. Nothing is done twice by it.
   */
  readonly retryFor?: number;
  /**
   * Whether pg prepares each statement once for a connection; true by default. Set it to false behind a
   * pooler that gives each transaction another connection and knows no prepared statements.
   */
  readonly prepare?: boolean;
  /** Compresses and encrypts each record; see {@link CodecOptions}. */
  readonly codec?: CodecOptions;
}

/** Options that were checked, with their defaults. */
export interface ResolvedOptions {
  readonly client: PostgresClient;
  readonly schema: string;
  readonly keep: number;
  readonly snapshotEvery: number;
  readonly retention: Retention | undefined;
  readonly maxBytes: number;
  readonly warnBytes: number;
  readonly retryFor: number;
  readonly prepare: boolean;
  readonly codec: CodecOptions | undefined;
}

const KB = 1024;

/** Postgres cuts off longer names without a word. */
const LONGEST_NAME = 63;

const isClient = check(
  'a Pool of pg, a PGlite, "postgres://…" or "pglite:<folder>"',
  (value) => typeof value === "string" || isObject(value),
);

const isSchema = check(
  `a name of 1 to ${LONGEST_NAME} bytes`,
  (value) =>
    typeof value === "string" &&
    value !== "" &&
    !/[\0\p{Surrogate}]/u.test(value) &&
    Buffer.byteLength(value) <= LONGEST_NAME,
);

/** @throws ConfigError when an option is not what it must be. */
export function resolveOptions(options: PostgresStoreOptions): ResolvedOptions {
  checkOptions("PostgresStore", options, {
    client: isClient,
    schema: isSchema,
    keep: checkKeep,
    snapshotEvery: integer(1),
    retention: (_, value) => checkRetention(value as Retention),
    maxBytes: integer(1),
    warnBytes: integer(1, true),
    retryFor: integer(0),
    prepare: flag,
    codec: () => {},
  });
  isClient("PostgresStore.client", options.client);
  return {
    client: options.client,
    schema: options.schema ?? "waymark",
    keep: options.keep ?? DEFAULT_KEEP,
    snapshotEvery: options.snapshotEvery ?? 256,
    retention: options.retention,
    maxBytes: options.maxBytes ?? 100 * KB * KB,
    warnBytes: options.warnBytes ?? 500 * KB,
    retryFor: options.retryFor ?? 10_000,
    prepare: options.prepare ?? true,
    codec: options.codec,
  };
}

function isObject(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return false;
  const has = (method: string): boolean => typeof Reflect.get(value, method) === "function";
  // A single connection of pg has all that a pool has, and escapes names besides.
  return has("query") && (has("transaction") || (has("connect") && !has("escapeIdentifier")));
}
