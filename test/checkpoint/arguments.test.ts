import { describe, expect, test } from "vitest";
import { type CheckpointStore, ConfigError, MemoryStore, State } from "waymark";
import { FileStore } from "waymark/stores/file";
import { PostgresStore } from "waymark/stores/postgres";
import { rejection } from "../graphs.js";
import { newFolder } from "../stores/folders.js";

const stores: Readonly<Record<string, () => CheckpointStore>> = {
  MemoryStore: () => new MemoryStore(),
  FileStore: () => new FileStore({ root: newFolder() }),
  PostgresStore: () => new PostgresStore({ client: "pglite:" }),
};

const first = State.create({ n: 1 }, { runId: "run" });

/** A store called with what no type allows. */
type Loose = Record<"save" | "load" | "import", (...given: unknown[]) => Promise<unknown>>;

const calls: readonly [string, (store: Loose, saved: unknown) => Promise<unknown>, string][] = [
  ["save({})", (store) => store.save({}), "state must be a State; got an object"],
  ["save(s, null)", (store, saved) => store.save(saved, null), "options must be an object"],
  ["save(s, 5)", (store, saved) => store.save(saved, 5), "options must be an object"],
  [
    "save(s, { keep })",
    (store, saved) => store.save(saved, { keep: 1 }),
    "keep must be an integer",
  ],
  ["save(s, { emit })", (store, saved) => store.save(saved, { emit: 1 }), "options.emit must be"],
  ["load(run, null)", (store) => store.load("run", null), "at must be an object of options"],
  ["load(run, 5)", (store) => store.load("run", 5), "at must be an object of options; got 5"],
  ["load(run, { steps })", (store) => store.load("run", { steps: 1 }), "at.steps is not an option"],
  ["load(run, { step })", (store) => store.load("run", { step: -1 }), "step must be an integer"],
];

const kept: typeof calls = [
  ["load(run, {}, null)", (store) => store.load("run", {}, null), "context must be an object"],
  ["load(…, { emit })", (store) => store.load("run", {}, { emit: 1 }), "context.emit must be a"],
  [
    "import()",
    (store) => store.import(undefined),
    "checkpoints must be an iterable of checkpoints, as export() gives",
  ],
  ["import([null])", (store) => store.import([null]), "checkpoints must each have a state"],
  ["import([{ state }])", (store) => store.import([{ state: first }]), "state and a parentId"],
];

describe.each(Object.entries(stores))("%s", (name, open) => {
  test("refuses invalid arguments by name, and keeps its runs", async () => {
    const store = open();
    const saved = await store.save(first);
    const loose = store as unknown as Loose;
    // What is in memory has no file that could be corrupt, and is not exported.
    for (const [call, action, message] of name === "MemoryStore" ? calls : [...calls, ...kept]) {
      const error = await rejection(action(loose, saved), ConfigError);
      expect(error.message, call).toContain(message);
    }
    expect((await store.load("run")).toJSON()).toEqual(saved.toJSON());
    await store.close?.();
  });
});
