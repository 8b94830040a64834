import { existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { articleRun, json, phasedRun, project, slowRun, waymark } from "../harness.js";

/** Leaves a log in two parts and a report for a run, as observers do. */
function observed(folder: string, run = "monday"): string {
  const place = join(folder, ".waymark", run);
  mkdirSync(place, { recursive: true });
  for (const name of ["events.jsonl", "events.0001.jsonl", "progress.md"]) {
    writeFileSync(join(place, name), "");
  }
  return place;
}

describe.each(["file:.waymark", "sqlite:.waymark/runs.db"])("in %s", (store) => {
  test("delete removes runs with their logs and reports, after confirmation", async () => {
    const folder = project(store);
    for (const id of ["monday", "tuesday", "friday"]) await articleRun(folder, id);
    const place = observed(folder);
    expect((await waymark(folder, "delete", "monday")).code).toBe(2);
    const asked = await waymark({ cwd: folder, columns: 90, input: "n\n" }, "delete", "monday");
    expect(asked.code).toBe(2);
    expect(asked.err).toMatch(/^monday\nRemove 1 run from .*\? \[y\/N\] /);
    expect(existsSync(join(place, "progress.md"))).toBe(true);
    const { code, out } = await waymark(folder, "delete", "mond", "friday", "--yes");
    expect({ code, out }).toEqual({ code: 0, out: "monday\nfriday\n2 runs removed\n" });
    expect(existsSync(place)).toBe(false);
    expect(await json(folder, "list")).toMatchObject([{ runId: "tuesday" }]);
    expect((await waymark(folder, "delete", "sunday", "--yes")).code).toBe(3);
    expect(await json(folder, "delete", "tuesday", "--yes")).toEqual({ removed: ["tuesday"] });
  });

  test("delete leaves an active run alone", async () => {
    const folder = project(store);
    const run = await slowRun(folder);
    const { code, err } = await waymark(folder, "delete", "monday", "--yes");
    expect(code).toBe(1);
    expect(err).toContain(`process ${process.pid}`);
    expect((await run.finish()).code).toBe(0);
  });

  test("prune removes logs and reports too, and abandoned runs only on request", async () => {
    const folder = project(store);
    await articleRun(folder);
    await articleRun(folder, "left");
    await waymark(folder, "rollback", "left", "--at", "1", "--yes");
    const [place, left] = [observed(folder), observed(folder, "left")];
    expect(await json(folder, "prune", "--max-age", "0m", "--yes")).toMatchObject({
      removed: ["monday"],
    });
    expect(existsSync(place)).toBe(false);
    expect(readdirSync(left)).toContain("progress.md");
    const abandoned = ["prune", "--max-age", "0m", "--include-abandoned"];
    expect(await json(folder, ...abandoned, "--dry-run")).toMatchObject({ removed: ["left"] });
    expect(existsSync(left)).toBe(true);
    expect(await json(folder, ...abandoned, "--yes")).toMatchObject({ removed: ["left"] });
    expect(existsSync(left)).toBe(false);
  });

  test("stats counts runs, checkpoints and bytes by graph", async () => {
    const folder = project(store);
    expect(await json(folder, "stats")).toMatchObject({ runs: 0, checkpoints: 0, graphs: [] });
    await articleRun(folder);
    await articleRun(folder, "tuesday");
    await phasedRun(folder, "friday");
    const found = (await json(folder, "stats")) as { bytes: number; graphs: { bytes: number }[] };
    expect(found).toMatchObject({
      runs: 3,
      status: { completed: 2, failed: 1 },
      graphs: expect.arrayContaining([
        expect.objectContaining({ graph: "article", runs: 2, checkpoints: 8 }),
        expect.objectContaining({ graph: "phased", runs: 1, status: { failed: 1 } }),
      ]),
    });
    expect(found.bytes).toBe(found.graphs.reduce((sum, { bytes }) => sum + bytes, 0));
    expect(found.bytes).toBeGreaterThan(1000);
    const { out } = await waymark(folder, "stats");
    expect(out).toMatch(
      /^graph +runs +pending +in_progress +paused +completed +failed +checkpoints +size\n/,
    );
    expect(out).toMatch(/\nall +3 +2 +1 +\d+ +[\d.]+ KB\n$/);
  });

  test("the command keeps as many checkpoints as a graph does", async () => {
    const folder = project(store);
    await articleRun(folder);
    for (let times = 0; times < 8; times++) {
      await waymark(folder, "rollback", "monday", "--at", String(times % 4), "--yes");
    }
    expect((await json(folder, "history", "monday")) as object[]).toHaveLength(4);
  });
});
