import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { ConfigError, State } from "waymark";
import { FileStore } from "waymark/stores/file";
import { linear, rejection } from "../../graphs.js";
import { type Count, filesOf, listen, newFolder, saveTimes, tamper } from "../folders.js";

test("a missing root has no runs and is not created", async () => {
  const store = new FileStore({ root: join(newFolder(), "absent"), readOnly: true });
  expect([await store.list(), await store.runs(), await store.history("run")]).toEqual([
    [],
    [],
    [],
  ]);
  expect(await store.find("nothing")).toBeUndefined();
  await expect(store.save(State.create({}))).rejects.toThrow(ConfigError);
  expect(existsSync(store.root)).toBe(false);
});

test("a corrupt checkpoint is skipped and stays where it is", async () => {
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
  const loaded = await store.load("run");
  for (const write of [
    () => store.save(loaded),
    () => store.claim("run"),
    () => store.delete("run"),
    () => store.prune({ maxAgeDays: 0, includeAbandoned: true }),
    () => store.saveTopology(linear(["a"]).topology),
  ]) {
    const { message } = await rejection(write(), ConfigError);
    expect(message).toBe(
      "FileStore.readOnly is true: this store saves, claims and removes nothing",
    );
  }
  expect(await store.find(saved.checkpointId)).toBe("run");
  expect(await store.holder("run")).toBeUndefined();
  expect(readdirSync(root)).toEqual(["run"]);
  expect(filesOf(root)).toHaveLength(2);
});
