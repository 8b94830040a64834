import { execFileSync, fork } from "node:child_process";
import { once } from "node:events";
import {
  appendFileSync,
  closeSync,
  constants,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { type AnyEvent, MemoryStore, State, StateGraph } from "../../src/index.js";
import { eventLog, type LogLine, readEventLog } from "../../src/observers/event-log.js";
import { bundle } from "./bundle.js";
import { event } from "./events.js";

const folder = mkdtempSync(join(tmpdir(), "waymark-log-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

let paths = 0;
const newPath = (): string => join(folder, `${++paths}`, "log.jsonl");

const start = (runId: string, step = 0): AnyEvent =>
  event("node.start", runId, { node: "n", step });

/** All lines of a file; throws if one is not JSON. */
function linesOf(path: string): LogLine[] {
  const text = readFileSync(path, "utf8");
  expect(text.endsWith("\n")).toBe(true);
  return text
    .slice(0, -1)
    .split("\n")
    .map((line) => JSON.parse(line));
}

async function all(place: Parameters<typeof readEventLog>[0], run: string): Promise<LogLine[]> {
  const lines: LogLine[] = [];
  for await (const line of readEventLog(place, run)) lines.push(line);
  return lines;
}

describe("lines", () => {
  test("a custom event may have no fields", async () => {
    const path = newPath();
    const log = eventLog({ path });
    for (const data of [undefined, null, "text", { run: "x", n: 1 }]) {
      log.onEvent({ ...start("r"), type: "my.event", data } as unknown as AnyEvent);
    }
    await log.close();
    expect(linesOf(path).map(({ event: type, run }) => [type, run])).toEqual(
      Array(4).fill(["my.event", "r"]),
    );
  });

  test("each event is one line, written immediately, with its step", async () => {
    const root = join(folder, "root");
    const store = new MemoryStore();
    let broken = true;
    const graph = (log = eventLog({ root })) =>
      new StateGraph<{ n: number }>({
        name: "g",
        observer: log,
        checkpoint: { store, interval: 1, preserve: true },
      })
        .addNode("plan", (state) => state.set("n", 1))
        .addNode("search", (state) => {
          const written = linesOf(join(root, "r1", "events.jsonl"));
          expect(written.at(-1)).toMatchObject({ event: "node.start", node: "search" });
          if (broken) throw new Error("offline");
          return state.set("n", 2);
        })
        .addNode("write", () => ({ n: 3 }))
        .addEdge("plan", "search")
        .addEdge("search", "write")
        .setEntryPoint("plan")
        .setExitPoint("write");
    await graph()
      .execute(State.create({ n: 0 }, { runId: "r1" }))
      .catch(() => {});
    broken = false;
    // Another process, as far as the log knows.
    await graph().resume("r1");

    const lines = linesOf(join(root, "r1", "events.jsonl"));
    expect(lines.every((line) => line.run === "r1" && line.source !== undefined)).toBe(true);
    const steps = lines
      .filter((line) => line.event === "node.start")
      .map(({ step_id, parent_id, node, step }) => [step_id, parent_id, node, step]);
    expect(steps).toEqual([
      ["plan-000", "", "plan", 0],
      ["search-001", "plan-000", "search", 1],
      ["search-001", "plan-000", "search", 1],
      ["write-002", "search-001", "write", 2],
    ]);
    // JSON can't hold an Error; `error` has its message.
    const failed = lines.find((line) => line.event === "graph.fail");
    expect(failed).toMatchObject({ error: 'node "search" failed: offline' });
    expect(failed).not.toHaveProperty("cause");
    const first = lines.find((line) => line.event === "state.set");
    expect(first).toMatchObject({ step_id: "plan-000", node: "plan", key: "n" });
    expect(Object.keys(lines[0] ?? {}).slice(0, 6)).toEqual([
      "ts",
      "step_id",
      "parent_id",
      "event",
      "node",
      "run",
    ]);
    const saves = lines.filter((line) => line.event === "checkpoint.save");
    expect(saves.at(-1)).toMatchObject({ node: "write", step: 3, step_id: "write-002" });
    expect(await all({ root }, "r1")).toEqual(lines);
    expect(await all({ root }, "r2")).toEqual([]);
  });

  test("each run's lines can be read from a file of all runs", async () => {
    const path = newPath();
    const log = eventLog({ path, filter: ({ type }) => type === "node.start" });
    for (const run of ["a", "b", "a"]) {
      log.onEvent(start(run));
      log.onEvent(event("state.set", run, { key: "k" }));
    }
    log.onEvent(event("state.set", "b", { key: '"a"' }));
    expect(linesOf(path)).toHaveLength(3);
    expect(await all({ path }, "a")).toHaveLength(2);
    await log.close();
  });

  test("there may be more runs than open files, and more than are remembered", async () => {
    const root = join(folder, "many");
    const log = eventLog({ root });
    for (const step of [0, 1]) {
      for (let run = 0; run < 120; run++) log.onEvent(start(`r${run}`, step));
    }
    await log.close();
    expect((await all({ root }, "r0")).map((line) => line.step)).toEqual([0, 1]);

    const path = newPath();
    const one = eventLog({ path, filter: ({ type }) => type === "node.start" });
    one.onEvent(event("checkpoint.resume", "old", { node: "a", step: 1, resumeNode: "n" }));
    one.onEvent(start("old", 1));
    for (let run = 0; run < 10_000; run++) one.onEvent(event("state.set", `r${run}`, { key: "k" }));
    one.onEvent(event("checkpoint.load", "new", { node: "", step: 0, checkpointId: "c" }));
    one.onEvent(start("new"));
    one.onEvent(start("old", 1));
    expect(linesOf(path).map((line) => line.parent_id)).toEqual(["a-000", "", ""]);
    await one.close();
  });

  test("a run id is never a path", async () => {
    const root = join(folder, "ids", "inner");
    const log = eventLog({ root });
    for (const run of ["../x", "CON", "a/b", "..", "é".repeat(90)]) {
      log.onEvent(start(run));
      expect(await all({ root }, run)).toHaveLength(1);
    }
    await log.close();
    expect(readdirSync(join(folder, "ids"))).toEqual(["inner"]);
    expect(readdirSync(root)).toHaveLength(5);
  });

  test("fields of a custom event can't replace those of the line, and invalid ones are reported", () => {
    const path = newPath();
    const log = eventLog({ path });
    const custom = (data: object): void =>
      log.onEvent({ ...start("r"), type: "my.event", data } as unknown as AnyEvent);
    custom({ run: "other", ts: "never", event: "x", big: 12n, node: "mine" });
    const cycle: { self?: unknown } = {};
    cycle.self = cycle;
    custom(cycle);
    const [first, second] = linesOf(path);
    expect(first).toMatchObject({ run: "r", event: "my.event", big: "12", node: "mine" });
    expect(first?.ts).not.toBe("never");
    expect(second).toMatchObject({ run: "r", event: "my.event" });
    expect(second?.unwritable).toBe("its fields are not valid JSON");
  });

  test("redacts by path and in any text", () => {
    const path = newPath();
    const log = eventLog({ path, redact: ["rationale", "*.token", /sk-\w+/] });
    const decision = { node: "n", step: 0, description: "use sk-1234 and sk-5678", rationale: "x" };
    log.onEvent(event("decision", "r", decision));
    log.onEvent({ ...start("r"), data: { auth: { token: "t0p" } } } as unknown as AnyEvent);
    expect(linesOf(path)).toMatchObject([
      { description: "use [redacted] and [redacted]", rationale: "[redacted]" },
      { auth: { token: "[redacted]" } },
    ]);
  });

  test.each([
    [{}, "eventLog must have either a root or a path"],
    [{ root: "a", path: "b" }, "eventLog must have either a root or a path"],
    [{ path: "" }, "eventLog.path must be a non-empty string"],
    [{ path: "p", maxBytes: 10 }, "eventLog.maxBytes must be an integer ≥ 1024"],
    [{ path: "p", redact: "x" }, "eventLog.redact must be an array"],
    [{ path: "p", redact: [/x/, 3] }, "eventLog.redact[1] must be keys joined by dots"],
    [{ path: "p", maxSize: 1 }, "eventLog.maxSize is not an option"],
  ])("refuses %j", (options, message) => {
    expect(() => eventLog(options as never)).toThrow(message);
  });
});

describe("torn tails", () => {
  test.each([1, 2, 3, 10, 21, 22, 300, 200_000])(
    "a torn line of %i bytes is mended on reopen; all whole lines stay",
    async (length) => {
      const path = newPath();
      const before = eventLog({ path });
      before.onEvent(start("r", 0));
      await before.close();
      appendFileSync(path, '{"ts":"2026'.padEnd(length, "x").slice(0, length));
      const size = statSync(path).size;
      const log = eventLog({ path });
      log.onEvent(start("r", 1));
      const text = readFileSync(path, "utf8");
      expect(text.length).toBeGreaterThan(size);
      const lines = text.split("\n").filter((line) => line.trim() !== "");
      expect(lines.map((line) => JSON.parse(line))).toHaveLength(length < 3 ? 2 : 3);
      expect((await all({ path }, "r")).map((line) => line.step)).toEqual([0, 1]);
      await log.close();
    },
  );

  test("a line that another process left torn does not damage the next one", async () => {
    const path = newPath();
    const log = eventLog({ path });
    log.onEvent(start("r", 0));
    appendFileSync(path, '{"ts":"2026-01-01T00:00:00.000Z","event":"node.st');
    log.onEvent(start("r", 1));
    log.onEvent(start("r", 2));
    expect((await all({ path }, "r")).map((line) => line.step)).toEqual([0, 1, 2]);
    await log.close();
    expect(linesOf(path).map((line) => line.event)).toEqual([
      "node.start",
      "log.torn",
      "node.start",
      "node.start",
    ]);
  });

  test("a line that was appended to a torn one can be read", async () => {
    const path = newPath();
    const log = eventLog({ path });
    log.onEvent(start("r", 0));
    await log.close();
    writeFileSync(
      path,
      `{"ts":"2026-01-01T00:00:00.000Z","event":"no${readFileSync(path, "utf8")}`,
    );
    expect((await all({ path }, "r")).map((line) => line.step)).toEqual([0]);
    const next = eventLog({ path });
    next.onEvent(start("r", 1));
    await next.close();
    expect(linesOf(path).map((line) => line.event)).toEqual([
      "log.torn",
      "node.start",
      "node.start",
    ]);
    await expect(all({ path: folder }, "r")).rejects.toThrow("EISDIR");
  });

  test("a file that consists of a torn line is repaired", async () => {
    const path = newPath();
    mkdirSync(join(path, ".."));
    writeFileSync(path, '{"ts":"2026-01-01T00:0');
    const log = eventLog({ path });
    log.onEvent(start("r"));
    expect(linesOf(path).map((line) => line.event)).toEqual(["log.torn", "node.start"]);
    await log.close();
  });
});

describe("rotation", () => {
  test("a full file is renamed, and all files are read in order", async () => {
    const path = newPath();
    const log = eventLog({ path, maxBytes: 1024 });
    for (let step = 0; step < 50; step++) log.onEvent(start("r", step));
    await log.close();
    const names = readdirSync(join(path, "..")).sort();
    expect(names.slice(0, 2)).toEqual(["log.0001.jsonl", "log.0002.jsonl"]);
    expect(names.at(-1)).toBe("log.jsonl");
    for (const name of names) expect(statSync(join(path, "..", name)).size).toBeLessThan(1025);
    expect((await all({ path }, "r")).map((line) => line.step)).toEqual(
      Array.from({ length: 50 }, (_, step) => step),
    );
  });

  test("counts bytes, not characters", async () => {
    const path = newPath();
    const log = eventLog({ path, maxBytes: 1024 });
    for (let step = 0; step < 20; step++) {
      log.onEvent(event("node.start", "r", { node: "é".repeat(60), step }));
    }
    await log.close();
    for (const name of readdirSync(join(path, ".."))) {
      expect(statSync(join(path, "..", name)).size).toBeLessThan(1025);
    }
  });

  test("keeps at most maxFiles files", async () => {
    const path = newPath();
    const log = eventLog({ path, maxBytes: 1024, maxFiles: 3 });
    for (let step = 0; step < 100; step++) log.onEvent(start("r", step));
    await log.close();
    expect(readdirSync(join(path, ".."))).toHaveLength(3);
    expect((await all({ path }, "r")).at(-1)?.step).toBe(99);
  });

  test("two writers rotate one file and lose nothing", async () => {
    const path = newPath();
    const logs = [eventLog({ path, maxBytes: 1024 }), eventLog({ path, maxBytes: 1024 })];
    for (let step = 0; step < 100; step++) logs[step % 2]?.onEvent(start("r", step));
    await Promise.all(logs.map((log) => log.close()));
    const steps = (await all({ path }, "r")).map((line) => Number(line.step));
    expect(steps.sort((a, b) => a - b)).toEqual(Array.from({ length: 100 }, (_, step) => step));
    // Neither renames the file that the other one has just begun.
    const sizes = readdirSync(join(path, "..")).map(
      (name) => statSync(join(path, "..", name)).size,
    );
    expect(sizes.filter((size) => size < 500).length).toBeLessThanOrEqual(1);
  });
});

describe("when the disk is too slow", () => {
  test("the run does not wait: lines are queued, then dropped, and the log reports how many", async () => {
    const path = newPath();
    mkdirSync(join(path, ".."));
    // A pipe that nobody reads behaves like a disk that accepts nothing.
    execFileSync("mkfifo", [path]);
    const log = eventLog({ path, maxPendingBytes: 20_000 });
    const graph = new StateGraph<{ n: number }>({ observer: log })
      .addNode("tick", (state) => ({ n: state.data.n + 1 }))
      .addNode("done", (state) => state)
      .addEdge("tick", "tick", (state) => state.data.n < 200)
      .addEdge("tick", "done")
      .setEntryPoint("tick")
      .setExitPoint("done");
    const final = await graph.execute(State.create({ n: 0 }, { runId: "r" }));
    expect(final.status).toBe("completed");
    const { dropped } = log;
    expect(dropped).toBeGreaterThan(100);

    // Open on both sides, so that it does not end when the log closes it.
    const pipe = openSync(path, constants.O_RDWR | constants.O_NONBLOCK);
    await log.flush();
    log.onEvent(start("r"));
    await log.close();
    const bytes = Buffer.alloc(100_000);
    const text = bytes.toString("utf8", 0, readSync(pipe, bytes));
    closeSync(pipe);
    const lines = text
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line));
    const notices = lines.filter((line) => line.event === "log.dropped");
    expect(notices.reduce((sum, { count }) => sum + count, 0)).toBe(dropped);
    expect(lines.at(-1)).toMatchObject({ event: "node.start", run: "r" });
  });

  test("the log reports dropped lines even if no event follows", async () => {
    const path = newPath();
    let time = 0;
    let slow = 150;
    vi.spyOn(performance, "now").mockImplementation(() => {
      time += slow;
      return time;
    });
    const log = eventLog({ path, maxPendingBytes: 0 });
    for (let step = 0; step < 5; step++) {
      if (step === 2) slow = 0;
      log.onEvent(start("r", step));
    }
    expect(log.dropped).toBe(3);
    await log.close();
    expect(linesOf(path).map(({ event, count }) => count ?? event)).toEqual([
      "node.start",
      "node.start",
      3,
    ]);
  });

  test("after two slow writes lines are written in the background for a while, in order", async () => {
    const path = newPath();
    let time = 0;
    let slow = true;
    vi.spyOn(performance, "now").mockImplementation(() => {
      time += slow ? 150 : 0;
      return time;
    });
    const log = eventLog({ path });
    const count = (): number => linesOf(path).length;
    log.onEvent(start("r", 0));
    log.onEvent(start("r", 1));
    expect(count()).toBe(2);
    slow = false;
    log.onEvent(start("r", 2));
    log.onEvent(start("r", 3));
    expect(count()).toBe(2);
    await log.flush();
    expect(count()).toBe(4);
    // Direct writes are tried again.
    time += 1000;
    log.onEvent(start("r", 4));
    expect(linesOf(path).map((line) => line.step)).toEqual([0, 1, 2, 3, 4]);
    // Closed while lines are queued: they are written immediately.
    slow = true;
    log.onEvent(start("r", 5));
    log.onEvent(start("r", 6));
    slow = false;
    log.onEvent(start("r", 7));
    time += 1000;
    await log.close();
    expect(linesOf(path).at(-1)?.step).toBe(7);
    expect(log.dropped).toBe(0);
  });

  test("a failing disk loses lines but not the run, and is reported once", async () => {
    const print = vi.spyOn(console, "error").mockImplementation(() => {});
    const path = join(folder, "taken");
    writeFileSync(path, "");
    const log = eventLog({ path: join(path, "log.jsonl") });
    for (let step = 0; step < 5; step++) log.onEvent(start("r", step));
    await log.close();
    expect(log.dropped).toBe(5);
    expect(print).toHaveBeenCalledTimes(1);

    const errors: unknown[] = [];
    const told = eventLog({
      path: folder,
      onError: (error) => {
        errors.push(error);
        throw new Error("the teller fails too");
      },
    });
    told.onEvent(start("r"));
    await told.flush();
    expect(errors).toMatchObject([{ code: "EISDIR" }]);
    expect(print).toHaveBeenCalledTimes(2);

    const nowhere = eventLog({ root: path });
    nowhere.onEvent(start("one"));
    nowhere.onEvent(start("two"));
    await nowhere.close();
    expect(nowhere.dropped).toBe(2);
    expect(print).toHaveBeenCalledTimes(3);
  });
});

describe("many writers", () => {
  let script = "";
  beforeAll(async () => {
    script = await bundle(join(import.meta.dirname, "fixtures/log-writer.ts"), folder);
  });

  test("50 concurrent runs in killed processes leave complete lines and lose none that was written", async () => {
    const path = newPath();
    const children = Array.from({ length: 5 }, (_, index) =>
      fork(script, [path, `p${index}`, "10"]),
    );
    // What each process reports as written before it is killed.
    const written = await Promise.all(
      children.map(async (child) => {
        let last = -1;
        child.on("message", (count: number) => {
          last = count;
          if (count >= 300) child.kill("SIGKILL");
        });
        await once(child, "exit");
        return last;
      }),
    );
    expect(written.every((count) => count >= 300)).toBe(true);
    // The next writer repairs what the last one left torn.
    const next = eventLog({ path });
    next.onEvent(start("next"));
    await next.close();
    // A line may be torn so early that there is no room for the notice.
    const isShort = (text: string): boolean => text.length <= 20 && /^(?:\{\})? *$/.test(text);
    const texts = readFileSync(path, "utf8").split("\n");
    const lines = texts.filter((text) => !isShort(text)).map((text) => JSON.parse(text) as LogLine);
    const others = lines.filter(({ event: type }) => type !== "node.start" && type !== "log.torn");
    expect(others).toEqual([]);
    for (const [index, count] of written.entries()) {
      const steps = new Set(
        lines
          .filter((line) => line.run?.startsWith(`p${index}-`))
          .map((line) => `${line.run} ${line.step}`),
      );
      expect(steps.size).toBeGreaterThanOrEqual(count);
    }
  });
});
