import { readdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { NodeFileSystem } from "../../src/stores/file/node-file-system.js";
import { ownerName } from "../../src/stores/file/process.js";
import { LogFolder } from "../../src/stores/journal/log-folder.js";
import { articleRun, contentOf, json, project, spoil, waymark } from "./harness.js";

const kinds = (findings: readonly { what: string; level: string }[]): string[] =>
  findings.map(({ level, what }) => `${level} ${what}`);

interface Found {
  readonly ok: boolean;
  readonly findings: readonly {
    what: string;
    level: string;
    runId: string;
    sequence: number;
    text: string;
  }[];
}

describe("checkpoints in files", () => {
  const file = (folder: string, sequence: number) =>
    join(folder, ".waymark/monday", `checkpoint_000${sequence}.json`);

  test("are found to be what was written", async () => {
    const folder = project();
    await articleRun(folder);
    const { code, out } = await waymark(folder, "validate", "monday");
    expect(code).toBe(0);
    expect(out).toBe("4 checkpoints of 1 run: all are what was written\n");
    expect(await json(folder, "validate")).toEqual({
      ok: true,
      runs: 1,
      checkpoints: 4,
      findings: [],
    });
    expect((await waymark(folder, "validate", "monday", "--all")).code).toBe(2);
    expect((await waymark(folder, "validate", "sunday")).code).toBe(3);
  });

  test("that are corrupt are found, and left where they are; repair sets them aside", async () => {
    const folder = project();
    await articleRun(folder);
    spoil(file(folder, 4));
    writeFileSync(file(folder, 2), "");
    const before = contentOf(join(folder, ".waymark"));
    const { code, out } = await waymark(folder, "validate");
    expect(code).toBe(1);
    expect(out).toMatch(/problem +corrupt +monday +2\n.*is empty/);
    expect(out).toMatch(/problem +corrupt +monday +4\n.*expected [\da-f]{64}, found/);
    expect(out).toContain("4 checkpoints of 1 run: 2 problems");
    for (const args of [
      ["list"],
      ["show", "monday"],
      ["state", "monday"],
      ["watch", "monday", "--every", "10"],
    ]) {
      if (args[0] !== "watch") expect((await waymark(folder, ...args)).code).toBe(0);
    }
    expect(contentOf(join(folder, ".waymark"))).toEqual(before);
    expect(await json(folder, "state", "monday", "--path", "step")).toBe(2);

    const repairs = await json(folder, "repair", "--yes");
    expect(repairs).toMatchObject([{ runId: "monday", step: 2, skipped: "" }]);
    expect(readdirSync(join(folder, ".waymark/monday/quarantine")).sort()).toEqual([
      "checkpoint_0002.json",
      "checkpoint_0004.json",
    ]);
    const after = (await json(folder, "validate")) as Found;
    expect(after.ok).toBe(true);
    expect(kinds(after.findings)).toEqual(["note quarantine", "note quarantine"]);
    expect((await waymark(folder, "repair", "--yes")).out).toBe("there is nothing to repair\n");
    // What was lost is made again.
    const resumed = await json(folder, "resume", "monday");
    expect(resumed).toMatchObject({
      status: "completed",
      data: { parts: ["draft", "review", "publish"] },
    });
    expect((await waymark(folder, "validate")).code).toBe(0);
  });

  test("a run without any that is whole is a problem that stays", async () => {
    const folder = project();
    await articleRun(folder);
    for (const sequence of [1, 2, 3, 4]) spoil(file(folder, sequence));
    const found = (await json(folder, "validate")) as Found;
    expect(kinds(found.findings)).toContain("problem empty");
    expect((await waymark(folder, "list")).out).toMatch(/monday .* \?\n/);
    const { code, out } = await waymark(folder, "repair", "monday", "--yes");
    expect(code).toBe(1);
    expect(out).toContain("monday: has no checkpoint left; 4 checkpoints set aside");
    expect((await waymark(folder, "state", "monday")).code).toBe(3);
  });

  test("that are missing, or name one that never was, are found", async () => {
    const folder = project();
    await articleRun(folder);
    renameSync(file(folder, 2), join(folder, "elsewhere"));
    expect(kinds(((await json(folder, "validate")) as Found).findings)).toEqual([
      "problem gap",
      "problem chain",
    ]);
  });

  test("that need a key, or are of a newer format, are told apart from corrupt ones", async () => {
    const key = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";
    const codec = `codec: { encrypt: { current: "k1", keys: { k1: "${key}" } } }`;
    const folder = project("file:.waymark", codec);
    await articleRun(folder);
    expect(readFileSync(file(folder, 4), "utf8")).not.toContain("cairns");
    expect((await waymark(folder, "validate")).code).toBe(0);
    const { code, out } = await waymark(folder, "validate", "--no-config");
    expect(code).toBe(1);
    expect(out).toMatch(/problem +unreadable +monday +4/);
    expect((await waymark(folder, "state", "monday", "--no-config")).code).toBe(2);
  });

  test("what a dead process left is told and swept, and a fork whose origin is gone is told", async () => {
    const folder = project();
    await articleRun(folder);
    const { runId } = (await json(folder, "fork", "monday", "--at", "1")) as { runId: string };
    const dead = ownerName().replace(/^\d+/, "999999999");
    const leftover = `.checkpoint_0005.${dead}.1.tmp`;
    writeFileSync(join(folder, ".waymark/monday", leftover), "half");
    const found = (await json(folder, "validate")) as Found;
    expect(kinds(found.findings)).toEqual(["note leftover"]);
    expect(found.ok).toBe(true);
    expect((await waymark(folder, "repair", "monday", "--yes")).code).toBe(0);
    expect(readdirSync(join(folder, ".waymark/monday"))).not.toContain(leftover);
    await waymark(folder, "prune", "--max-runs", "0", "--yes");
    const orphan = (await json(folder, "validate")) as Found;
    expect(orphan.findings).toMatchObject([{ level: "note", what: "orphan", runId }]);
  });
});

describe("records in a journal", () => {
  const log = (folder: string) => join(folder, ".waymark/.log/log_0001.jsonl");

  test("that are corrupt are found, and left where they are; repair copies them", async () => {
    const folder = project("journal:.waymark");
    await articleRun(folder);
    await articleRun(folder, "tuesday");
    const lines = readFileSync(log(folder), "utf8").split("\n");
    const at = lines.findIndex(
      (line) => line.includes('"monday"') && line.includes('"sequence":3'),
    );
    lines[at] = lines[at]?.replace("review", "reviex") ?? "";
    writeFileSync(log(folder), lines.join("\n"));
    const before = contentOf(join(folder, ".waymark"));
    const found = (await json(folder, "validate")) as Found;
    expect(found.ok).toBe(false);
    expect(kinds(found.findings)).toEqual(["problem corrupt", "problem lost"]);
    expect(found.findings.every(({ runId }) => runId === "monday")).toBe(true);
    expect((await waymark(folder, "show", "monday")).code).toBe(0);
    expect((await waymark(folder, "list")).code).toBe(0);
    expect(contentOf(join(folder, ".waymark"))).toEqual(before);

    expect(await json(folder, "repair", "--yes")).toMatchObject([{ runId: "monday", step: 1 }]);
    const after = (await json(folder, "validate")) as Found;
    expect(after.ok).toBe(true);
    expect(after.findings.every(({ level }) => level === "note")).toBe(true);
    expect(await json(folder, "resume", "monday")).toMatchObject({ status: "completed", step: 3 });
  });

  test("what is no record is found", async () => {
    const folder = project("journal:.waymark");
    await articleRun(folder);
    const lines = readFileSync(log(folder), "utf8").split("\n");
    writeFileSync(log(folder), [lines[0], "this is no record", ...lines.slice(1)].join("\n"));
    const found = (await json(folder, "validate")) as Found;
    expect(kinds(found.findings)).toEqual(["problem log"]);
    expect(found.findings[0]?.text).toMatch(
      /^the log holds something that is no record \(log_0001\.jsonl, from byte \d+ on\)$/,
    );
    await waymark(folder, "repair", "--yes");
    expect(((await json(folder, "validate")) as Found).ok).toBe(true);
  });
});

test("a record that can't even tell its run is set aside, and what it took along is known then", async () => {
  const folder = project("journal:.waymark");
  await articleRun(folder);
  const path = join(folder, ".waymark/.log/log_0001.jsonl");
  const lines = readFileSync(path, "utf8").split("\n");
  const at = lines.findIndex((line) => line.includes('"sequence":3'));
  lines[at] = lines[at]?.replace('"waymark"', '"waymork"') ?? "";
  writeFileSync(path, lines.join("\n"));
  const found = (await json(folder, "validate")) as Found;
  expect(found.ok).toBe(false);
  expect(kinds(found.findings)).toContain("problem log");
  expect((await waymark(folder, "validate", "monday")).err).toBe(
    "what is corrupt is set aside by: waymark repair monday\n",
  );
  expect((await waymark(folder, "repair", "--yes")).code).toBe(0);
  const after = (await json(folder, "validate")) as Found;
  expect(after.findings.map(({ level }) => level)).not.toContain("problem");
  expect(await json(folder, "resume", "monday")).toMatchObject({ status: "completed", step: 3 });
});

test("a journal whose log is full is looked at without beginning the next", async () => {
  const folder = project("journal:.waymark");
  await articleRun(folder);
  const log = join(folder, ".waymark/.log");
  await new LogFolder(new NodeFileSystem(), log, false).seal(1);
  const before = contentOf(folder);
  expect((await waymark(folder, "list")).out).toMatch(/monday +article +completed/);
  expect((await waymark(folder, "validate")).code).toBe(0);
  expect((await waymark(folder, "watch", "monday")).code).toBe(0);
  expect(contentOf(folder)).toEqual(before);
});

test("repair asks, and does nothing where nobody can be asked", async () => {
  const folder = project();
  await articleRun(folder);
  const path = join(folder, ".waymark/monday/checkpoint_0004.json");
  spoil(path);
  const refused = await waymark(folder, "repair");
  expect(refused.code).toBe(2);
  expect(refused.err).toMatch(
    /Repair 1 run in .*\? Nobody can be asked here \(--yes does it without asking\)/,
  );
  const no = await waymark({ cwd: folder, columns: 100, input: "n\n" }, "repair");
  expect(no.code).toBe(2);
  expect(no.err).toContain("Repair 1 run in");
  expect(no.err).toContain("nothing was done");
  const none = await waymark({ cwd: folder, columns: 100, input: "" }, "repair");
  expect(none.code).toBe(2);
  readFileSync(path);
  const yes = await waymark({ cwd: folder, columns: 100, input: "y\n" }, "repair");
  expect(yes.code).toBe(0);
  expect(yes.out).toContain("monday: goes on from step 2; 1 checkpoint set aside");
});
