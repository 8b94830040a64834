import { describe, expect, test } from "vitest";
import { articleRun, json, project, slowRun, waymark } from "./harness.js";

describe.each(["file:.waymark", "sqlite:.waymark/runs.db"])("beside a live run in %s", (store) => {
  test("the command reads without disturbing it", async () => {
    const folder = project(store);
    await articleRun(folder, "tuesday");
    const run = await slowRun(folder);
    const before = await json(folder, "history", "monday");
    for (const args of [
      ["show", "monday"],
      ["state", "monday"],
      ["diff", "monday", "0", "1"],
      ["validate"],
      ["graph", "--run", "monday", "--draw"],
      ["stats"],
      ["doctor"],
      ["export", "monday"],
      ["convert", "tuesday", "--to", "file:copy"],
      ["prune", "--max-age", "0m", "--include-abandoned", "--dry-run"],
    ]) {
      expect({ args, ...(await waymark(folder, ...args)) }).toMatchObject({ args, code: 0 });
    }
    expect((await waymark(folder, "list")).out).toMatch(/monday +slow +in_progress, live/);
    expect((await waymark(folder, "show", "monday")).out).toMatch(/follow +waymark watch monday\n/);
    expect(await json(folder, "history", "monday")).toEqual(before);
    const ended = await run.finish();
    expect({ code: ended.code, err: ended.err }).toMatchObject({ code: 0 });
    expect(await json(folder, "state", "monday", "--path", "data.parts")).toEqual([
      "draft",
      "review",
    ]);
  });

  test("the command changes other runs, and refuses this one", async () => {
    const folder = project(store);
    await articleRun(folder, "tuesday");
    const run = await slowRun(folder);
    for (const args of [
      ["fork", "monday"],
      ["rollback", "tuesday", "--at", "1", "--yes"],
      ["resume", "tuesday"],
      ["delete", "tuesday", "--yes"],
    ]) {
      expect({ args, ...(await waymark(folder, ...args)) }).toMatchObject({ args, code: 0 });
    }
    for (const args of [
      ["resume", "monday"],
      ["run", "slow", "--id", "monday"],
      ["run", "slow", "--id", "monday", "--force", "--yes"],
      ["rollback", "monday", "--at", "0", "--yes"],
      ["delete", "monday", "--yes"],
    ]) {
      const { code, err } = await waymark(folder, ...args);
      expect({ args, code }).toEqual({ args, code: 1 });
      expect(err).toMatch(/process \d+/);
      expect(err).toContain("waymark watch monday follows it");
    }
    const pruned = ["prune", "--max-age", "0m", "--include-abandoned", "--yes"];
    expect((await json(folder, ...pruned)) as object).not.toMatchObject({
      removed: expect.arrayContaining(["monday"]),
    });
    expect((await run.finish()).code).toBe(0);
  });
});
