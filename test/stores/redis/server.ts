import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "vitest";

/** A Redis of this test's own, on a free port of this machine. */
export interface RedisServer {
  readonly url: string;
  readonly port: number;
  readonly pid: number;
  /** Ends it without a chance to say goodbye, as a crash would. */
  kill(): Promise<void>;
  /** Starts it again on what is on its disk. */
  restart(): Promise<void>;
  stop(): Promise<void>;
}

/** Whether a redis-server is installed here. */
function hasRedis(): boolean {
  try {
    execFileSync("redis-server", ["--version"], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}

/** Registers tests that need a redis-server; where there is none, that they were not run is said aloud. */
export function withRedis(what: string, register: () => void): void {
  if (hasRedis()) register();
  else {
    test(`${what}: NOT tested, no redis-server is installed`, () => {
      console.warn(`${what}: NOT tested, no redis-server is installed`);
    });
  }
}

/** Keeps each write on the disk before it answers. */
export const ALWAYS = ["--appendonly", "yes", "--appendfsync", "always"];

/** Starts a server that keeps nothing, unless its flags say otherwise. */
export async function startRedis(flags: readonly string[] = []): Promise<RedisServer> {
  const folder = mkdtempSync(join(tmpdir(), "waymark-redis-"));
  for (let tries = 1; ; tries++) {
    const port = await freePort();
    try {
      return await startOn(port, folder, flags);
    } catch (error) {
      // Another test file may have taken the port meanwhile.
      if (tries === 5) throw error;
    }
  }
}

async function startOn(
  port: number,
  folder: string,
  flags: readonly string[],
): Promise<RedisServer> {
  let server: ChildProcess;
  let ended: Promise<void>;
  const start = async (): Promise<void> => {
    const place = ["--port", String(port), "--bind", "127.0.0.1", "--dir", folder];
    const child = spawn("redis-server", [...place, "--save", "", ...flags], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    server = child;
    ended = new Promise((resolve) => child.once("close", () => resolve()));
    await new Promise<void>((resolve, reject) => {
      let said = "";
      child.stdout.on("data", (text: Buffer) => {
        said += text.toString();
        if (said.includes("Ready to accept connections")) resolve();
      });
      ended.then(() => reject(new Error(`redis-server ended: ${said}`)));
    });
  };
  const end = async (signal: NodeJS.Signals): Promise<void> => {
    server.kill(signal);
    await ended;
  };
  await start();
  return {
    url: `redis://127.0.0.1:${port}`,
    port,
    get pid() {
      return server.pid ?? 0;
    },
    kill: () => end("SIGKILL"),
    restart: start,
    stop: async () => {
      await end("SIGKILL");
      rmSync(folder, { recursive: true, force: true });
    },
  };
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
