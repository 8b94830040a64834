import { PGlite } from "@electric-sql/pglite";
import { afterAll, describe, expect, test } from "vitest";
import { CheckpointConflictError, State } from "waymark";
import { FileStore } from "waymark/stores/file";
import { PostgresStore } from "waymark/stores/postgres";
import { type Count, newFolder, saveTimes } from "./folders.js";
import { newSchema } from "./postgres/server.js";

const pglite = new PGlite();

afterAll(() => pglite.close());

describe.each([
  ["FileStore", (maxBytes?: number) => new FileStore({ root: newFolder(), ...size(maxBytes) })],
  [
    "PostgresStore",
    (maxBytes?: number) =>
      new PostgresStore({ client: pglite, schema: newSchema(), ...size(maxBytes) }),
  ],
] as const)("importing into a %s", (_, open) => {
  test("leaves nothing if it fails halfway, and can be repeated", async () => {
    const from = new FileStore({ root: newFolder() });
    await saveTimes(from, 4);
    async function* broken() {
      let given = 0;
      for await (const one of from.export("run")) {
        if (++given === 4) throw new Error("the other store is gone");
        yield one;
      }
    }
    const to = open();
    await expect(to.import(broken())).rejects.toThrow("the other store is gone");
    expect(await to.list()).toEqual([]);
    await to.import(from.export("run"));
    expect((await to.load<Count>("run")).data.n).toBe(4);
    expect(await to.history("run")).toHaveLength(4);
    await to.close();
  });

  test("leaves nothing if one checkpoint is refused", async () => {
    const from = new FileStore({ root: newFolder() });
    const small = await from.save(State.create({ text: "" }, { runId: "run" }));
    await from.save(small.set("text", "x".repeat(9000)));
    const to = open(5000);
    await expect(to.import(from.export("run"))).rejects.toMatchObject({ code: "CHECKPOINT_SAVE" });
    expect(await to.list()).toEqual([]);
    for (const store of [from, to]) await store.close();
  });

  test("leaves an existing run alone, whatever sequences the import has", async () => {
    const from = new FileStore({ root: newFolder(), keep: 2 });
    await saveTimes(from, 5);
    const to = open();
    await to.save(State.create<Count>({ n: 77 }, { runId: "run" }));
    await expect(to.import(from.export("run"))).rejects.toThrow(CheckpointConflictError);
    expect((await to.load<Count>("run")).data.n).toBe(77);
    expect(await to.history("run")).toHaveLength(1);
    await to.close();
  });

  test("does not remove a run that has continued meanwhile", async () => {
    const from = new FileStore({ root: newFolder() });
    await saveTimes(from, 3);
    const to = open();
    async function* slow() {
      for await (const one of from.export("run")) {
        if (one.state.sequence === 3) await to.save((await to.load<Count>("run")).set("n", 88));
        yield one;
      }
    }
    await expect(to.import(slow())).rejects.toThrow(CheckpointConflictError);
    expect((await to.load<Count>("run")).data.n).toBe(88);
    await to.close();
  });
});

function size(maxBytes: number | undefined): { maxBytes?: number } {
  return maxBytes === undefined ? {} : { maxBytes };
}
