import { readdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { systemProcesses } from "../../../src/stores/process.js";
import { articleRun, contentOf, damage, json, project, spoil, waymark } from "../harness.js";

/** The bytes of a page of SQLite. */
const PAGE = 4096;

const kinds = (findings: Found["findings"]): string[] =>
  findings.map(({ level, problem }) => `${level} ${problem}`);

interface Found {
  readonly ok: boolean;
  readonly findings: readonly {
    problem: string;
    level: string;
    runId: string;
    sequence: number;
  }[];
}

describe("checkpoints in files", () => {
  const file = (folder: string, sequence: number) =>
    join(folder, ".waymark/monday", `checkpoint_000${sequence}.json`);

  test("are found intact", async () => {
    const folder = project();
    await articleRun(folder);
    const { code, out } = await waymark(folder, "validate", "monday");
    expect(code).toBe(0);
    expect(out).toBe("4 checkpoints of 1 run: no problems\n");
    expect(await json(folder, "validate")).toEqual({
      ok: true,
      runs: 1,
      checkpoints: 4,
      findings: [],
    });
    expect((await waymark(folder, "validate", "monday", "--all")).code).toBe(2);
    expect((await waymark(folder, "validate", "sunday")).code).toBe(3);
  });

  test("that are corrupt are found and left in place, and set aside by repair", async () => {
    const folder = project();
    await articleRun(folder);
    spoil(file(folder, 4));
    writeFileSync(file(folder, 2), "");
    const before = contentOf(join(folder, ".waymark"));
    const { code, out } = await waymark(folder, "validate");
    expect(code).toBe(1);
    expect(out).toMatch(/problem +corrupt +monday +2\n.*found an empty file/);
    expect(out).toMatch(/problem +corrupt +monday +4\n.*expected [\da-f]{64}; found/);
    expect(out).toContain("of 1 run: 2 problems");
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
    expect(kinds(after.findings)).toEqual(["note quarantined", "note quarantined"]);
    expect((await waymark(folder, "repair", "--yes")).out).toBe("nothing to repair\n");
    // What was lost is made again.
    const resumed = await json(folder, "resume", "monday");
    expect(resumed).toMatchObject({
      status: "completed",
      data: { parts: ["draft", "review", "publish"] },
    });
    expect((await waymark(folder, "validate")).code).toBe(0);
  });

  test("without an intact one are a problem that remains", async () => {
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

  test("that need a key, or have a newer format, are distinguished from corrupt ones", async () => {
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

  test("are checked along with leftovers of dead processes, which repair removes, and orphaned forks", async () => {
    const folder = project();
    await articleRun(folder);
    const { runId } = (await json(folder, "fork", "monday", "--at", "1")) as { runId: string };
    const dead = systemProcesses.newOwner().replace(/^\d+/, "999999999");
    const leftover = `.checkpoint_0005.${dead}.1.tmp`;
    writeFileSync(join(folder, ".waymark/monday", leftover), "half");
    const found = (await json(folder, "validate")) as Found;
    expect(kinds(found.findings)).toEqual(["note leftover"]);
    expect(found.ok).toBe(true);
    expect((await waymark(folder, "repair", "--yes")).code).toBe(0);
    expect(readdirSync(join(folder, ".waymark/monday"))).not.toContain(leftover);
    await waymark(folder, "prune", "--max-runs", "0", "--yes");
    const orphan = (await json(folder, "validate")) as Found;
    expect(orphan.findings).toMatchObject([{ level: "note", problem: "orphan", runId }]);
  });
});

describe("checkpoints in SQLite", () => {
  const store = "sqlite:.waymark/runs.db";

  test("that are corrupt are found and left in place, and set aside by repair", async () => {
    const folder = project(store);
    await articleRun(folder);
    await articleRun(folder, "tuesday");
    await damage(folder, store, "monday", 4);
    const found = (await json(folder, "validate")) as Found;
    expect(found.ok).toBe(false);
    expect(kinds(found.findings)).toContain("problem corrupt");
    expect(found.findings.every(({ runId }) => runId === "monday")).toBe(true);
    expect((await waymark(folder, "show", "monday")).code).toBe(0);
    expect((await waymark(folder, "list")).code).toBe(0);
    // Looking at it has changed nothing.
    expect(await json(folder, "validate")).toEqual(found);
    const hint = (await waymark(folder, "validate", "monday")).err;
    expect(hint).toBe("set corrupt checkpoints aside: waymark repair monday\n");

    expect(await json(folder, "repair", "--yes")).toMatchObject([{ runId: "monday", step: 2 }]);
    const after = (await json(folder, "validate")) as Found;
    expect(after.findings.every(({ level }) => level === "note")).toBe(true);
    expect(after.ok).toBe(true);
    expect(await json(folder, "resume", "monday")).toMatchObject({ status: "completed", step: 3 });
  });

  test("in a damaged page are found and left by repair, and others load", async () => {
    const folder = project(store);
    const file = join(folder, ".waymark/runs.db");
    const data = JSON.stringify({ topic: "cairns".repeat(2000), parts: [], token: "" });
    await waymark(folder, "run", "article", "--id", "large", "--data", data);
    await articleRun(folder);
    const bytes = readFileSync(file);
    // Only the large one continues on pages of its own: each begins with the number of the next.
    const at = Math.floor(bytes.indexOf("cairns".repeat(600)) / PAGE) * PAGE;
    bytes.fill(0xee, at, at + 4);
    writeFileSync(file, bytes);
    const found = (await json(folder, "validate")) as Found;
    expect(found.ok).toBe(false);
    expect(found.findings).toContainEqual(expect.objectContaining({ problem: "database" }));
    expect(new Set(found.findings.map(({ runId }) => runId))).toEqual(new Set(["", "large"]));
    expect(readFileSync(file).equals(bytes)).toBe(true);
    const { code, out } = await waymark(folder, "repair", "--yes");
    expect(code).toBe(1);
    expect(out).toContain("large: has no checkpoint left; 0 checkpoints set aside");
    expect(await json(folder, "show", "monday")).toMatchObject({ status: "completed" });
    expect((await waymark(folder, "validate", "monday")).code).toBe(0);
  });

  test.each([
    ["a file of another kind", "notes\n".repeat(2000)],
    ["a SQLite database of another application", ""],
  ])("%s is named and left unchanged", async (kind, text) => {
    const folder = project("sqlite:notes.db");
    const file = join(folder, "notes.db");
    writeFileSync(file, text);
    if (text === "") {
      const { default: Database } = await import("libsql");
      const other = new Database(file);
      other.exec("CREATE TABLE notes (text)");
      other.close();
    }
    const before = contentOf(folder);
    for (const args of [["validate"], ["repair", "--yes"], ["list"], ["show", "monday"]]) {
      const { code, err } = await waymark(folder, ...args);
      expect(code, args[0]).not.toBe(0);
      expect(err).toContain(`${file} is not an intact waymark database: ${kind}`);
      expect(err.includes("waymark validate shows"), args[0]).toBe(args[0] !== "validate");
    }
    expect((await waymark(folder, "run", "article", "--data", "{}")).err).toContain(kind);
    expect(contentOf(folder)).toEqual(before);
  });
});

describe("one file", () => {
  const file = ".waymark/monday/checkpoint_0003.json";

  test("is found intact, wherever it is", async () => {
    const folder = project();
    await articleRun(folder);
    expect(await waymark(folder, "validate", "--file", file)).toMatchObject({
      code: 0,
      out: "1 checkpoint of 1 run: no problems\n",
    });
    renameSync(join(folder, file), join(folder, "elsewhere.json"));
    expect((await waymark(folder, "validate", "--file", "elsewhere.json")).code).toBe(0);
  });

  test("is distinguished as damaged, unreadable or missing", async () => {
    const codec = { encrypt: { current: "k1", keys: { k1: Buffer.alloc(32).toString("base64") } } };
    const folder = project("file:.waymark", `codec: ${JSON.stringify(codec)}`);
    await articleRun(folder);
    const check = (...more: string[]) => waymark(folder, "validate", "--file", file, ...more);
    expect((await check()).code).toBe(0);
    const locked = await check("--no-config");
    expect(locked.code).toBe(1);
    expect(locked.out).toMatch(/problem +unreadable +monday +3/);
    spoil(join(folder, file));
    const broken = await check();
    expect(broken.code).toBe(1);
    expect(broken.out).toMatch(/problem +corrupt +monday +3\n +expected [\da-f]{64}; found/);
    writeFileSync(join(folder, "other.json"), "{}");
    const other = await waymark(folder, "validate", "--file", "other.json");
    expect(other.out).toContain("expected a waymark document; found another file");
    const missing = await waymark(folder, "validate", "--file", "none.json");
    expect(missing.code).toBe(3);
    expect((await check("--all")).code).toBe(2);
  });
});

test("repair asks for confirmation, and does nothing without a terminal", async () => {
  const folder = project();
  await articleRun(folder);
  const path = join(folder, ".waymark/monday/checkpoint_0004.json");
  spoil(path);
  const refused = await waymark(folder, "repair");
  expect(refused.code).toBe(2);
  expect(refused.err).toMatch(
    /Repair 1 run in .*\? There is no terminal to ask in \(--yes answers yes\)/,
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
  expect(yes.out).toContain("monday: continues from step 2; 1 checkpoint set aside");
});
