import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { articleRun, json, project, waymark } from "./harness.js";

const start = JSON.stringify({ topic: "cairns", parts: [], token: "s3cret" });

/** A project whose config redacts, with a run that completed, one that failed and one that waits. */
async function redacting(...patterns: string[]): Promise<string> {
  const folder = project("file:.waymark", `redact: ${JSON.stringify(patterns)}`);
  await articleRun(folder);
  await waymark(folder, "run", "flaky", "--id", "failed", "--data", start);
  await waymark(folder, "run", "asking", "--id", "waits", "--data", start);
  return folder;
}

/** Fails when one of the commands prints this, as text or as JSON. */
async function expectNone(folder: string, secret: string, commands: readonly string[][]) {
  for (const args of commands) {
    for (const format of [[], ["--json"]]) {
      const { out, err } = await waymark(folder, ...args, ...format);
      expect({ args, printed: out + err }).toEqual({
        args,
        printed: expect.not.stringContaining(secret),
      });
      expect(out + err).not.toBe("");
    }
  }
}

const looks = ["monday", "failed", "waits"].flatMap((run) => [
  ["show", run],
  ["state", run],
  ["history", run],
  ["watch", run],
]);

describe("redacted data is not printed", () => {
  test.each([
    "/s3c[a-z]+/",
    // As a JSON config has it.
    '"/S3C...+/i"',
  ])("where the expression %s matches", async (expression) => {
    const folder = project("file:.waymark", `redact: [${expression}]`);
    await waymark(folder, "run", "flaky", "--id", "failed", "--data", start);
    await expectNone(folder, "s3cret", [
      ["show", "failed"],
      ["state", "failed"],
    ]);
  });

  test("in the data", async () => {
    const folder = await redacting("*.token");
    await expectNone(folder, "s3cret", [
      ...looks,
      ["state", "monday", "--path", "data"],
      ["diff", "monday", "1", "2", "--all"],
      ["diff", "monday", "failed"],
      ["resume", "monday"],
      ["resume", "failed"],
      ["resume", "failed", "--debug"],
      ["replay", "monday", "--at", "1"],
      ["recover"],
    ]);
    expect(await json(folder, "state", "monday", "--path", "data.token")).toBe("[redacted]");
  });

  test("in errors, questions and decisions", async () => {
    const folder = await redacting("error.message", "pauses.*.ask", "ledger.decisions.*.rationale");
    const commands = [...looks, ["resume", "failed"], ["resume", "failed", "--debug"], ["recover"]];
    await expectNone(folder, "offline", commands);
    await expectNone(folder, "asked for", looks);
    await expectNone(folder, "cairns", [["show", "waits"]]);
    const again = await waymark(folder, "resume", "failed");
    expect(again.err).toContain('run failed: node "review" failed: [redacted] (try again:');
    expect((await waymark(folder, "show", "waits")).out).toMatch(
      /waits for +review, needs a look: "\[redacted\]"/,
    );
    const paused = ["run", "asking", "--id", "another", "--data", start];
    expect((await waymark(folder, ...paused)).out).toMatch(/waits for +review, .*"\[redacted\]"/);
  });

  test("in a log", async () => {
    const folder = project(
      "file:.waymark",
      'redact: ["error.message", "pauses.*.reason", "ledger.decisions.*.rationale", "*.token"]',
    );
    mkdirSync(join(folder, ".waymark/gone"), { recursive: true });
    const line = (event: string, more: object) =>
      JSON.stringify({
        ts: "2026-01-01T00:00:00.000Z",
        event,
        run: "gone",
        step_id: "",
        parent_id: "",
        node: "draft",
        source: "article",
        ...more,
      });
    const lines = [
      line("graph.start", { entryPoint: "draft", step: 0, resumed: false, token: "s3cret" }),
      line("node.start", { step: 0 }),
      line("decision", { step: 0, description: "kept", rationale: "s3cret" }),
      line("checkpoint.save", { reason: "interval", step: 0, sequence: 1, checkpointId: "c" }),
      line("node.retry", { error: "s3cret", attempt: 1, step: 0, delayMs: 1 }),
      line("node.complete", { step: 1, durationMs: 5 }),
      line("graph.pause", { reason: "s3cret", step: 1 }),
      line("graph.fail", { error: "s3cret", code: "NODE_FAILED", step: 1 }),
    ];
    writeFileSync(join(folder, ".waymark/gone/events.jsonl"), `${lines.join("\n")}\n`);
    await expectNone(folder, "s3cret", [
      ["log", "gone"],
      ["log", "gone", "--follow"],
      ["show", "gone"],
      ["show", "gone", "--markdown"],
    ]);
    const { out } = await waymark(folder, "log", "gone");
    expect(out).toContain("description=kept rationale=[redacted]");
    expect(out).toContain("checkpoint.save      draft  reason=interval");
    expect(out).toMatch(/graph\.pause +draft +reason=\[redacted\]/);
  });

  test("in an export, on request", async () => {
    const folder = await redacting("*.token");
    expect((await waymark(folder, "export", "monday")).out).toContain("s3cret");
    const { code, out } = await waymark(folder, "export", "monday", "--redact");
    expect(code).toBe(0);
    expect(out).not.toContain("s3cret");
    const world = { cwd: folder, input: out };
    expect((await waymark(world, "import", "-", "--store", "file:other")).code).toBe(0);
    const other = ["--store", "file:other"];
    expect((await waymark(folder, "validate", ...other)).code).toBe(0);
    expect(await json(folder, "state", "monday", "--path", "data.topic", ...other)).toBe("cairns");
    const none = await waymark(project(), "export", "monday", "--redact");
    expect(none.code).toBe(3);
    const plain = project();
    await articleRun(plain);
    expect((await waymark(plain, "export", "monday", "--redact")).err).toContain(
      'the config redacts nothing (as in redact: ["*.token"])',
    );
  });
});
