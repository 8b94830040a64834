import { expect, test } from "vitest";
import { articleRun, json, phasedRun, project, touch, waymark } from "../harness.js";

test.each(["file:.waymark", "sqlite:.waymark/runs.db"])(
  "a run in %s is shown from its checkpoints alone",
  async (store) => {
    const folder = project(store);
    await phasedRun(folder);
    const { out } = await waymark(folder, "show", "monday", "--no-config", "--store", store);
    expect(out).toMatch(
      new RegExp(
        [
          "^run +monday",
          "graph +phased",
          "metadata +customer=acme, priority=2",
          "status +failed",
          "started +\\S+, .*",
          "updated +\\S+, .*",
          "elapsed +[\\d.]+ m?s",
          "worked +[\\d.]+ m?s",
          "steps +3/4",
          "phase +check",
          "last +review",
          "next +publish",
          "error +RangeError in publish: no gate",
        ].join("\n"),
      ),
    );
    expect(out).toMatch(/\n# +node +phase +completed +worked\n1 +plan +write +\S+Z +[\d.]+ m?s\n/);
    expect(out).not.toContain("    at ");
    const verbose = await waymark(folder, "show", "monday", "--verbose");
    expect(verbose.out).toMatch(/\nRangeError: no gate\n +at .*graphs\.ts/);
    expect(await json(folder, "show", "monday")).toMatchObject({
      maxSteps: 4,
      completedSteps: 3,
      crashes: 0,
      phase: "check",
      totals: { durationMs: expect.any(Number) },
      steps: [{ node: "plan", phase: "write", durationMs: expect.any(Number) }, {}, {}],
    });
  },
);

test("a fork and a rollback show the number of steps, too", async () => {
  const folder = project();
  await phasedRun(folder);
  expect((await waymark(folder, "fork", "monday", "--at", "2")).out).toMatch(/\nsteps +2\/4\n/);
  const back = await waymark(folder, "rollback", "monday", "--at", "1", "--yes");
  expect(back.out).toMatch(/\nsteps +1\/4\n/);
});

test("a graph with a cycle shows no total of steps", async () => {
  const folder = project();
  await articleRun(folder);
  const { out } = await waymark(folder, "show", "monday");
  expect(out).toMatch(/\nsteps +3\n/);
});

test("stacks contain nothing the config redacts", async () => {
  const folder = project("file:.waymark", 'redact: ["error.message"]');
  await phasedRun(folder);
  const { out } = await waymark(folder, "show", "monday", "--verbose");
  expect(out).toContain("RangeError in publish: [redacted]");
  expect(out).not.toContain("no gate");
});

test("a resume prints where the run continues", async () => {
  const folder = project();
  await phasedRun(folder);
  touch(folder, "gate");
  const { code, err, out } = await waymark(folder, "resume", "monday");
  expect(out).toMatch(/^run +monday\nstatus +completed\nsteps +4\/4\n/);
  expect({ code, err }).toEqual({
    code: 0,
    err: "run           monday\ngraph         phased\nlast node     review\ncontinues at  publish\n",
  });
  // There is nothing left to do.
  expect((await waymark(folder, "resume", "monday")).err).toBe("");
});
