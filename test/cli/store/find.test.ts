import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { END, type Metadata, State, StateGraph } from "waymark";
import { articleRun, json, phasedRun, project, touch, waymark } from "../harness.js";

interface Entry {
  readonly checkpointId: string;
  readonly step: number;
}

const historyOf = async (folder: string, run = "monday") =>
  (await json(folder, "history", run)) as Entry[];

describe.each(["file:.waymark", "sqlite:.waymark/runs.db"])("in %s", (store) => {
  test("a checkpoint's id alone names the run and the checkpoint", async () => {
    const folder = project(store);
    await articleRun(folder);
    const history = await historyOf(folder);
    const id = history.find(({ step }) => step === 1)?.checkpointId ?? "";
    expect(await json(folder, "state", id, "--path", "step")).toBe(1);
    expect(await json(folder, "state", id, "--at", "2", "--path", "step")).toBe(2);
    const shown = { runId: "monday", status: "in_progress", lastStep: "draft", completedSteps: 1 };
    expect(await json(folder, "show", id)).toMatchObject(shown);
    expect(await json(folder, "show", "monday", "--at", "draft")).toMatchObject(shown);
    expect((await waymark(folder, "show", id)).out).toContain(`  waymark replay ${id}\n`);
    expect(await historyOf(folder, id)).toEqual(history);
    expect((await waymark(folder, "validate", id)).code).toBe(0);
    expect((await waymark(folder, "watch", id)).code).toBe(0);
    expect(await json(folder, "fork", id)).toMatchObject({ step: 1 });
    const newer = history.find(({ step }) => step === 2)?.checkpointId ?? "";
    expect((await waymark(folder, "diff", id, newer)).out).toContain('+ data.parts.1  "review"');
    // A checkpoint by its id alone is compared with the newest of its run, as one by its step is.
    const toNewest = (await waymark(folder, "diff", "monday", "1")).out;
    expect(toNewest).toContain('+ data.parts.2  "publish"');
    expect((await waymark(folder, "diff", id)).out).toBe(toNewest);
    expect((await waymark(folder, "diff", "monday", id)).out).toBe(toNewest);
    expect((await waymark(folder, "diff", newer, "draft")).out).toContain("- data.parts.1");
    const drawn = await waymark(folder, "graph", "--run", id, "--draw");
    expect(drawn.out).toContain("▶ review");
    const replayed = await waymark(folder, "replay", id, "--json");
    expect(JSON.parse(replayed.out)).toMatchObject({ status: "completed", step: 3 });
    expect(await json(folder, "rollback", newer, "--yes")).toMatchObject({ step: 2 });
    expect(await json(folder, "resume", id)).toMatchObject({ status: "completed", step: 3 });
  });

  test("a checkpoint is named by a step, an id, a node or a phase", async () => {
    const folder = project(store);
    await phasedRun(folder);
    const stepAt = (at: string) => json(folder, "state", "monday", "--at", at, "--path", "step");
    expect(await stepAt("2")).toBe(2);
    expect(await stepAt("draft")).toBe(2);
    expect(await stepAt("plan")).toBe(1);
    // The newest of the phase.
    expect(await stepAt("write")).toBe(2);
    expect((await waymark(folder, "diff", "monday", "write", "check")).out).toContain(
      '+ data.parts.2  "review"',
    );
    expect(await json(folder, "fork", "monday", "--at", "write")).toMatchObject({ step: 2 });
    const replayed = await waymark(folder, "replay", "monday", "--at", "write");
    expect(replayed.err).toContain("a fork of monday at step 2");
    touch(folder, "gate");
    const resumed = await json(folder, "resume", "monday", "--at", "plan");
    expect(resumed).toMatchObject({ status: "completed", data: { parts: { length: 4 } } });
    expect(await json(folder, "rollback", "monday", "--at", "check", "--yes")).toMatchObject({
      step: 3,
    });
  });
});

test("a run is named by either end of its id, including the end shown by list", async () => {
  const folder = project();
  await articleRun(folder, "morning-of-a-very-long-monday");
  await articleRun(folder, "evening-of-a-very-long-tuesday");
  const found = async (given: string) => (await waymark(folder, "state", given)).code;
  expect(await found("morning")).toBe(0);
  expect(await found("monday")).toBe(0);
  expect(await found("mor…day")).toBe(0);
  expect(await found("…monday")).toBe(0);
  expect(await found("day")).toBe(3);
  expect(await found("…day")).toBe(3);
  expect(await found("long")).toBe(3);
  const { out } = await waymark({ cwd: folder, columns: 60 }, "list", "--no-color");
  const cut = out.split("\n")[1]?.split(" ")[0] ?? "";
  expect(cut).toMatch(/^evening.*….*tuesday$/);
  expect(await found(cut)).toBe(0);
});

test("an unknown run is reported as likely completed and not preserved", async () => {
  const folder = project();
  const { code, err } = await waymark(folder, "show", "sunday");
  expect(code).toBe(3);
  expect(err).toMatch(
    /there is no run or checkpoint "sunday" in file:.* \(waymark list shows the runs; those that complete are removed unless checkpoint\.preserve is true\)/,
  );
});

test("history shows the commit of each checkpoint if there are several", async () => {
  const folder = project();
  const store = `file:${join(folder, ".waymark")}`;
  const graphOf = (metadata: Metadata, isBroken = false) =>
    new StateGraph<{ n: number }>({ metadata, checkpoint: { store, interval: 1, preserve: true } })
      .addNode("one", () => {
        if (isBroken) throw new Error("no");
        return { n: 1 };
      })
      .addEdge("one", END)
      .setEntryPoint("one");
  const first = { commit: "0123456789abcdef", dirty: true };
  const failed = graphOf(first, true).execute(State.create({ n: 0 }, { runId: "monday" }));
  await expect(failed).rejects.toThrow("no");
  expect((await waymark(folder, "history", "monday")).out).not.toContain("commit");
  await graphOf({ commit: "fedcba9876543210", dirty: false }).resume("monday");
  const [head, newest, before] = (await waymark(folder, "history", "monday")).out.split("\n");
  expect(head).toMatch(/ commit +checkpoint$/);
  expect(newest).toMatch(/ completed .* fedcba9876 /);
  expect(before).toMatch(/ failed .* 0123456789 dirty /);
});

test("log refuses an ambiguous id", async () => {
  const folder = project();
  await articleRun(folder, "monday-1");
  await articleRun(folder, "monday-2");
  const { code, err } = await waymark(folder, "log", "monday");
  expect(code).toBe(2);
  expect(err).toContain('"monday" fits several runs: monday-1, monday-2');
});
