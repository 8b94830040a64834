import { appendFileSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { ConfigError } from "waymark";
import { eventLog, readEventLog } from "../../../src/observers/event-log.js";
import { LogReader } from "../../../src/observers/log/reader.js";
import { event } from "../events.js";

const folder = mkdtempSync(join(tmpdir(), "waymark-reader-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

let files = 0;

/** A log, a function that writes steps of run `r` to it, and one that reads the new ones. */
function setUp(options: { maxBytes?: number; maxFiles?: number } = {}) {
  const path = join(folder, `log-${++files}.jsonl`);
  const log = eventLog({ path, ...options });
  const write = (from: number, to: number, run = "r"): void => {
    for (let step = from; step <= to; step++) {
      log.onEvent(event("node.start", run, { node: "n", step }));
    }
  };
  const reader = new LogReader({ path }, "r");
  const read = async (from = reader) => (await from.lines()).map(({ step }) => step);
  return { path, write, reader, read };
}

const upTo = (last: number): number[] => Array.from({ length: last }, (_, at) => at + 1);

test("each line is read once, and none of another run", async () => {
  const { write, read } = setUp();
  expect(await read()).toEqual([]);
  write(1, 3);
  write(7, 8, "other");
  expect(await read()).toEqual([1, 2, 3]);
  expect(await read()).toEqual([]);
  write(4, 4);
  expect(await read()).toEqual([4]);
});

test("a reader that starts at a position reads only what is behind it", async () => {
  const { path, write, reader, read } = setUp();
  write(1, 3);
  for await (const line of reader.read()) if (line.step === 2) break;
  expect(reader.position).toEqual({ file: 1, byte: (statSync(path).size / 3) * 2 });
  expect(await read(new LogReader({ path }, "r", reader.position))).toEqual([3]);
});

test("a reader that skips what is written reads what comes next", async () => {
  const { path, write, reader, read } = setUp({ maxBytes: 1024 });
  await reader.skip();
  write(1, 30);
  expect(await read()).toEqual(upTo(30));
  const late = new LogReader({ path }, "r");
  await late.skip();
  expect(await read(late)).toEqual([]);
  write(31, 50);
  expect(await read(late)).toEqual(upTo(50).slice(30));
});

test("a file that moves between two reads is read to its end, and nothing twice", async () => {
  const { write, read, reader } = setUp({ maxBytes: 1024 });
  write(1, 3);
  expect(await read()).toEqual([1, 2, 3]);
  write(4, 40);
  expect(await read()).toEqual(upTo(40).slice(3));
  expect(reader.position.file).toBeGreaterThan(2);
  expect(await read()).toEqual([]);
});

test("a reader whose file is gone continues with the oldest that is left", async () => {
  const { path, write, read } = setUp({ maxBytes: 1024, maxFiles: 2 });
  write(1, 3);
  await read();
  write(4, 60);
  const left = await read(new LogReader({ path }, "r"));
  expect(left.length).toBeLessThan(20);
  expect(await read()).toEqual(left);
  expect(left.at(-1)).toBe(60);
});

test("a line without an end is read once it has one", async () => {
  const { path, write, read } = setUp();
  write(1, 1);
  const [line = ""] = (await new LogReader({ path }, "r").lines()).map((one) =>
    JSON.stringify({ ...one, step: 2, text: "é" }),
  );
  const bytes = Buffer.from(`${line}\n`);
  // In the middle of a character.
  appendFileSync(path, bytes.subarray(0, bytes.indexOf("é") + 1));
  expect(await read()).toEqual([1]);
  expect(await read()).toEqual([]);
  appendFileSync(path, bytes.subarray(bytes.indexOf("é") + 1));
  expect(await read()).toEqual([2]);
});

test("what a killed writer left is passed over", async () => {
  const { path, write, read } = setUp();
  write(1, 1);
  await read();
  appendFileSync(path, '{"ts":"2026-01-01T00:00:00.000Z","step_id":"n-0');
  expect(await read()).toEqual([]);
  const next = eventLog({ path });
  next.onEvent(event("node.start", "r", { node: "n", step: 2 }));
  expect(await read()).toEqual([2]);
});

test("a log that was replaced by another is read from its start", async () => {
  const { path, write, read } = setUp();
  write(1, 9);
  await read();
  rmSync(path);
  const other = eventLog({ path });
  other.onEvent(event("node.start", "r", { node: "n", step: 100 }));
  expect(await read()).toEqual([100]);
  const lines = await new LogReader({ path }, "r").lines();
  writeFileSync(path, `${" ".repeat(60)}${JSON.stringify(lines[0])}\n`.repeat(3));
  expect(await read()).toEqual([100, 100, 100]);
});

test("arguments in the wrong order are rejected by name", () => {
  const swapped = readEventLog as unknown as (runId: string, place: object) => unknown;
  expect(() => swapped("r", { root: folder })).toThrow(ConfigError);
  expect(() => swapped("r", { root: folder })).toThrow(
    'place must be an object of options; got "r"',
  );
  expect(() => readEventLog({ root: folder }, "")).toThrow("runId must be a non-empty string");
  expect(() => readEventLog({} as { root: string }, "r")).toThrow("place must have either a root");
});
