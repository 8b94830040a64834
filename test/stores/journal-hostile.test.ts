import { describe, expect, test } from "vitest";
import { isWaymarkError } from "waymark";
import { toLine } from "../../src/stores/journal/line.js";
import { RecordCodec, readRecord } from "../../src/stores/journal/record.js";

const header = JSON.stringify({
  runId: "run",
  sequence: 1,
  format: 1,
  step: 0,
  node: "",
  status: "pending",
  timestamp: "2024-05-06T07:08:09.010Z",
  checkpointId: "c1",
  parentId: "",
  reason: "",
  graph: "",
});
const snapshot = '{"waymark":1,"visits":{},"data":{"n":0,"list":[1]}}';
const deep = "[".repeat(100_000) + "]".repeat(100_000);

/** Loads a State out of records whose hashes fit, whatever they hold. */
function load(...contents: readonly string[]): Promise<unknown> {
  const records = contents.map((content, index) => {
    const line = toLine(index === 0 ? "snapshot" : "patch", header, content);
    return readRecord(line, "log.jsonl", "run");
  });
  return new RecordCodec({}, 100).decode(records, "log.jsonl");
}

describe("records made to do harm, under hashes that fit", () => {
  test("are what others are while they are whole", async () => {
    const change = '[{"op":"replace","path":["data","n"],"value":1}]';
    expect(await load(snapshot, change)).toMatchObject({ data: { n: 1, list: [1] } });
  });

  test.each([
    "",
    "{",
    "null",
    "5",
    '"x"',
    "[]",
    "{}",
    deep,
    '{"waymark":2}',
    '{"waymark":1,"visits":{},"data":5}',
  ])("as a snapshot end in a typed error: %.40s", async (content) => {
    const error = await load(content).catch((thrown: unknown) => thrown);
    expect(isWaymarkError(error)).toBe(true);
  });

  test.each([
    "",
    "{",
    "null",
    '"x"',
    "[1]",
    "[null]",
    "[{}]",
    deep,
    '[{"op":"add","path":5,"value":1}]',
    '[{"op":"add","path":[null,null],"value":1}]',
    '[{"op":"replace","path":["data","list","length"],"value":4294967295}]',
    '[{"op":"add","path":["data","list",4294967294],"value":1}]',
    '[{"op":"add","path":["data","__proto__","bad"],"value":1}]',
    '[{"op":"add","path":["data","constructor","prototype","bad"],"value":1}]',
    '[{"op":"remove","path":[]}]',
  ])("as a patch end in a typed error: %.80s", async (content) => {
    const error = await load(snapshot, content).catch((thrown: unknown) => thrown);
    expect(isWaymarkError(error)).toBe(true);
    expect(Reflect.get({}, "bad")).toBeUndefined();
  });
});
