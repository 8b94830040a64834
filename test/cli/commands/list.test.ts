import { randomBytes } from "node:crypto";
import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test, vi } from "vitest";
import { resetWarnings } from "../../../src/warnings.js";
import { articleRun, json, phasedRun, project, spoil, waymark } from "../harness.js";

describe.each(["file:.waymark", "sqlite:.waymark/runs.db"])("list of runs in %s", (store) => {
  test("has the requested columns, including metadata keys", async () => {
    const folder = project(store);
    await articleRun(folder);
    await phasedRun(folder, "tuesday");
    const names = "run,phase,nextNode,startedAt,savedAt,elapsed,customer,error";
    const { code, out } = await waymark(folder, "list", "--columns", names);
    expect(code).toBe(0);
    const [head, first, second] = out.split("\n");
    expect(head).toMatch(/^run +phase +next +started +updated +elapsed +customer +error$/);
    expect(first).toMatch(/^tuesday +check +publish +\S.* +[\d.]+ m?s +acme +no gate$/);
    expect(second).toMatch(/^monday +\S.* +[\d.]+ m?s$/);
    // A graph without cycles has a number of steps to come to.
    const named = await waymark(folder, "list", "--columns", "run, steps, updated");
    expect(named.out).toMatch(/^run +steps +updated\ntuesday +3\/4 .*\nmonday +3 /);
    expect((await json(folder, "list")) as object[]).toMatchObject([
      {
        runId: "tuesday",
        phase: "check",
        maxSteps: 4,
        nextNode: "publish",
        metadata: { customer: "acme", priority: 2 },
        elapsedMs: expect.any(Number),
        error: { name: "RangeError", message: "no gate", node: "publish" },
      },
      { runId: "monday" },
    ]);
  });

  test("shows warnings of large checkpoints, as run and show do", async () => {
    const folder = project(store);
    const file = join(folder, "large.json");
    writeFileSync(file, JSON.stringify({ topic: randomBytes(300_000).toString("hex"), parts: [] }));
    const warning = /the checkpoint has \d+ bytes, more than warnBytes \(512000\)/;
    const { err } = await waymark(folder, "run", "asking", "--id", "large", "--data", `@${file}`);
    expect(err.match(new RegExp(warning, "g"))).toHaveLength(1);
    await articleRun(folder, "small");
    const listed = await waymark(folder, "list");
    expect(listed.err).toMatch(new RegExp(`^run large: ${warning.source}\n$`));
    expect(await json(folder, "list")).toMatchObject([
      { runId: "small", warnings: [] },
      { runId: "large", warnings: [expect.stringMatching(warning)] },
    ]);
    expect((await waymark(folder, "show", "large")).err).toMatch(warning);
    expect(await json(folder, "show", "large")).toMatchObject({
      warnings: [expect.stringMatching(warning)],
    });
  });

  test("is filtered by metadata", async () => {
    const folder = project(store);
    await articleRun(folder);
    await phasedRun(folder, "tuesday");
    const found = async (...where: string[]) => {
      const options = where.flatMap((one) => ["--where", one]);
      return ((await json(folder, "list", ...options)) as { runId: string }[]).map(
        ({ runId }) => runId,
      );
    };
    expect(await found("customer=acme")).toEqual(["tuesday"]);
    expect(await found("customer=acme", "priority=2")).toEqual(["tuesday"]);
    expect(await found("customer=acme", "priority=3")).toEqual([]);
    expect(await found("priority=true")).toEqual([]);
    expect((await waymark(folder, "list", "--where", "customer=none")).out).toMatch(
      /^no such runs/,
    );
  });
});

test("invalid columns and conditions are refused", async () => {
  const folder = project();
  await phasedRun(folder);
  const column = await waymark(folder, "list", "--columns", "run,custommer");
  expect(column.code).toBe(2);
  expect(column.err).toMatch(
    /--columns must be some of run, graph, .*, customer, priority; got "custommer"/,
  );
  const where = await waymark(folder, "list", "--where", "customer");
  expect(where).toMatchObject({ code: 2 });
  expect(where.err).toContain('--where must be key=value; got "customer"');
  expect((await waymark(folder, "list", "--where", "a=[1]")).code).toBe(2);
});

test("a corrupt checkpoint that was skipped is reported once", async () => {
  const unasked = vi.spyOn(process.stderr, "write");
  resetWarnings();
  const folder = project();
  await articleRun(folder);
  spoil(join(folder, ".waymark/monday/checkpoint_0004.json"));
  for (const args of [["list"], ["show", "monday"]]) {
    const { code, err } = await waymark(folder, ...args);
    expect(code).toBe(0);
    expect(err.match(/a corrupt checkpoint was skipped; the run is at sequence/g)).toHaveLength(1);
  }
  expect(unasked).not.toHaveBeenCalled();
  unasked.mockRestore();
});

test("an unreadable run is listed as such, with the reason", async () => {
  const folder = project();
  await articleRun(folder);
  await articleRun(folder, "tuesday");
  const run = join(folder, ".waymark/monday");
  for (const name of readdirSync(run))
    if (name.endsWith(".json")) writeFileSync(join(run, name), "");
  const { code, out, err } = await waymark(folder, "list");
  expect(code).toBe(0);
  expect(out).toMatch(/^tuesday +article +completed .*\nmonday +unreadable +0 +\?$/m);
  expect(err).toContain("1 run can't be read: waymark validate");
  expect(await json(folder, "list")).toMatchObject([
    { runId: "tuesday", status: "completed" },
    { runId: "monday", status: "unreadable", costUsd: null },
  ]);
  const filtered = await waymark(folder, "list", "--graph", "article");
  expect(filtered.out).not.toContain("monday");
  expect(filtered.err).toContain("1 run can't be read");
});

test("truncated ids with a common prefix stay unique and can be pasted", async () => {
  const folder = project();
  const ids = [1, 2].map((end) => `01a1eef7-940c-73f1-997d-f02de4fb9c2${end}`);
  for (const id of ids) await phasedRun(folder, id);
  const world = { cwd: folder, columns: 80 };
  const { out } = await waymark(world, "list");
  const shown = out
    .split("\n")
    .slice(1, 3)
    .map((line) => line.split(" ")[0] ?? "");
  expect(shown).toEqual([expect.stringMatching(/^01a1.*…\S+2$/), expect.stringMatching(/…\S+1$/)]);
  expect(await json(folder, "show", shown[0] ?? "")).toMatchObject({ runId: ids[1] });
  const history = (await waymark(world, "history", ids[0] ?? "", "--no-color")).out.split("\n");
  const checkpoint = history[2]?.split(" ").at(-1) ?? "";
  expect(checkpoint).toMatch(/…\S+\.3$/);
  expect((await waymark(folder, "state", ids[0] ?? "", "--at", checkpoint)).code).toBe(0);
});
