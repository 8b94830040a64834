import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { json, newFolder, waymark } from "../harness.js";

/** A folder whose config has stores that a user wrote. */
function project(): string {
  const folder = newFolder();
  writeFileSync(
    join(folder, "waymark.config.ts"),
    `import { CheckpointCorruptionError, CheckpointNotFoundError, MemoryStore, State } from "waymark";
const memory = new MemoryStore();
await memory.save(State.create({ a: 1 }, { runId: "mine" }));
const bare = {
  save: memory.save.bind(memory),
  load: memory.load.bind(memory),
  delete: async () => {},
  list: memory.list.bind(memory),
};
const kept = { ...bare, history: memory.history.bind(memory) };
const entry = (sequence: number) => ({
  sequence, step: 0, node: "", phase: "", status: "pending", timestamp: "", savedAt: "", checkpointId: "c" + sequence, parentId: "", reason: "", unfinished: false,
});
const faults = [
  new CheckpointCorruptionError("the disk lies", { expected: "a", actual: "b" }),
  new CheckpointNotFoundError("mine"),
  new Error("a key is missing"),
];
const broken = {
  ...bare,
  history: async () => [entry(3), entry(2), entry(1)],
  load: async (_run: string, at: { checkpointId?: string } = {}) => {
    throw faults[Number(at.checkpointId?.slice(1) ?? 1) - 1] ?? faults[1];
  },
};
const empty = { ...bare, history: async () => [] };
export default { store: bare, stores: { memory, kept, broken, empty } };`,
  );
  return folder;
}

test("a custom store is read", async () => {
  const folder = project();
  expect(await json(folder, "list")).toMatchObject([{ runId: "mine", live: false }]);
  expect(await json(folder, "list", "--store", "memory")).toMatchObject([{ runId: "mine" }]);
  expect((await waymark(folder, "validate")).code).toBe(0);
  expect((await waymark(folder, "show", "mine")).code).toBe(0);
  expect((await waymark(folder, "doctor")).code).toBe(0);
  expect((await waymark(folder, "export", "mine")).out).toContain('"checkpoints":1');
  const interrupted = { cwd: folder, onStart: (stop: () => void) => stop() };
  expect((await waymark(interrupted, "watch", "mine")).code).toBe(130);
});

test("stats counts the runs of a store without a listing", async () => {
  const stats = await json(project(), "stats");
  expect(stats).toMatchObject({ runs: 1, checkpoints: 0, bytes: 0, graphs: [{ graph: "(none)" }] });
});

test("what a store can't do is refused in one line", async () => {
  const folder = project();
  const refused: readonly (readonly [string[], number, RegExp])[] = [
    [["history", "mine"], 1, /keeps no history/],
    [["fork", "mine"], 2, /keeps no history/],
    [
      ["state", "mine", "--at", "none"],
      3,
      /run mine has no step, checkpoint, node or phase "none"/,
    ],
    [["prune", "--max-runs", "1"], 2, /can't prune runs/],
    [["convert", "--to", "nope"], 2, /got "nope"/],
    [["convert", "--store", "kept", "--to", "empty"], 2, /can't import runs/],
    [["resume", "mine"], 3, /run mine names no graph \(--graph NAME does\)/],
    [["log", "mine"], 3, /this store has no folder for logs/],
  ];
  for (const [args, code, message] of refused) {
    const ended = await waymark(folder, ...args);
    expect({ args, code: ended.code, err: ended.err }).toEqual({
      args,
      code,
      err: expect.stringMatching(message),
    });
  }
  expect((await waymark(folder, "rollback", "mine", "--at", "0", "--yes")).code).toBe(0);
});

test("a custom store with a history is exported and checked by it", async () => {
  const folder = project();
  const kept = ["--store", "kept"];
  expect((await waymark(folder, "export", "mine", ...kept)).out).toContain('"checkpoints":1');
  expect((await waymark(folder, "history", "mine", ...kept)).out).toMatch(/^ +1 +0 +pending/m);
  expect(await json(folder, "validate", "--store", "empty")).toMatchObject({ ok: true });
  const broken = await waymark(folder, "validate", "--store", "broken");
  expect(broken.code).toBe(1);
  expect(broken.out).toMatch(/problem +corrupt +mine +1\n +expected a; found b/);
  expect(broken.out).toMatch(
    /problem +unreadable +mine +3\n +expected a checkpoint; found a key is missing/,
  );
  const repaired = await waymark(folder, "repair", "--yes", "--store", "broken");
  expect(repaired.code).toBe(1);
  expect(repaired.out).toContain("mine: has no checkpoint left; 0 checkpoints set aside");
});
