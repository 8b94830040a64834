import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { FileStore } from "waymark/stores/file";
import type { Finding } from "../../../src/checkpoint/store.js";
import { NodeFileSystem } from "../../../src/stores/disk/node-file-system.js";
import { newFolder, saveTimes, tamper } from "../folders.js";

async function findings(store: FileStore, runId?: string): Promise<Finding[]> {
  const found: Finding[] = [];
  for await (const finding of store.verify(runId)) found.push(finding);
  return found;
}

test.runIf(process.platform === "linux")("finds leftovers of dead processes", async () => {
  const root = newFolder();
  await saveTimes(new FileStore({ root }), 2);
  const [, thread = "", started = "", place = ""] = new NodeFileSystem().owner.split("-");
  const dead = `${process.pid}-${thread}-${Number(started) - 1}-${place}-00000000`;
  const temporary = join(root, "run", `.checkpoint_0003.${dead}.1.tmp`);
  writeFileSync(temporary, "half");
  mkdirSync(join(root, ".claims"));
  writeFileSync(join(root, ".claims", `run@${dead}.1`), "");
  const store = new FileStore({ root, readOnly: true });
  expect(await findings(store)).toEqual(
    [`the claim run@${dead}.1`, temporary].map((actual) => {
      return { runId: "run", sequence: 0, problem: "leftover", expected: "nothing", actual };
    }),
  );
});

test("finds corrupt, newer and quarantined files, and changes nothing", async () => {
  const root = newFolder();
  await saveTimes(new FileStore({ root }), 4);
  tamper(join(root, "run/checkpoint_0002.json"), (bytes) => bytes.subarray(0, 90));
  tamper(join(root, "run/checkpoint_0003.json"), () => '{"waymark":2,"sha512":"…"}');
  tamper(join(root, "run/checkpoint_0004.json"), (bytes) => {
    return bytes.toString().replace('"n":4', '"n":5');
  });
  const store = new FileStore({ root });
  const problems = (found: Finding[]): unknown => found.map((one) => [one.sequence, one.problem]);
  const expected = [
    [2, "corrupt"],
    [3, "unreadable"],
    [4, "corrupt"],
  ];
  expect(problems(await findings(store, "run"))).toEqual(expected);
  expect(problems(await findings(store))).toEqual(expected);
});
