import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test, vi } from "vitest";
import { eventLog, readEventLog } from "../../../src/observers/event-log.js";
import { event } from "../events.js";

const links = vi.hoisted(() => ({ code: "" }));
vi.mock("node:fs", async (original) => ({
  ...(await original<typeof import("node:fs")>()),
  linkSync: () => {
    throw Object.assign(new Error("no link"), { code: links.code });
  },
}));

const folder = mkdtempSync(join(tmpdir(), "waymark-rotation-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test("a log that is rotated while it is read has no gap and no duplicate", async () => {
  links.code = "EPERM";
  const path = join(folder, "read", "log.jsonl");
  const log = eventLog({ path, maxBytes: 1024 });
  const write = (from: number, to: number): void => {
    for (let step = from; step < to; step++) {
      log.onEvent(event("node.start", "r", { node: "n", step }));
    }
  };
  write(0, 20);
  const steps: unknown[] = [];
  for await (const line of readEventLog({ path }, "r")) {
    // Enough to rotate the newest file, and the next one too.
    if (steps.push(line.step) === 1) write(20, 50);
  }
  await log.close();
  expect(steps.length).toBeGreaterThanOrEqual(20);
  expect(steps).toEqual(steps.map((_, step) => step));
});

test.each([
  // A file system without links.
  ["EPERM", true],
  // Another process was faster; the rotation is tried again later.
  ["EEXIST", false],
])("a file that can't be linked (%s) loses nothing", async (code, moves) => {
  links.code = code;
  const path = join(folder, code, "log.jsonl");
  const log = eventLog({ path, maxBytes: 1024 });
  for (let step = 0; step < 30; step++) {
    log.onEvent(event("node.start", "r", { node: "n", step }));
  }
  await log.close();
  expect(readdirSync(join(folder, code)).length > 1).toBe(moves);
  const steps: unknown[] = [];
  for await (const line of readEventLog({ path }, "r")) steps.push(line.step);
  expect(steps).toEqual(Array.from({ length: 30 }, (_, step) => step));
});
