import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { articleRun, json, project, waymark } from "../harness.js";

const MIRROR = "mirror:sqlite:here/runs.db,file:there";

const ids = async (folder: string, store: string): Promise<unknown[]> =>
  ((await json(folder, "history", "monday", "--store", store)) as object[]).map((entry) =>
    Reflect.get(entry, "checkpointId"),
  );

test("runs at a mirror's address are in its copies too, as is their removal", async () => {
  const folder = project(MIRROR);
  await articleRun(folder);
  const primary = await ids(folder, "sqlite:here/runs.db");
  expect(primary).toHaveLength(4);
  expect(await ids(folder, "file:there")).toEqual(primary);
  expect(await ids(folder, MIRROR)).toEqual(primary);
  expect((await waymark(folder, "validate")).code).toBe(0);
  expect((await waymark(folder, "delete", "monday", "--yes")).code).toBe(0);
  expect(await json(folder, "list", "--store", "file:there")).toEqual([]);
});

test("convert copies runs to the primary of a mirror and to its copies", async () => {
  const folder = project("file:old");
  await articleRun(folder);
  const { code, out } = await waymark(folder, "convert", "--to", MIRROR);
  expect(code).toBe(0);
  expect(out).toContain(`1 run copied to mirror:sqlite:${join(folder, "here/runs.db")},file:`);
  expect(await ids(folder, "file:there")).toEqual(await ids(folder, "file:old"));
});

test("doctor reports whether a mirror's copies are up to date, behind or unreadable", async () => {
  const folder = project("sqlite:here/runs.db");
  await articleRun(folder);
  const behind = await waymark(folder, "doctor", "--store", MIRROR);
  expect(behind.code).toBe(0);
  expect(behind.out).toMatch(/ok +store +mirror:sqlite:.*, 1 run\n/);
  expect(behind.out).toMatch(
    /warning +copy +file:.*there lacks the newest checkpoint of 1 run: catchUp\(\)/,
  );
  await waymark(folder, "convert", "--to", "file:there");
  const whole = await waymark(folder, "doctor", "--store", MIRROR);
  expect(whole.out).toMatch(/ok +copy +file:.*there is up to date\n/);
  mkdirSync(join(folder, "no"));
  writeFileSync(join(folder, "no/folder"), "");
  const broken = await waymark(
    folder,
    "doctor",
    "--store",
    "mirror:sqlite:here/runs.db,file:no/folder",
  );
  expect(broken.code).toBe(1);
  expect(broken.out).toMatch(/problem +copy +file:.*no\/folder must be a folder/);
});
