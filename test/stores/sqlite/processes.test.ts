import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { State } from "waymark";
import { SqliteStore } from "waymark/stores/sqlite";
import { bundle, removeBundle } from "../../crash/bundle.js";
import { newFolder } from "../folders.js";

interface Count {
  readonly n: number;
  readonly list: readonly string[];
}

let built: Awaited<ReturnType<typeof bundle>>;

beforeAll(async () => {
  built = await bundle("sqlite", undefined, ["libsql", "#stores/*"]);
});

afterAll(() => removeBundle(built));

const children: ChildProcess[] = [];

afterEach(() => {
  for (const child of children.splice(0)) child.kill("SIGKILL");
});

/** Starts a process of the fixture; `lines` grows with what it says. */
function start(args: readonly string[]) {
  const child = spawn(process.execPath, [built.script, ...args], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  children.push(child);
  const lines: string[] = [];
  const reader = createInterface(child.stdout).on("line", (line) => lines.push(line));
  const said = async (word: string): Promise<void> => {
    while (!lines.some((line) => line.startsWith(word))) await once(reader, "line");
  };
  const ended = once(child, "close").then(([code]) => code as number | null);
  return { child, lines, said, ended };
}

test("five processes write to one file, and the last removes its log", async () => {
  const path = join(newFolder(), "waymark.db");
  const all = ["a", "b", "c", "d", "e"].map((name) => start([path, name, "10", "30"]));
  expect(await Promise.all(all.map(({ ended }) => ended))).toEqual([0, 0, 0, 0, 0]);
  expect(readdirSync(join(path, ".."))).toEqual(["waymark.db"]);
  const store = new SqliteStore({ path });
  expect(await store.list()).toHaveLength(50);
  for (const runId of await store.list()) {
    expect((await store.load<Count>(runId)).data.n).toBe(30);
  }
  await store.close();
});

test("a second store in one process keeps the locks of the first", async () => {
  const path = join(newFolder(), "waymark.db");
  const [one, two] = [new SqliteStore({ path }), new SqliteStore({ path })];
  const state = await one.save(State.create<Count>({ n: 1, list: [] }, { runId: "run" }));
  expect(await two.list()).toEqual(["run"]);
  // Who is last to close takes the log away: this process must count as one that has the file open.
  expect(await start([path, "other", "1", "3"]).ended).toBe(0);
  expect(readdirSync(join(path, ".."))).toContain("waymark.db-wal");
  await one.save(state.set("n", 2));
  expect((await two.load<Count>("run")).data.n).toBe(2);
  await one.close();
  await two.close();
});

test("if two processes save one run, the second gets a conflict", async () => {
  const path = join(newFolder(), "waymark.db");
  const all = [start([path, "run", "1", "200"]), start([path, "run", "1", "200"])];
  expect(await Promise.all(all.map(({ ended }) => ended))).toEqual([0, 0]);
  const saved = all.flatMap(({ lines }) => lines.filter((line) => line.startsWith("saved")));
  // No step was acknowledged twice.
  expect(new Set(saved).size).toBe(saved.length);
  const store = new SqliteStore({ path });
  expect((await store.load<Count>("run-0")).data.n).toBe(200);
  await store.close();
});

test("a process stopped beyond its lease can't write", async () => {
  const path = join(newFolder(), "waymark.db");
  const stopped = start([path, "run", "1", "1000000", "300"]);
  await stopped.said("saved");
  const store = new SqliteStore({ path });
  expect(await store.claim("run-0")).toBeUndefined();
  expect(await store.holder("run-0")).toMatchObject({ pid: stopped.child.pid });
  stopped.child.kill("SIGSTOP");
  let claim = await store.claim("run-0");
  while (claim === undefined) claim = await store.claim("run-0");
  const { sequence } = await store.load<Count>("run-0");
  stopped.child.kill("SIGCONT");
  expect(await stopped.ended).toBe(0);
  expect(stopped.lines.at(-1)).toContain("conflict run-0");
  expect(stopped.lines.at(-1)).toContain(`claimed by process ${process.pid}`);
  expect((await store.load<Count>("run-0")).sequence).toBe(sequence);
  await claim.release();
  await store.close();
});

test("the claim of a killed process is free before its lease ends", async () => {
  const path = join(newFolder(), "waymark.db");
  const killed = start([path, "run", "1", "1000000", "3600000"]);
  await killed.said("saved");
  killed.child.kill("SIGKILL");
  await killed.ended;
  const store = new SqliteStore({ path });
  expect(await store.holder("run-0")).toBeUndefined();
  const claim = await store.claim("run-0");
  expect(claim?.epoch).toBeGreaterThan(1);
  await store.close();
});
