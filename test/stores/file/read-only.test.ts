import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { CheckpointSaveError, State } from "waymark";
import { FileStore } from "waymark/stores/file";
import { type Count, filesOf, listen, newFolder, saveTimes, tamper } from "../folders.js";

test("a root that is not there has no runs, and is not made", async () => {
  const store = new FileStore({ root: join(newFolder(), "absent"), readOnly: true });
  expect([await store.list(), await store.runs(), await store.history("run")]).toEqual([
    [],
    [],
    [],
  ]);
  expect(await store.find("nothing")).toBeUndefined();
  await expect(store.save(State.create({}))).rejects.toThrow(CheckpointSaveError);
  expect(existsSync(store.root)).toBe(false);
});

test("a corrupt checkpoint is passed over and stays where it is", async () => {
  const root = newFolder();
  await saveTimes(new FileStore({ root }), 3);
  tamper(join(root, "run/checkpoint_0003.json"), () => "corrupt");
  const store = new FileStore({ root, readOnly: true });
  const { context, events } = listen();
  expect((await store.load<Count>("run", {}, context)).data.n).toBe(2);
  expect(events.map(({ type }) => type)).toEqual(["checkpoint.error", "checkpoint.warning"]);
  expect(filesOf(root)).toEqual([1, 2, 3].map((n) => `checkpoint_000${n}.json`));
  expect(readFileSync(join(root, "run/checkpoint_0003.json"), "utf8")).toBe("corrupt");
});

test("nothing can be saved, claimed, deleted or pruned", async () => {
  const root = newFolder();
  const saved = await saveTimes(new FileStore({ root }), 2);
  const store = new FileStore({ root, readOnly: true });
  const error = await store.save(await store.load("run")).catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(CheckpointSaveError);
  expect(String(error)).toMatch(
    /the checkpoint of run "run" was not saved in .*: EROFS: the store is read-only/,
  );
  await expect(store.claim("run")).rejects.toThrow("read-only");
  await expect(store.delete("run")).rejects.toThrow("read-only");
  expect(await store.find(saved.checkpointId)).toBe("run");
  expect(await store.holder("run")).toBeUndefined();
  expect(readdirSync(root)).toEqual(["run"]);
  expect(filesOf(root)).toHaveLength(2);
});
