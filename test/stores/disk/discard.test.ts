import { readdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { State } from "waymark";
import { FileStore } from "waymark/stores/file";
import { CrashDisk, type Gate, systemError } from "../../../src/testing/crash-file-system.js";
import { type Count, newFolder, nextStep, saveTimes } from "../folders.js";

const all = (root: string): string[] => readdirSync(join(root, "run")).sort();

describe("of two saves in one step, the newer is kept", () => {
  test("with a marker for the other, until the step before is gone", async () => {
    const root = newFolder();
    const store = new FileStore({ root, keep: 2 });
    let state = await store.save(nextStep(State.create<Count>({ n: 0 }, { runId: "run" })));
    state = await store.save(nextStep(state));
    for (let n = 0; n < 3; n++) state = await store.save(state.set("n", n));
    await store.close();
    expect(all(root)).toEqual([
      ".checkpoint_0002.gone",
      "checkpoint_0001.json",
      "checkpoint_0005.json",
    ]);
    state = await store.save(nextStep(state));
    await store.close();
    expect(all(root)).toEqual(["checkpoint_0005.json", "checkpoint_0006.json"]);
    await store.delete("run");
    expect(readdirSync(root)).toEqual([]);
  });

  test("even if the run is deleted while a sequence is marked as used", async () => {
    const root = newFolder();
    const store = new FileStore({ root, keep: 2 });
    const state = await saveTimes(store, 2);
    await store.save(state.set("n", 9));
    await store.close();
    expect(all(root)).toContain(".checkpoint_0002.gone");
    await store.delete("run");
    expect(readdirSync(root)).toEqual([]);
  });

  test("a writer at the step before can't take its sequence", async () => {
    const root = newFolder();
    const store = new FileStore({ root, keep: 2 });
    await saveTimes(store, 1);
    const stale = new FileStore({ root, keep: 2 });
    const old = await stale.load<Count>("run");
    let state = await store.save(nextStep(await store.load<Count>("run")));
    state = await store.save(state.set("n", 7));
    await store.close();
    await expect(stale.save(old.set("n", 8))).rejects.toMatchObject({
      code: "CHECKPOINT_CONFLICT",
    });
    expect((await stale.load("run")).sequence).toBe(state.sequence);
  });
});

test("500 runs saving at once keep few files open, and all are saved", async () => {
  let open = 0;
  let most = 0;
  const gate: Gate = (call, path) => {
    if (/^(open|create)/.test(call)) most = Math.max(most, ++open);
    if (call === "close") open--;
    if (open > 500) throw systemError("EMFILE", path);
  };
  const store = new FileStore({ root: "/w" }, new CrashDisk().mount(gate));
  const states = Array.from({ length: 500 }, (_, id) => State.create({}, { runId: `run-${id}` }));
  const saved = await Promise.all(states.map((state) => store.save(state)));
  const again = await Promise.all(saved.map((state) => store.save(state)));
  expect(new Set(again.map(({ sequence }) => sequence))).toEqual(new Set([2]));
  expect(most).toBeLessThan(400);
  await store.close();
  expect(open).toBe(0);
});
