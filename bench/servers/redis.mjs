import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/**
 * A redis-server of this machine on a socket of its own.
 * @param {"always" | "everysec"} appendfsync when it flushes its append-only file
 * @returns {Promise<{ socket: string, stop: () => Promise<void> }>}
 */
export async function startRedis(appendfsync) {
  const folder = mkdtempSync(join(process.env.BENCH_FOLDER ?? tmpdir(), "waymark-bench-redis-"));
  const socket = join(folder, "redis.sock");
  const place = ["--port", "0", "--unixsocket", socket, "--dir", folder, "--save", ""];
  const flags = [...place, "--appendonly", "yes", "--appendfsync", appendfsync];
  const server = spawn("redis-server", flags, { stdio: ["ignore", "pipe", "inherit"] });
  const ended = new Promise((resolve) => server.once("close", resolve));
  await new Promise((resolve, reject) => {
    server.once("error", reject);
    server.stdout.on("data", (text) => {
      if (text.toString().includes("eady to accept connections")) resolve();
    });
  });
  return {
    socket,
    stop: async () => {
      server.kill();
      await ended;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
