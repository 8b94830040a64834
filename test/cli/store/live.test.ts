import { appendFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test, vi } from "vitest";
import { isLive } from "../../../src/cli/store/live.js";
import { articleRun, json, project, slowRun, waymark } from "../harness.js";

vi.mock("../../../src/cli/store/live.js", { spy: true });

/** A run that ends at the very moment when the command looks for the process that works on it. */
async function endingRun(): Promise<string> {
  const folder = project();
  const { finish } = await slowRun(folder);
  const { isLive: look } = await vi.importActual<{ isLive: typeof isLive }>(
    "../../../src/cli/store/live.js",
  );
  vi.mocked(isLive).mockImplementationOnce(async (store, runId) => {
    await finish();
    return look(store, runId);
  });
  return folder;
}

test("watch does not report a run that ends meanwhile as inactive", async () => {
  const { code, err } = await waymark(await endingRun(), "watch", "monday");
  expect({ code, err }).toEqual({ code: 0, err: "run monday completed after 2 steps\n" });
});

test("show does not report a run that ends meanwhile as stopped", async () => {
  const shown = await json(await endingRun(), "show", "monday");
  expect(shown).toMatchObject({ status: "completed", live: false });
});

test("list does not report a run that ends meanwhile as stopped", async () => {
  const { out } = await waymark(await endingRun(), "list");
  expect(out).toMatch(/monday +slow +completed/);
});

test("watch waits for the last event of a run while its process lives", async () => {
  const folder = project();
  await articleRun(folder);
  const file = join(folder, ".waymark/monday/events.jsonl");
  const line = (event: string): string =>
    `${JSON.stringify({ ts: "2026-01-01T00:00:00.000Z", event, run: "monday", step_id: "", parent_id: "", node: "" })}\n`;
  writeFileSync(file, line("graph.start"));
  let looks = 0;
  vi.mocked(isLive).mockImplementation(async () => {
    if (++looks === 3) appendFileSync(file, line("graph.complete"));
    return true;
  });
  const { code, out } = await waymark(folder, "watch", "monday");
  expect(code).toBe(0);
  expect(out).toContain("graph.complete");
});
