import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { ExportedCheckpoint } from "waymark";
import { FileStore } from "waymark/stores/file";
import { SqliteStore } from "waymark/stores/sqlite";
import { articleRun, damage, json, newFolder, project, waymark } from "./harness.js";

interface Entry {
  readonly checkpointId: string;
  readonly parentId: string;
  readonly sequence: number;
}

const chain = async (folder: string, store: string, run = "monday") =>
  ((await json(folder, "history", run, "--store", store)) as Entry[]).map(
    ({ checkpointId, parentId, sequence }) => ({ checkpointId, parentId, sequence }),
  );

describe("convert", () => {
  test("copies runs there and back, each checkpoint with its id", async () => {
    const folder = project("file:a");
    await articleRun(folder);
    await articleRun(folder, "tuesday");
    const there = await waymark(folder, "convert", "--to", "sqlite:b.db");
    expect(there.code).toBe(0);
    expect(there.out).toMatch(
      /monday: 4 checkpoints\ntuesday: 4 checkpoints\n2 runs copied to sqlite:/,
    );
    expect(
      await json(folder, "convert", "monday", "--from", "sqlite:b.db", "--to", "file:c"),
    ).toEqual([{ runId: "monday", checkpoints: 4, problem: "" }]);
    const before = await chain(folder, "file:a");
    expect(await chain(folder, "sqlite:b.db")).toEqual(before);
    expect(await chain(folder, "file:c")).toEqual(before);
    expect((await waymark(folder, "validate", "--store", "file:c")).code).toBe(0);
    expect(await json(folder, "resume", "monday", "--store", "file:c")).toMatchObject({
      status: "completed",
    });
    await waymark(folder, "rollback", "monday", "--at", "1", "--yes", "--store", "file:c");
    expect(await json(folder, "resume", "monday", "--store", "file:c")).toMatchObject({ step: 3 });
  });

  test("leaves an existing run unchanged", async () => {
    const folder = project("file:a");
    await articleRun(folder);
    await waymark(folder, "convert", "--to", "file:b");
    const { code, out } = await waymark(folder, "convert", "--to", "file:b");
    expect(code).toBe(1);
    expect(out).toMatch(/monday: run "monday" is already in this store.*\n0 runs copied/);
  });

  test.each([
    ["file:b", (folder: string) => new FileStore({ root: join(folder, "b") })],
    ["sqlite:b.db", (folder: string) => new SqliteStore({ path: join(folder, "b.db") })],
  ] as const)("replaces a partial copy in %s, but no run continued there", async (to, open) => {
    const folder = project("file:a");
    await articleRun(folder);
    const store = open(folder);
    const beginning: ExportedCheckpoint[] = [];
    for await (const one of new FileStore({ root: join(folder, "a") }).export("monday")) {
      if (beginning.length < 2) beginning.push(one);
    }
    await store.import(beginning);
    await store.close();
    expect((await waymark(folder, "convert", "--to", to)).code).toBe(0);
    expect(await chain(folder, to)).toEqual(await chain(folder, "file:a"));
    await waymark(folder, "rollback", "monday", "--at", "1", "--yes", "--store", to);
    const before = await chain(folder, to);
    expect((await waymark(folder, "convert", "--to", to)).code).toBe(1);
    expect(await chain(folder, to)).toEqual(before);
  });

  test("stops at Ctrl-C without a half-copied run", async () => {
    const folder = project("file:a");
    for (const id of ["monday", "tuesday"]) await articleRun(folder, id);
    const onStart = (interrupt: () => void): void => {
      setImmediate(interrupt);
    };
    const { code, out } = await waymark({ cwd: folder, onStart }, "convert", "--to", "file:b");
    expect(code).toBe(130);
    expect(out).toMatch(/^monday: 4 checkpoints\n1 run copied to /);
    expect(await json(folder, "history", "monday", "--store", "file:b")).toHaveLength(4);
    expect(await json(folder, "list", "--store", "file:b")).toHaveLength(1);
  });

  test("needs two stores", async () => {
    const folder = project("file:a");
    expect((await waymark(folder, "convert")).err).toContain("convert needs --to");
    expect((await waymark(folder, "convert", "--to", "file:a")).err).toContain(
      "both stores are the same",
    );
    expect((await waymark(folder, "convert", "nope", "--to", "file:b")).code).toBe(3);
  });
});

describe("export and import", () => {
  test("carry a run in a file", async () => {
    const folder = project("sqlite:a.db");
    await articleRun(folder);
    const { code, out } = await waymark(folder, "export", "monday", "--out", "run.jsonl");
    expect(code).toBe(0);
    expect(out).toMatch(/^4 checkpoints in .*run\.jsonl\n$/);
    expect((await waymark(folder, "export", "monday", "--out", "run.jsonl")).code).toBe(2);
    expect((await waymark(folder, "import", "run.jsonl", "--store", "file:b")).out).toMatch(
      /^monday: 4 checkpoints in file:/,
    );
    expect(await chain(folder, "file:b")).toEqual(await chain(folder, "sqlite:a.db"));
  });

  test("carry a run through a pipe, and replace one only with --force", async () => {
    const folder = project("file:a");
    await articleRun(folder);
    const { out: input } = await waymark(folder, "export", "monday");
    const world = { cwd: folder, input };
    const taken = await waymark(world, "import", "-");
    expect(taken.code).toBe(1);
    expect(taken.err).toMatch(/run monday is already in file:.* \(--force replaces it\)/);
    expect((await waymark(world, "import", "-", "--force")).code).toBe(2);
    expect(await json(world, "import", "-", "--force", "--yes")).toEqual({
      runId: "monday",
      checkpoints: 4,
    });
    expect(
      await json({ cwd: newFolder(), input }, "import", "-", "--store", "sqlite:x.db"),
    ).toMatchObject({ runId: "monday" });
  });

  test("refuse a damaged export", async () => {
    const folder = project("file:a");
    await articleRun(folder);
    const { out } = await waymark(folder, "export", "monday");
    const lines = out.trimEnd().split("\n");
    const wrong: readonly (readonly [string, RegExp])[] = [
      ["", /is not an export of a run/],
      ["{}", /is not an export of a run/],
      ["nonsense", /is not an export of a run/],
      [out.replace('"format":1', '"format":2'), /has format 2; this waymark reads 1/],
      [lines.slice(0, -1).join("\n"), /has 3 checkpoints; 4 were exported/],
      [out.replace("cairns", "carins"), /line \d was changed since the export/],
      [[lines[0], "{", ...lines.slice(2)].join("\n"), /line 2 was changed since the export/],
    ];
    for (const [input, message] of wrong) {
      const { code, err } = await waymark(
        { cwd: folder, input },
        "import",
        "-",
        "--store",
        "file:b",
      );
      expect(err).toMatch(message);
      expect(code).toBe(1);
    }
    expect((await waymark(folder, "import", "none.jsonl")).code).toBe(3);
    expect((await waymark(folder, "export", "sunday")).code).toBe(3);
    const tty = await waymark({ cwd: folder, columns: 80 }, "export", "monday");
    expect(tty.err).toContain("an export must go to a file or a pipe (--out FILE)");
    expect((await waymark(folder, "export", "monday", "--out", "none/x")).code).toBe(2);
  });
});

describe("prune", () => {
  test("removes finished runs that are too old or too many, after confirmation", async () => {
    const folder = project();
    for (const id of ["one", "two", "three"]) await articleRun(folder, id);
    await waymark(folder, "run", "asking", "--id", "paused", "--data", "{}");
    const dry = await waymark(folder, "prune", "--max-runs", "1", "--dry-run");
    expect(dry.out).toBe("two\none\n2 runs would be removed\n");
    expect((await waymark(folder, "prune", "--max-runs", "1")).code).toBe(2);
    const world = { cwd: folder, columns: 80, input: "y\n" };
    const pruned = await waymark(world, "prune", "--max-runs", "1");
    expect(pruned.err).toMatch(/^two, one\nRemove 2 runs from file:.*\? \[y\/N\] /);
    expect(pruned.out).toContain("2 runs were removed");
    expect(await json(folder, "prune", "--max-age", "30d", "--yes")).toEqual({
      removed: [],
      dryRun: false,
    });
    expect(await json(folder, "prune", "--max-age", "0m", "--yes")).toEqual({
      removed: ["three"],
      dryRun: false,
    });
    expect(await json(folder, "list")).toMatchObject([{ runId: "paused" }]);
  });

  test("names ten of many runs it would remove", async () => {
    const folder = project();
    for (let n = 10; n < 22; n++) await articleRun(folder, `run-${n}`);
    const { err } = await waymark(
      { cwd: folder, columns: 80, input: "n\n" },
      "prune",
      "--max-runs",
      "0",
    );
    expect(err).toMatch(/^run-21, (run-\d\d, ){8}run-12 and 2 more\nRemove 12 runs from/);
  });

  test("explains the format of an age", async () => {
    const folder = project();
    expect((await waymark(folder, "prune")).err).toContain(
      "prune needs --max-age, --max-runs, or both",
    );
    const { code, err } = await waymark(folder, "prune", "--max-age", "soon");
    expect(code).toBe(2);
    expect(err).toContain('--max-age must be like 30d, 12h, 90m or 2w; got "soon"');
    for (const age of ["2w", "1.5d", "12h", "90m"]) {
      expect((await waymark(folder, "prune", "--max-age", age)).code).toBe(0);
    }
  });
});

test("an export is readable only by its owner", async () => {
  const folder = project();
  await articleRun(folder);
  await waymark(folder, "export", "monday", "--out", "run.jsonl");
  const file = join(folder, "run.jsonl");
  expect(readFileSync(file, "utf8").split("\n")[0]).toBe(
    '{"waymark":"export","format":1,"runId":"monday","checkpoints":4}',
  );
  writeFileSync(join(folder, "copy.jsonl"), readFileSync(file));
});

test.each(["file:a", "sqlite:a.db"])(
  "a run in %s with a damaged checkpoint is not copied before it is repaired",
  async (store) => {
    const folder = project(store);
    await articleRun(folder);
    await articleRun(folder, "tuesday");
    // The last checkpoint of monday: without it the run would not be complete any more.
    await damage(folder, store, "monday", 4);
    const { code, out } = await waymark(folder, "convert", "--to", "file:b");
    expect(code).toBe(1);
    expect(out).toMatch(/^monday: not copied, expected .*; waymark repair sets it aside$/m);
    expect(out).toMatch(/^tuesday: 4 checkpoints$/m);
    expect(await json(folder, "list", "--store", "file:b")).toMatchObject([{ runId: "tuesday" }]);
    const refused = await waymark(folder, "export", "monday", "--out", "run.jsonl");
    expect(refused.code).toBe(1);
    expect(refused.err).toMatch(
      /run monday is damaged: .* \(waymark repair monday sets it aside\)/,
    );
    await waymark(folder, "repair", "--yes");
    expect((await waymark(folder, "export", "monday", "--out", "run.jsonl")).code).toBe(0);
    await waymark(folder, "convert", "monday", "--to", "file:b");
    expect(await json(folder, "state", "monday", "--path", "step", "--store", "file:b")).toBe(2);
  },
);
