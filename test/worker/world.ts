import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { build } from "esbuild";
import type pg from "pg";
import { PostgresStore } from "waymark/stores/postgres";
import { Client } from "waymark/worker";
import { type OwnServer, startOwnServer } from "../stores/postgres/server.js";
import { EFFECTS } from "./fixtures/graphs.js";

/** A worker in a process of its own. */
export interface Child {
  readonly pid: number;
  readonly process: ChildProcess;
  /** What it has said. */
  readonly said: readonly string[];
  readonly ended: Promise<{ code: number | null; signal: NodeJS.Signals | null }>;
}

/** A server, a client, and workers in processes of their own. */
export interface World {
  readonly server: OwnServer;
  readonly pool: pg.Pool;
  readonly store: PostgresStore;
  readonly client: Client;
  start(settings: object): Promise<Child>;
  stop(): Promise<void>;
}

const project = join(import.meta.dirname, "../..");

/** The worker process as one file that Node starts fast; it finds the packages from where it is. */
async function bundle(): Promise<string> {
  const folder = mkdtempSync(join(project, "node_modules/.waymark-worker-"));
  const script = join(folder, "worker.mjs");
  await build({
    entryPoints: [join(import.meta.dirname, "fixtures/worker.ts")],
    outfile: script,
    absWorkingDir: project,
    bundle: true,
    platform: "node",
    format: "esm",
    target: "node20",
    logLevel: "error",
    external: ["pg", "bullmq", "ioredis", "@electric-sql/pglite"],
  });
  return script;
}

export async function startWorld(): Promise<World> {
  const [server, built] = await Promise.all([startOwnServer(["-c", "fsync=off"]), bundle()]);
  const pool = server.pool();
  const store = new PostgresStore({ client: pool });
  await store.list();
  await pool.query(EFFECTS);
  await pool.query("CREATE TABLE released (run text PRIMARY KEY)");
  const client = new Client({ connection: server.url, store, onError: () => {} });
  const children = new Set<ChildProcess>();
  return {
    server,
    pool,
    store,
    client,
    start: async (settings) => {
      const child = spawn(
        process.execPath,
        [built, JSON.stringify({ url: server.url, ...settings })],
        { stdio: ["ignore", "pipe", "inherit"] },
      );
      children.add(child);
      const said: string[] = [];
      const ended = new Promise<{ code: number | null; signal: NodeJS.Signals | null }>(
        (resolve) => {
          child.on("close", (code, signal) => {
            children.delete(child);
            resolve({ code, signal });
          });
        },
      );
      await new Promise<void>((resolve, reject) => {
        createInterface(child.stdout).on("line", (line) => {
          said.push(line);
          if (line === "ready") resolve();
        });
        ended.then(() => reject(new Error(`the worker ended: ${said.join("; ")}`)));
      });
      return { pid: child.pid ?? 0, process: child, said, ended };
    },
    stop: async () => {
      for (const child of children) child.kill("SIGKILL");
      await client.close();
      await store.close();
      await server.stop();
      rmSync(dirname(built), { recursive: true, force: true });
    },
  };
}

/** Waits until something is so, and says how long that took. */
export async function until(
  what: string,
  isSo: () => Promise<boolean> | boolean,
  timeout = 20_000,
): Promise<number> {
  const started = Date.now();
  while (!(await isSo())) {
    if (Date.now() - started > timeout) throw new Error(`${what}: not within ${timeout} ms`);
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
  return Date.now() - started;
}
