import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { Worker } from "node:worker_threads";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import type { CheckpointStore } from "waymark";
import { FileStore } from "waymark/stores/file";
import { PostgresStore } from "waymark/stores/postgres";
import { SqliteStore } from "waymark/stores/sqlite";
import { type Server, startServer } from "../stores/postgres/server.js";
import { bundle, removeBundle } from "./bundle.js";

interface Answer {
  readonly claimed?: boolean;
  readonly hangs?: string;
  readonly done?: readonly string[];
  readonly conflict?: string;
  readonly holder?: { readonly pid: number; readonly host: string; readonly since: string };
}

/** Long enough for a slow machine to start and stop a process in. */
const TIMEOUT = { timeout: 120_000 };
const TTL = 1000;
let built: Awaited<ReturnType<typeof bundle>>;
let server: Server;
let folder = "";
const children: ChildProcess[] = [];
const stores: CheckpointStore[] = [];

beforeAll(async () => {
  const external = ["libsql", "better-sqlite3", "pg", "@electric-sql/pglite", "#stores/*"];
  [built, server] = await Promise.all([bundle("claimant", undefined, external), startServer()]);
  folder = mkdtempSync(join(tmpdir(), "waymark-claims-"));
});

afterEach(async () => {
  for (const child of children.splice(0)) child.kill("SIGKILL");
  for (const store of stores.splice(0)) await store.close?.();
});

afterAll(async () => {
  removeBundle(built);
  rmSync(folder, { recursive: true, force: true });
  await server.stop();
});

let places = 0;

/** A new place of a kind of store, its log, and the store of this process on it. */
async function newPlace(
  kind: string,
): Promise<{ args: string[]; log: string; store: () => CheckpointStore }> {
  const id = ++places;
  const log = join(folder, `${id}.log`);
  writeFileSync(log, "");
  const address = { file: `file:${folder}/${id}`, sqlite: `sqlite:${folder}/${id}.db` }[kind];
  if (kind === "postgres") await server.pool().query("DROP SCHEMA IF EXISTS waymark CASCADE");
  const open = (): CheckpointStore => {
    const store =
      kind === "file"
        ? new FileStore({ root: join(folder, String(id)) })
        : kind === "sqlite"
          ? new SqliteStore({ path: join(folder, `${id}.db`) })
          : new PostgresStore({ client: server.url });
    stores.push(store);
    return store;
  };
  return { args: [address ?? server.url, "", log], log, store: open };
}

/** A process that does what it is told; see fixtures/claimant.ts. */
class Claimant {
  readonly child: ChildProcess;

  constructor([address = "", ttl = "", log = ""]: readonly string[]) {
    this.child = fork(built.script, [address, ttl, log]);
    children.push(this.child);
  }

  async tell(order: string): Promise<Answer> {
    this.child.send(order);
    const [answer] = await once(this.child, "message");
    return answer;
  }

  async kill(): Promise<void> {
    const gone = once(this.child, "exit");
    this.child.kill("SIGKILL");
    await gone;
  }
}

const linesOf = (log: string): string[] => readFileSync(log, "utf8").split("\n").filter(Boolean);

/** Waits for something that happens outside of this process. */
async function until(happened: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await happened())) await new Promise((resolve) => setTimeout(resolve, 20));
}

/** Whether Linux says of a process that it is stopped. */
const isStopped = (pid: number): boolean =>
  /^State:\s+T/m.test(readFileSync(`/proc/${pid}/status`, "latin1"));

const linux = process.platform === "linux";

describe.each(["file", "sqlite", "postgres"])("a run in a store of kind %s", (kind) => {
  test(
    "claimed by a process is refused to a second one, which starts no node",
    TIMEOUT,
    async () => {
      const { args, log } = await newPlace(kind);
      const [first, second] = [new Claimant(args), new Claimant(args)];
      await first.tell("hangIn b");
      expect(await first.tell("execute")).toEqual({ hangs: "b" });
      for (const order of ["resume", "execute"]) {
        const { conflict, holder } = await second.tell(order);
        expect(holder).toEqual({
          pid: first.child.pid,
          host: hostname(),
          since: expect.any(String),
        });
        expect(conflict).toContain(`process ${first.child.pid} on ${hostname()}`);
        expect(conflict).toContain(holder?.since);
      }
      expect(linesOf(log)).toEqual(["a", "b"]);
    },
  );

  test.runIf(linux)("claimed by a killed process is free at once", TIMEOUT, async () => {
    const { args, log } = await newPlace(kind);
    const [first, second] = [new Claimant(args), new Claimant(args)];
    await first.tell("hangIn c");
    await first.tell("execute");
    await first.kill();
    expect(await second.tell("resume")).toEqual({ done: ["a", "b", "c", "d", "e"] });
    expect(linesOf(log)).toEqual(["a", "b", "c", "c", "d", "e"]);
  });

  test.runIf(linux)("claimed by a terminated thread is free at once", TIMEOUT, async () => {
    const { args, store } = await newPlace(kind);
    const thread = new Worker(built.script, { workerData: args });
    thread.postMessage("claim");
    expect(await once(thread, "message")).toEqual([{ claimed: true }]);
    const mine = store();
    expect(await mine.claim?.("run")).toBeUndefined();
    await thread.terminate();
    const claim = await mine.claim?.("run");
    expect(claim).toBeDefined();
    await claim?.release();
  });

  test("resumed by five processes runs each remaining node once", TIMEOUT, async () => {
    const { args, log } = await newPlace(kind);
    const first = new Claimant(args);
    await first.tell("hangIn c");
    await first.tell("execute");
    const others = Array.from({ length: 5 }, () => new Claimant(args));
    // Ready before they are let loose together.
    await Promise.all(others.map((other) => other.tell("hangIn none")));
    await first.kill();
    const resumed = async (other: Claimant): Promise<Answer> => {
      for (;;) {
        const answer = await other.tell("resume");
        if (answer.conflict === undefined) return answer;
      }
    };
    const answers = await Promise.all(others.map(resumed));
    expect(answers).toEqual(others.map(() => ({ done: ["a", "b", "c", "d", "e"] })));
    expect(linesOf(log)).toEqual(["a", "b", "c", "c", "d", "e"]);
  });
});

describe.runIf(linux).each(["sqlite", "postgres"])(
  "a process stopped beyond its lease, in a store of kind %s,",
  (kind) => {
    test("starts no node that another process has had acknowledged", TIMEOUT, async () => {
      const { args, log } = await newPlace(kind);
      const [address = ""] = args;
      const slow = new Claimant([address, String(TTL), log]);
      const fast = new Claimant(args);
      await slow.tell("stopAfter b");
      slow.child.send("execute");
      await until(() => isStopped(slow.child.pid ?? 0));
      expect(linesOf(log)).toEqual(["a", "b"]);
      let answer: Answer = { conflict: "" };
      // The store says when the lease has ended; there is nothing else to wait for.
      await until(async () => {
        answer = await fast.tell("resume");
        return answer.conflict === undefined;
      });
      expect(answer.done).toEqual(["a", "b", "c", "d", "e"]);
      slow.child.kill("SIGCONT");
      const [woken] = await once(slow.child, "message");
      expect(woken.conflict).toContain("may be worked on by another process now");
      expect(linesOf(log)).toEqual(["a", "b", "c", "d", "e"]);
    });

    test("continues if no process took its run meanwhile", TIMEOUT, async () => {
      const { args, log, store } = await newPlace(kind);
      const [address = ""] = args;
      const slow = new Claimant([address, String(TTL), log]);
      await slow.tell("stopAfter b");
      slow.child.send("execute");
      await until(() => isStopped(slow.child.pid ?? 0));
      const mine = store();
      await until(async () => (await mine.holder?.("run")) === undefined);
      slow.child.kill("SIGCONT");
      const [woken] = await once(slow.child, "message");
      expect(woken).toEqual({ done: ["a", "b", "c", "d", "e"] });
      expect(linesOf(log)).toEqual(["a", "b", "c", "d", "e"]);
    });
  },
);
