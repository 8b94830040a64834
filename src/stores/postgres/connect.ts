import { mkdir, realpath } from "node:fs/promises";
import { basename, dirname, resolve } from "node:path";
import { ConfigError, show } from "../../errors.js";
import { Claims } from "../file/claim.js";
import { NodeFileSystem } from "../file/node-file-system.js";
import type { EmbeddedPostgres, PostgresClient, PostgresPool } from "./client.js";
import { type Database, EmbeddedDatabase, PoolDatabase } from "./database.js";

const OPTION = "PostgresStore.client";
const SERVER = /^postgres(ql)?:\/\//;
const EMBEDDED = /^pglite:/;

/** How long to wait for a connection of a pool that the store made itself, in milliseconds. */
const CONNECT = 10_000;

/** Gives the module of a package; tests put another in its place. */
export type Load = (name: string) => Promise<unknown>;

const peers: Readonly<Record<string, () => Promise<unknown>>> = {
  pg: () => import("pg"),
  "@electric-sql/pglite": () => import("@electric-sql/pglite"),
};

/** Refuses a string that names neither a server nor a folder. What comes after the scheme may be secret. */
export function checkConnection(client: PostgresClient): void {
  if (typeof client !== "string" || SERVER.test(client) || EMBEDDED.test(client)) return;
  const scheme = /^[a-z+]+:/i.exec(client)?.[0];
  const got = scheme === undefined ? "a string without a scheme" : show(`${scheme}…`);
  throw new ConfigError(OPTION, `wants "postgres://…" or "pglite:<folder>", got ${got}`);
}

/** Whether the driver could make nothing of a string, which it looks at only when it connects. */
export function isNoAddress(error: unknown): boolean {
  return error instanceof Error && Reflect.get(error, "code") === "ERR_INVALID_URL";
}

/** Says so without the string, which may hold a password. */
export function noAddress(): ConfigError {
  return new ConfigError(
    OPTION,
    'wants "postgres://user:password@host:port/database", got another',
  );
}

/** The database that a client is, or that a string names. */
export async function connect(
  client: PostgresClient,
  prepare: boolean,
  load: Load = (name) => peers[name]?.() ?? Promise.reject(new Error(name)),
): Promise<Database> {
  if (typeof client === "string") {
    return SERVER.test(client)
      ? connectServer(client, prepare, load)
      : openFolder(client.replace(EMBEDDED, ""), load);
  }
  // PGlite is asked for first: a pool has no transactions of its own.
  return "transaction" in client ? new EmbeddedDatabase(client) : new PoolDatabase(client, prepare);
}

interface OwnedPool extends PostgresPool {
  end(): Promise<void>;
}

async function connectServer(url: string, prepare: boolean, load: Load): Promise<Database> {
  const { default: pg } = (await peer("pg", load)) as {
    default: { Pool: new (config: object) => OwnedPool };
  };
  const pool = new pg.Pool({
    connectionString: url,
    connectionTimeoutMillis: CONNECT,
    keepAlive: true,
    allowExitOnIdle: true,
  });
  return new PoolDatabase(pool, prepare, () => pool.end());
}

interface OwnedEmbedded extends EmbeddedPostgres {
  close(): Promise<void>;
}

async function openFolder(folder: string, load: Load): Promise<Database> {
  const { PGlite } = (await peer("@electric-sql/pglite", load)) as {
    PGlite: { create(folder?: string): Promise<OwnedEmbedded> };
  };
  if (folder === "") {
    const memory = await PGlite.create();
    return new EmbeddedDatabase(memory, () => memory.close());
  }
  const named = resolve(folder);
  await mkdir(dirname(named), { recursive: true });
  // By whatever name it goes, it is one folder; one that is new has no other name yet.
  const path = await realpath(named).catch(() => named);
  // PGlite itself does not see that another process has the folder open, and both would ruin it.
  const claims = new Claims(new NodeFileSystem(), dirname(path));
  const claim = await claims.claim(`pglite ${basename(path)}`);
  if (claim === undefined) {
    throw new ConfigError(
      OPTION,
      `wants ${show(path)}, which is open already: PGlite is for one process and one store at a time; use a server for more`,
    );
  }
  try {
    const client = await PGlite.create(path);
    return new EmbeddedDatabase(client, async () => {
      await client.close();
      await claim.release();
    });
  } catch (error) {
    await claim.release();
    throw error instanceof Error ? error : unopened(path, error);
  }
}

/** What the file system of PGlite throws is no Error, and says nothing but a number. */
function unopened(path: string, error: unknown): ConfigError {
  const reason = `error ${Reflect.get(Object(error), "errno") ?? error}`;
  return new ConfigError(
    OPTION,
    `wants a folder that this process can write to, got ${show(path)}, which PGlite can't open: ${reason}`,
  );
}

async function peer(name: string, load: Load): Promise<unknown> {
  try {
    return await load(name);
  } catch (error) {
    const code: unknown = error instanceof Error ? Reflect.get(error, "code") : undefined;
    if (code !== "ERR_MODULE_NOT_FOUND" && code !== "MODULE_NOT_FOUND") throw error;
    throw new ConfigError(OPTION, `needs the package ${name}: npm install ${name}`);
  }
}
