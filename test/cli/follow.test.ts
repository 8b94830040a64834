import { appendFileSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { articleRun, json, project, slowRun, waymark } from "./harness.js";

const start = (more: object = {}) => JSON.stringify({ topic: "cairns", parts: [], ...more });

const line = (event: string, more: object = {}): string =>
  `${JSON.stringify({ ts: "2026-01-01T00:00:00.000Z", event, run: "monday", step_id: "", parent_id: "", node: "draft", source: "article", ...more })}\n`;

function logged(folder: string, ...lines: string[]): string {
  mkdirSync(join(folder, ".waymark/monday"), { recursive: true });
  const file = join(folder, ".waymark/monday/events.jsonl");
  writeFileSync(file, lines.join(""));
  return file;
}

test.each(["file:.waymark", "sqlite:.waymark/runs.db"])(
  "watch follows a run in %s until it ends",
  async (store) => {
    const folder = project(store);
    const run = await slowRun(folder);
    const watched = waymark(folder, "watch", "monday", "--every", "10");
    const watchedJson = waymark(folder, "watch", "monday", "--every", "10", "--json");
    expect((await run.finish()).code).toBe(0);
    const { code, out, err } = await watched;
    expect({ code, err, out }).toEqual({ code: 0, err: expect.anything(), out: expect.anything() });
    if (code !== 0) throw new Error(err);
    expect(out).toMatch(/checkpoint +draft +step 1 +in_progress +interval\n/);
    expect(out).toMatch(/checkpoint +review +step 2 +completed +complete\n/);
    expect(err).toBe("run monday completed after 2 steps\n");
    const lines = (await watchedJson).out
      .trim()
      .split("\n")
      .map((text) => JSON.parse(text));
    expect(lines.at(-1)).toMatchObject({ status: "completed", step: 2 });
  },
);

test("watch reports runs that failed, wait or are missing", async () => {
  const folder = project();
  await waymark(folder, "run", "flaky", "--id", "failed", "--data", start());
  const failed = await waymark(folder, "watch", "failed");
  expect(failed.code).toBe(1);
  expect(failed.err).toBe("run failed failed after 1 step: offline\\x1b[2J\n");
  await waymark(folder, "run", "asking", "--id", "waits", "--data", start());
  const paused = await waymark(folder, "watch", "waits");
  expect(paused.code).toBe(0);
  expect(paused.err).toBe("run waits is paused after 0 steps: needs a look\n");
  expect((await waymark(folder, "watch", "never")).code).toBe(3);
  expect((await waymark(folder, "watch", "waits", "--every", "1")).code).toBe(2);
});

test.each([
  {
    last: "node.complete",
    end: "has no checkpoints left: it completed with checkpoint.preserve: false, or was removed",
  },
  { last: "graph.complete", end: "completed" },
])("watch ends when the checkpoints of a run disappear after $last", async ({ last, end }) => {
  const folder = project();
  await articleRun(folder);
  await waymark(folder, "rollback", "monday", "--at", "1", "--yes");
  const file = logged(folder, line("graph.start"), line("node.start"));
  /** Watches; resolves once it has seen what is there. */
  const watch = async (...args: string[]) => {
    let begin = (): void => {};
    const begun = new Promise<void>((resolve) => {
      begin = resolve;
    });
    const onOutput = (text: string): void => {
      if (text.includes("node.start")) begin();
    };
    const ended = waymark({ cwd: folder, onOutput }, "watch", "monday", "--every", "10", ...args);
    await begun;
    return { ended };
  };
  const [text, lines] = [await watch(), await watch("--json")];
  appendFileSync(file, line(last));
  const { FileStore } = await import("waymark/stores/file");
  await new FileStore({ root: join(folder, ".waymark") }).delete("monday");
  const { code, out, err } = await text.ended;
  expect({ code, err }).toMatchObject({ code: 0 });
  expect(out).toMatch(/node\.start +draft/);
  expect(err).toBe(
    `no process is working on run monday; continue it: waymark resume monday\nrun monday ${end}\n`,
  );
  expect((await lines.ended).out.trim().split("\n").length).toBeGreaterThan(1);
});

test("watch prints a run's last event, which is written after its last checkpoint", async () => {
  const folder = project();
  await articleRun(folder);
  const file = logged(folder, line("graph.start"));
  // The process of the run is this far behind.
  const onStart = (): void => {
    setTimeout(() => appendFileSync(file, line("graph.complete")), 30);
  };
  const { code, out, err } = await waymark({ cwd: folder, onStart }, "watch", "monday");
  expect(code).toBe(0);
  expect(out).toMatch(/graph\.complete/);
  expect(err).toBe("run monday completed after 3 steps\n");
});

test("Ctrl-C ends a watch without affecting the run", async () => {
  const folder = project();
  await articleRun(folder);
  await waymark(folder, "rollback", "monday", "--at", "1", "--yes");
  const onStart = (interrupt: () => void): void => {
    setImmediate(interrupt);
  };
  const { code, err } = await waymark({ cwd: folder, onStart }, "watch", "monday");
  expect(code).toBe(130);
  expect(err).toContain("run monday continues; follow it: waymark watch monday");
  expect((await waymark({ cwd: folder, onStart }, "log", "monday", "--follow")).code).toBe(130);
  expect((await waymark({ cwd: folder, onStart: (stop) => stop() }, "recover")).code).toBe(130);
});

test("log prints events, all or some", async () => {
  const folder = project("file:.waymark", 'redact: ["*.token"]');
  logged(
    folder,
    line("graph.start", { node: "", token: "s3cret", usage: { a: 1 } }),
    line("node.start", { step: 0, note: "two words" }),
    line("graph.complete", { node: "" }),
  );
  const { code, out } = await waymark(folder, "log", "monday");
  expect(code).toBe(0);
  expect(out).toBe(
    '2026-01-01T00:00:00.000Z  graph.start          token=[redacted] usage={"a":1}\n' +
      '2026-01-01T00:00:00.000Z  node.start           draft  step=0 note="two words"\n' +
      "2026-01-01T00:00:00.000Z  graph.complete\n",
  );
  const some = await waymark(folder, "log", "monday", "--event", "node.", "--json");
  expect(JSON.parse(some.out)).toMatchObject({ event: "node.start", note: "two words" });
  expect((await waymark(folder, "log", "monday", "--follow")).code).toBe(0);
  const file = join(".waymark", "monday", "events.jsonl");
  expect((await waymark(folder, "log", "monday", "--log", file)).out).toBe(out);
});

test("log names the places it searched", async () => {
  const folder = project();
  await articleRun(folder);
  const { code, err } = await waymark(folder, "log", "monday");
  expect(code).toBe(3);
  expect(err).toMatch(/there is no log of run "monday" in .*\.waymark \(--log PLACE\)/);
  const none = await waymark(folder, "log", "monday", "--log", "none.jsonl");
  expect(none.err).toMatch(/there is no log of run "monday" in .*none\.jsonl/);
});

test("repeated work and the number of resumes are shown from the log", async () => {
  const folder = project();
  logged(
    folder,
    line("graph.start", { node: "", entryPoint: "draft", resumed: false }),
    line("node.start", { step: 0 }),
    line("node.complete", { step: 1, durationMs: 61_000 }),
    line("graph.start", { node: "", entryPoint: "draft", resumed: true }),
    line("checkpoint.resume", { step: 0, resumeNode: "draft" }),
    line("node.start", { step: 0 }),
    line("node.complete", { step: 1, durationMs: 1500, usage: { inputTokens: 1200 } }),
  );
  const { out } = await waymark(folder, "show", "monday");
  expect(out).toMatch(/resumes +1\n/);
  expect(out).toMatch(/repeated +1 visit lost and redone\n/);
  expect(out).toMatch(
    /# +node +completed +worked +tokens\n1 +draft +\S+ +1\.5 s +1,200 +not saved, /,
  );
});

test("the log of the config is used", async () => {
  const folder = project("sqlite:runs.db", 'log: "logs"');
  mkdirSync(join(folder, "logs/monday"), { recursive: true });
  writeFileSync(
    join(folder, "logs/monday/events.jsonl"),
    line("graph.start") + line("graph.pause"),
  );
  expect((await waymark(folder, "log", "monday")).code).toBe(0);
  expect(await json(folder, "show", "monday")).toMatchObject({ status: "paused" });
});
