import { existsSync, mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { MemoryStore, State, StateGraph } from "waymark";
import { FileStore } from "waymark/stores/file";
import { newFolder } from "../folders.js";

let root: string;
beforeEach(() => {
  root = newFolder();
});
afterEach(() => vi.useRealTimers());

const claimsIn = (folder: string) =>
  existsSync(join(folder, ".claims")) ? readdirSync(join(folder, ".claims")).sort() : [];

/** The name that this process puts on its claim of a run, in its parts. */
async function ownName() {
  const store = new FileStore({ root });
  const claim = await store.claim("run");
  const name = claimsIn(root).find((one) => one.startsWith("run@")) ?? "";
  await claim?.release();
  const [, pid = "", thread = "", started = "", place = ""] =
    /^run@(\d+)-(\d+)-(\d+)-(\w+)-\w+\.\d+$/.exec(name) ?? [];
  expect(Number(pid)).toBe(process.pid);
  return { pid, thread, started, place };
}

/** A claim of somebody else on the run `run`, by the main thread of its process if no other is named. */
function leave(
  pid: string,
  started: string,
  place: string,
  thread = pid,
): { name: string; alive: string } {
  const owner = `${pid}-${thread}-${started}-${place}-0a0b0c0d`;
  const folder = join(root, ".claims");
  mkdirSync(folder, { recursive: true });
  const [name, alive] = [join(folder, `run@${owner}.1`), join(folder, `${owner}.alive`)];
  writeFileSync(name, "");
  writeFileSync(alive, "");
  return { name, alive };
}

describe("a claim in the file store", () => {
  test("leaves nothing behind when it is released", async () => {
    const store = new FileStore({ root });
    const claims = await Promise.all(["one", "two", "../three"].map((runId) => store.claim(runId)));
    expect(claimsIn(root)).toHaveLength(3);
    for (const claim of claims) await claim?.release();
    expect(readdirSync(root)).toEqual([]);
  });

  test("can be taken again and again, without waiting", async () => {
    const store = new FileStore({ root });
    for (let count = 0; count < 20; count++) {
      const claim = await store.claim("run");
      expect(claim).toBeDefined();
      const released = claim?.release();
      if (count % 2 === 0) await released;
      else await Promise.all([released, store.claim("other").then((other) => other?.release())]);
    }
    expect(readdirSync(root)).toEqual([]);
  });

  test("is held by a run while it runs, and outside of the run's folder", async () => {
    const store = new FileStore({ root });
    const seen: string[][] = [];
    const graph = new StateGraph<{ n: number }>({ checkpoint: { store, interval: 1 } })
      .addNode("a", (state) => {
        seen.push(claimsIn(root));
        return state;
      })
      .setEntryPoint("a")
      .setExitPoint("a");
    await graph.execute(State.create({ n: 0 }, { runId: "run" }));
    expect(seen[0]?.filter((name) => name.startsWith("run@"))).toHaveLength(1);
    // What the graph looks like stays, for its other runs.
    expect(readdirSync(root)).toEqual([".graphs"]);
    await store.close();
  });

  test("stops the run before its first node if it can't be made", async () => {
    const file = join(root, "file");
    writeFileSync(file, "");
    const store = new FileStore({ root: join(file, "below") });
    const mixed = Object.assign(new MemoryStore(), {
      claim: (runId: string) => store.claim(runId),
    });
    let begun = 0;
    const graph = new StateGraph<{ n: number }>({ checkpoint: { store: mixed, interval: 1 } })
      .addNode("a", (state) => {
        begun++;
        return state;
      })
      .setEntryPoint("a")
      .setExitPoint("a");
    await expect(graph.execute(State.create({ n: 0 }))).rejects.toThrow("ENOTDIR");
    expect(begun).toBe(0);
  });

  test("names its holder: the machine, the process, and since when", async () => {
    const store = new FileStore({ root });
    expect(await store.holder("run")).toBeUndefined();
    const before = new Date().toISOString();
    const claim = await store.claim("run");
    const holder = await new FileStore({ root }).holder("run");
    expect(holder).toEqual({ host: hostname(), pid: process.pid, since: expect.any(String) });
    expect((holder?.since ?? "") >= before).toBe(true);
    await claim?.release();
    expect(await store.holder("run")).toBeUndefined();
  });

  test("is lost if another process removes it, believing this one dead", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    const store = new FileStore({ root });
    const [lost, kept] = [await store.claim("run"), await store.claim("other")];
    const name = claimsIn(root).find((one) => one.startsWith("run@")) ?? "none";
    rmSync(join(root, ".claims", name));
    await vi.advanceTimersByTimeAsync(1000);
    await vi.waitFor(() => expect(lost?.lost?.aborted).toBe(true));
    expect(kept?.lost?.aborted).toBe(false);
    await lost?.release();
    await kept?.release();
    expect(readdirSync(root)).toEqual([]);
  });

  test("is checked again after this process has missed its heartbeats", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "Date"] });
    const store = new FileStore({ root });
    const [lost, kept] = [await store.claim("run"), await store.claim("other")];
    expect([lost?.holds?.(), kept?.holds?.()]).toEqual([true, true]);
    const name = claimsIn(root).find((one) => one.startsWith("run@")) ?? "none";
    rmSync(join(root, ".claims", name));
    vi.setSystemTime(Date.now() + 3000);
    expect(await Promise.all([lost?.holds?.(), kept?.holds?.()])).toEqual([false, true]);
    // It has just shown that it lives.
    expect(kept?.holds?.()).toBe(true);
    await lost?.release();
    await kept?.release();
  });

  test("is lost if the claims folder is gone", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "Date"] });
    const claim = await new FileStore({ root }).claim("run");
    rmSync(join(root, ".claims"), { recursive: true });
    vi.setSystemTime(Date.now() + 3000);
    expect(await claim?.holds?.()).toBe(false);
    await claim?.release();
  });

  test("leaves files alone that are not claims", async () => {
    const folder = join(root, ".claims");
    mkdirSync(folder);
    writeFileSync(join(folder, "run@notes.txt"), "");
    const claim = await new FileStore({ root }).claim("run");
    await claim?.release();
    expect(readdirSync(folder)).toEqual(["run@notes.txt"]);
  });
});

describe("the claim of a dead process is ignored", () => {
  test("when no process has its id", async () => {
    const { started, place } = await ownName();
    leave("4194999", started, place);
    const claim = await new FileStore({ root }).claim("run");
    expect(claim).toBeDefined();
    await claim?.release();
    expect(readdirSync(root)).toEqual([]);
  });

  test.runIf(process.platform === "linux")(
    "when its id now belongs to a later process, even this one",
    async () => {
      const { pid, started, place } = await ownName();
      for (const id of [pid, "1"]) {
        leave(id, String(Number(started) - 1), place);
        const claim = await new FileStore({ root }).claim("run");
        expect(claim).toBeDefined();
        await claim?.release();
      }
      expect(readdirSync(root)).toEqual([]);
    },
  );

  test("and swept together with those of other runs", async () => {
    const { started, place } = await ownName();
    leave("4194999", started, place);
    const claim = await new FileStore({ root }).claim("another");
    expect(claimsIn(root).filter((name) => name.includes("0a0b0c0d"))).toEqual([]);
    await claim?.release();
  });

  test("when it was on another machine and has stopped its heartbeat", async () => {
    const { pid, started } = await ownName();
    leave(pid, started, "ffffffff");
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    const claiming = new FileStore({ root }).claim("run");
    await vi.waitFor(() => expect(vi.getTimerCount()).toBeGreaterThan(0));
    await vi.advanceTimersByTimeAsync(3000);
    const claim = await claiming;
    expect(claim).toBeDefined();
    await claim?.release();
    expect(readdirSync(root)).toEqual([]);
  });
});

describe("the claim of a silent process on another machine", () => {
  const silent = { toFake: ["setTimeout", "clearTimeout"] } as const;

  test("holds again once that process wakes up", async () => {
    const { pid, started } = await ownName();
    const { alive } = leave(pid, started, "ffffffff");
    const store = new FileStore({ root });
    vi.useFakeTimers({ toFake: [...silent.toFake] });
    const first = store.claim("run");
    await vi.waitFor(() => expect(vi.getTimerCount()).toBeGreaterThan(0));
    await vi.advanceTimersByTimeAsync(3000);
    await (await first)?.release();
    leave(pid, started, "ffffffff");
    const second = store.claim("run");
    await vi.waitFor(() => expect(vi.getTimerCount()).toBeGreaterThan(0));
    writeFileSync(alive, "..");
    await vi.advanceTimersByTimeAsync(3000);
    expect(await second).toBeUndefined();
  });

  test("is given one more wait if that process never sent a heartbeat", async () => {
    const { pid, started } = await ownName();
    const { name, alive } = leave(pid, started, "ffffffff");
    rmSync(alive);
    vi.useFakeTimers({ toFake: [...silent.toFake] });
    let isClaimed = false;
    const claiming = new FileStore({ root }).claim("run").finally(() => {
      isClaimed = true;
    });
    await vi.waitFor(() => expect(vi.getTimerCount()).toBeGreaterThan(0));
    await vi.advanceTimersByTimeAsync(2500);
    expect([isClaimed, existsSync(name)]).toEqual([false, true]);
    await vi.waitFor(() => expect(existsSync(name)).toBe(false));
    expect(isClaimed).toBe(false);
    await vi.advanceTimersByTimeAsync(3000);
    await (await claiming)?.release();
    expect(readdirSync(root)).toEqual([]);
  });
});

describe("the claim of a living process holds", () => {
  test.runIf(process.platform === "linux")("on this machine, at once", async () => {
    const { pid, thread, started, place } = await ownName();
    leave(pid, started, place, thread);
    expect(await new FileStore({ root }).claim("run")).toBeUndefined();
    expect(claimsIn(root)).toHaveLength(2);
  });

  test("on another machine, once a heartbeat was seen, for a limited time", async () => {
    const { pid, started } = await ownName();
    const { alive } = leave(pid, started, "ffffffff");
    const store = new FileStore({ root });
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    const claiming = store.claim("run");
    await vi.waitFor(() => expect(vi.getTimerCount()).toBeGreaterThan(0));
    writeFileSync(alive, ".");
    await vi.advanceTimersByTimeAsync(3000);
    expect(await claiming).toBeUndefined();
    expect(await store.claim("run")).toBeUndefined();
    expect(await store.claim("other")).toBeDefined();
  });

  test("sends heartbeats as long as it has claims", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    const claim = await new FileStore({ root }).claim("run");
    for (let beats = 1; beats <= 3; beats++) {
      await vi.advanceTimersByTimeAsync(1000);
      await vi.waitFor(() => {
        const name = claimsIn(root).find((one) => one.endsWith(".alive")) ?? "none";
        expect(statSync(join(root, ".claims", name)).size).toBeGreaterThanOrEqual(beats);
      });
    }
    await claim?.release();
    expect(vi.getTimerCount()).toBe(0);
    expect(readdirSync(root)).toEqual([]);
  });
});
