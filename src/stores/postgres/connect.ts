import { chmod, lstat, mkdir, readdir, realpath } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { mapLimit } from "../../concurrency.js";
import { ConfigError, isMissingPackage, show, systemCode } from "../../errors.js";
import { Claims } from "../disk/claims.js";
import { Root } from "../disk/folders.js";
import { NodeFileSystem } from "../disk/node-file-system.js";
import type { EmbeddedPostgres, PostgresClient, PostgresPool } from "./client.js";
import { type Database, embeddedDatabase, PoolDatabase, type Sending } from "./database.js";

const OPTION = "PostgresStore.client";
const SERVER = /^postgres(ql)?:\/\//;
const EMBEDDED = /^pglite:/;

/** How long to wait for a connection of a pool that the store made itself, in milliseconds. */
const CONNECT = 10_000;

/** The mode of a folder that only its owner gets into. */
const PRIVATE = 0o700;
/** How many files of PGlite to look at at once. */
const FILES = 32;

/** Gives the module of a package; tests put another in its place. */
export type Load = (name: string) => Promise<unknown>;

const peers: Readonly<Record<string, () => Promise<unknown>>> = {
  pg: () => import("pg"),
  "@electric-sql/pglite": () => import("@electric-sql/pglite"),
};

/** Refuses a string that names neither a server nor a folder. What comes after the scheme may be secret. */
export function checkAddress(client: PostgresClient): void {
  if (typeof client !== "string" || SERVER.test(client) || EMBEDDED.test(client)) return;
  const scheme = /^[a-z+]+:/i.exec(client)?.[0];
  const got = scheme === undefined ? "a string without a scheme" : show(`${scheme}…`);
  throw new ConfigError(OPTION, `must be "postgres://…" or "pglite:<folder>"; got ${got}`);
}

/** Whether the driver could make nothing of a string, which it looks at only when it connects. */
export function isInvalidAddress(error: unknown): boolean {
  return error instanceof Error && Reflect.get(error, "code") === "ERR_INVALID_URL";
}

/** The error for it, without the string, which may hold a password. */
export function invalidAddress(): ConfigError {
  return new ConfigError(
    OPTION,
    'must be "postgres://user:password@host:port/database"; got something else',
  );
}

/**
 * The database that a client is, or that a string names.
 *
 * @param readOnly - whether to give `undefined` for a folder that is not there, and not to create it.
 */
export async function connect(
  client: PostgresClient,
  sending: Sending,
  readOnly: boolean,
  load: Load = (name) => peers[name]?.() ?? Promise.reject(new Error(name)),
): Promise<Database | undefined> {
  if (typeof client === "string") {
    return SERVER.test(client)
      ? connectServer(client, sending, load)
      : openFolder(client.replace(EMBEDDED, ""), readOnly, load);
  }
  // PGlite is asked for first: a pool has no transactions of its own.
  return "transaction" in client ? embeddedDatabase(client) : new PoolDatabase(client, sending);
}

interface OwnedPool extends PostgresPool {
  end(): Promise<void>;
}

async function connectServer(url: string, sending: Sending, load: Load): Promise<Database> {
  const { default: pg } = (await peer("pg", load)) as {
    default: { Pool: new (config: object) => OwnedPool };
  };
  const pool = new pg.Pool({
    connectionString: url,
    connectionTimeoutMillis: Math.min(CONNECT, sending.statementTimeout),
    keepAlive: true,
    allowExitOnIdle: true,
  });
  return new PoolDatabase(pool, sending, () => pool.end());
}

interface OwnedEmbedded extends EmbeddedPostgres {
  close(): Promise<void>;
}

async function openFolder(
  folder: string,
  readOnly: boolean,
  load: Load,
): Promise<Database | undefined> {
  if (folder !== "" && !(await hasDatabase(folder)) && readOnly) return undefined;
  const { PGlite } = (await peer("@electric-sql/pglite", load)) as {
    PGlite: { create(folder?: string): Promise<OwnedEmbedded> };
  };
  if (folder === "") {
    const memory = await PGlite.create();
    return embeddedDatabase(memory, () => memory.close());
  }
  const named = resolve(folder);
  // PGlite makes its files for everybody to read, so nobody else may get in while it does.
  await mkdir(dirname(named), { recursive: true, mode: PRIVATE });
  await mkdir(named, PRIVATE).catch(() => {});
  await chmod(named, PRIVATE).catch(() => {});
  // By whatever name it goes, it is one folder; one that is new has no other name yet.
  const path = await realpath(named).catch(() => named);
  // PGlite itself does not see that another process has the folder open, and both would ruin it.
  const fs = new NodeFileSystem();
  const claims = new Claims(fs, new Root(fs, dirname(path), false));
  const claim = await claims.claim(`pglite ${basename(path)}`);
  if (claim === undefined) {
    throw new ConfigError(
      OPTION,
      `names ${show(path)}, which is open already: PGlite is for one process and one store at a time; use a server for more`,
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
 * Takes from others what they may do with the files in a folder; what belongs to another user stays as it is. What
 * Postgres makes later is its owner's alone.
 */
async function makePrivate(folder: string): Promise<void> {
  const names = await readdir(folder, { recursive: true });
  await mapLimit(names, FILES, async (name) => {
    const path = join(folder, name);
    const { mode } = await lstat(path);
    if ((mode & ~PRIVATE & 0o777) !== 0) await chmod(path, mode & PRIVATE).catch(() => {});
  });
}

/** What a database has in its folder, also one that was not finished when its process was killed. */
const OWN_FILE = /^(PG_VERSION|base|global|pg_.*|postgresql\..*)$/;

/**
 * Whether a folder has a database in it; not if it is empty, or not there.
 *
 * @throws ConfigError if it is a file, or has other files in it, among which PGlite would put its own.
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

/** What the file system of PGlite throws is no Error, and says nothing but a number. */
function unopened(path: string, error: unknown): ConfigError {
  const reason = `error ${Reflect.get(Object(error), "errno") ?? error}`;
  return new ConfigError(
    OPTION,
    `must name a folder that this process can write to; got ${show(path)}, which PGlite can't open: ${reason}`,
  );
}

async function peer(name: string, load: Load): Promise<unknown> {
  try {
    return await load(name);
  } catch (error) {
    if (!isMissingPackage(error)) throw error;
    throw new ConfigError(OPTION, `needs the package ${name}: npm install ${name}`);
  }
}
