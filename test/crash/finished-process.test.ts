import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Server, startServer } from "../stores/postgres/server.js";
import { bundle, removeBundle } from "./bundle.js";

let built: Awaited<ReturnType<typeof bundle>>;
let server: Server;

beforeAll(async () => {
  const external = ["libsql", "better-sqlite3", "pg", "@electric-sql/pglite", "#stores/*"];
  [built, server] = await Promise.all([bundle("many-runs", undefined, external), startServer()]);
});

afterAll(async () => {
  await server.stop();
  removeBundle(built);
});

/** What a shell command prints until its process ends by itself, and the code it ends with. */
async function outputOf(command: string): Promise<{ code: number; out: string }> {
  const child = spawn("bash", ["-c", command], { stdio: ["ignore", "pipe", "pipe"] });
  let out = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk) => (out += chunk));
  const [code] = await once(child, "close");
  return { code, out };
}

describe("a process that finished its runs without closing its store", () => {
  test.each([
    { store: "files", address: () => `file:${join(built.folder, "runs")}` },
    { store: "SQLite", address: () => `sqlite:${join(built.folder, "runs.db")}` },
    { store: "Postgres", address: () => server.url },
  ])("exits, with runs in $store", async ({ address }) => {
    const command = `exec "${process.execPath}" "${built.script}" "${address()}" 3`;
    expect(await outputOf(command)).toEqual({ code: 0, out: "3\n" });
  });
});

test("500 concurrent runs save to files under a limit of 1,024 open files", async () => {
  const root = join(built.folder, "many");
  const command = `ulimit -n 1024; exec "${process.execPath}" "${built.script}" "file:${root}" 500`;
  expect(await outputOf(command)).toEqual({ code: 0, out: "500\n" });
});
