import { expect, test } from "vitest";
import { State } from "waymark";
import { CrashDisk, type Gate } from "../../src/testing/crash-file-system.js";
import { openFileStore } from "./subjects.js";

interface Text {
  readonly text: string;
}

const run = (runId: string, text = ""): State<Text> => State.create<Text>({ text }, { runId });

/** A gate that notes each call, and one that some calls don't get through until it is opened. */
function watched(isHeld: (call: string, path: string) => boolean = () => false) {
  const calls: string[] = [];
  let held = 0;
  let open: () => void = () => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  const gate: Gate = async (call, path) => {
    calls.push(`${call} ${path}`);
    if (!isHeld(call, path)) return;
    held++;
    await opened;
  };
  return { gate, calls, open, held: () => held };
}

test("a save writes, syncs, renames and syncs the folder, in this order", async () => {
  const { gate, calls } = watched();
  const store = openFileStore(new CrashDisk().mount(gate));
  const first = await store.save(run("run"));
  calls.length = 0;
  await store.save(first.set("text", "x"));
  const steps = ["create", "write", "sync file", "link", "sync folder"];
  const order = steps.map((step) => calls.findIndex((call) => call.startsWith(step)));
  expect(order.every((at) => at >= 0)).toBe(true);
  expect(order).toEqual(order.toSorted((a, b) => a - b));
  await store.close();
});

test("concurrent saves of one run are made one after the other", async () => {
  let writing = 0;
  let most = 0;
  const gate: Gate = async (call) => {
    if (call !== "write") return;
    most = Math.max(most, ++writing);
    await new Promise((resolve) => setImmediate(resolve));
    writing--;
  };
  const store = openFileStore(new CrashDisk().mount(gate));
  const first = await store.save(run("run"));
  await Promise.allSettled([1, 2, 3].map((n) => store.save(first.set("text", `${n}`))));
  expect(most).toBe(1);
  await store.close();
});

test("removing old runs delays no run", async () => {
  const disk = new CrashDisk();
  const first = openFileStore(disk.mount());
  await first.save(State.fromJSON({ ...run("ended").toJSON(), status: "completed" }));
  await first.close();
  const watching = watched((_, path) => path.includes("ended") || path.includes(".claims"));
  const store = openFileStore(disk.mount(watching.gate));
  const pruning = store.prune({ maxRuns: 0 });
  let state = await store.save(run("new"));
  for (let n = 0; n < 5; n++) state = await store.save(state.set("text", `${n}`));
  expect(watching.held()).toBeGreaterThan(0);
  watching.open();
  expect(await pruning).toEqual(["ended"]);
  await store.close();
});

test("a file store does not keep the files of all concurrent runs open", async () => {
  let open = 0;
  let most = 0;
  const gate: Gate = (call) => {
    if (/^(open|create)/.test(call)) most = Math.max(most, ++open);
    if (call === "close") open--;
  };
  const store = openFileStore(new CrashDisk().mount(gate));
  const runs = Array.from({ length: 300 }, (_, id) => run(`run-${id}`));
  const saved = await Promise.all(runs.map((state) => store.save(state)));
  await new Promise((resolve) => setImmediate(resolve));
  // Two files of each of 64 runs; while they save at once, also those of the writes under way.
  expect(open).toBeLessThanOrEqual(128);
  expect(most).toBeLessThan(256);
  for (const state of saved) await store.save(state.set("text", "x"));
  await new Promise((resolve) => setImmediate(resolve));
  expect(open).toBe(128);
  await store.close();
  expect(open).toBe(0);
});

test("a first save succeeds even if another process removes its folder meanwhile", async () => {
  const disk = new CrashDisk();
  const other = openFileStore(disk.mount());
  let isFirst = true;
  const store = openFileStore(
    disk.mount(async (call, path) => {
      if (call !== "openFolder" || !path.endsWith("run") || !isFirst) return;
      isFirst = false;
      await other.delete("run");
    }),
  );
  const saved = await store.save(run("run", "x"));
  expect(isFirst).toBe(false);
  expect((await other.load<Text>("run")).toJSON()).toEqual(saved.toJSON());
  for (const one of [store, other]) await one.close();
});
