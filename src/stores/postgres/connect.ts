import { chmod, lstat, mkdir, readdir, realpath } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { mapLimit } from "../../concurrency.js";
import { ConfigError, show, systemCode } from "../../errors.js";
import { type LoadPackage, optionalPeer } from "../../optional-peer.js";
import { claimFolder } from "../disk/claims.js";
import { CONNECT, type ServerSettings } from "../server.js";
import {
  type Database,
  type EmbeddedPostgres,
  embeddedDatabase,
  type PostgresClient,
  type PostgresPool,
  poolDatabase,
  type Sending,
} from "./database.js";

const OPTION = "PostgresStore.client";
const SERVER = /^postgres(ql)?:\/\//;
const EMBEDDED = /^pglite:/;

/** The mode of a folder that only its owner can enter. */
const PRIVATE = 0o700;
/** How many files of PGlite to check at once. */
const FILES = 32;

/** Rejects a string that is the address of neither a server nor a folder. Shows only its scheme: the rest may be secret. */
export function checkAddress(client: PostgresClient): void {
  if (typeof client !== "string" || SERVER.test(client) || EMBEDDED.test(client)) return;
  const scheme = /^[a-z+]+:/i.exec(client)?.[0];
  const got = scheme === undefined ? "a string without a scheme" : show(`${scheme}…`);
  throw new ConfigError(OPTION, `must be "postgres://…" or "pglite:<folder>"; got ${got}`);
}

/** A driver's error, without the address that it could not parse, since that may contain a password. */
export function withoutAddress(error: unknown): unknown {
  // The driver parses an address only when it connects.
  if (!(error instanceof Error) || Reflect.get(error, "code") !== "ERR_INVALID_URL") return error;
  return new ConfigError(
    OPTION,
    'must be "postgres://user:password@host:port/database"; got something else',
  );
}

/** What a connection needs of its store. */
export interface ConnectionSettings extends ServerSettings, Sending {
  readonly client: PostgresClient;
  readonly schema: string;
  readonly load: LoadPackage | undefined;
}

/**
 * Wraps a client, or connects to the database at an address; `undefined` for a folder that does not exist, if nothing
 * may be created.
 */
export async function connect(settings: ConnectionSettings): Promise<Database | undefined> {
  const { client } = settings;
  if (typeof client === "string") {
    return SERVER.test(client)
      ? connectServer(client, settings)
      : openFolder(client.replace(EMBEDDED, ""), settings);
  }
  // Only PGlite has transactions of its own; a pool does not.
  return "transaction" in client ? embeddedDatabase(client) : poolDatabase(client, settings);
}

type OwnedPool = PostgresPool & { end(): Promise<void> };

async function connectServer(url: string, settings: ConnectionSettings): Promise<Database> {
  const [, module] = await optionalPeer(["pg"], OPTION, settings.load);
  const { default: pg } = module as { default: { Pool: new (config: object) => OwnedPool } };
  const pool = new pg.Pool({
    connectionString: url,
    connectionTimeoutMillis: Math.min(CONNECT, settings.statementTimeout),
    keepAlive: true,
    allowExitOnIdle: true,
  });
  return poolDatabase(pool, settings, () => pool.end());
}

type OwnedEmbedded = EmbeddedPostgres & { close(): Promise<void> };

async function openFolder(
  folder: string,
  { readOnly, load }: ConnectionSettings,
): Promise<Database | undefined> {
  if (folder !== "" && !(await hasDatabase(folder)) && readOnly) return undefined;
  const [, module] = await optionalPeer(["@electric-sql/pglite"], OPTION, load);
  const { PGlite } = module as { PGlite: { create(folder?: string): Promise<OwnedEmbedded> } };
  if (folder === "") {
    const memory = await PGlite.create();
    return embeddedDatabase(memory, () => memory.close());
  }
  const named = resolve(folder);
  // PGlite creates its files readable by everybody, so its folder must be private from the start.
  await mkdir(dirname(named), { recursive: true, mode: PRIVATE });
  await mkdir(named, PRIVATE).catch(() => {});
  await chmod(named, PRIVATE).catch(() => {});
  // A folder may be named by several paths; a new one has only this one.
  const path = await realpath(named).catch(() => named);
  // PGlite does not notice that another process has the folder open; together they would corrupt it.
  const claim = await claimFolder(path, "pglite");
  if (claim === undefined) {
    throw new ConfigError(
      OPTION,
      `names ${show(path)}, which is open already: PGlite serves one process and one store at a time; use a server for more`,
    );
  }
  try {
    const client = await PGlite.create(path);
    await makePrivate(path);
    return embeddedDatabase(client, async () => {
      await client.close();
      await claim.release();
    });
  } catch (error) {
    await claim.release();
    throw error instanceof Error ? error : unopened(path, error);
  }
}

/**
 * Makes the files in a folder private, except those of other users. Postgres itself creates private files from then on.
 */
async function makePrivate(folder: string): Promise<void> {
  const names = await readdir(folder, { recursive: true });
  await mapLimit(names, FILES, async (name) => {
    const path = join(folder, name);
    const { mode } = await lstat(path);
    if ((mode & ~PRIVATE & 0o777) !== 0) await chmod(path, mode & PRIVATE).catch(() => {});
  });
}

/** The files of a database, also of one whose process was killed while it was created. */
const OWN_FILE = /^(PG_VERSION|base|global|pg_.*|postgresql\..*)$/;

/**
 * Whether a folder contains a database; `false` if it is empty or does not exist.
 *
 * @throws ConfigError if it is a file, or contains other files, which PGlite would mix with its own.
 */
async function hasDatabase(folder: string): Promise<boolean> {
  const names = await readdir(folder).catch((error: unknown) => {
    if (systemCode(error) === "ENOTDIR") throw notAFolder(folder, "a file");
    return [];
  });
  if (names.length === 0) return false;
  if (names.some((name) => OWN_FILE.test(name))) return true;
  throw notAFolder(folder, "a folder of other files");
}

function notAFolder(folder: string, kind: string): ConfigError {
  const problem = `must name a folder of PGlite or an empty one; got ${show(folder)}, which is ${kind}`;
  return new ConfigError(OPTION, problem);
}

/** The file system of PGlite throws objects that are not Errors and have only an error number. */
function unopened(path: string, error: unknown): ConfigError {
  const reason = `error ${Reflect.get(Object(error), "errno") ?? error}`;
  return new ConfigError(
    OPTION,
    `must name a folder that this process can write to; got ${show(path)}, which PGlite can't open: ${reason}`,
  );
}
