import { describe, expect, test } from "vitest";
import { State } from "waymark";
import { RecordCodec, stateFrom } from "../../src/checkpoint/records/codec.js";
import { parseHeader } from "../../src/checkpoint/records/header.js";
import { noCounts } from "../../src/state/counts.js";
import {
  fields,
  newIdentity,
  newProgress,
  type StateRecord,
  unsaved,
} from "../../src/state/fields.js";
import { encodeBody, encodeState } from "../../src/state/json.js";
import { jsonOf } from "../../src/state/kinds.js";
import { Ledger } from "../../src/state/ledger.js";
import { noMetadata } from "../../src/state/metadata.js";
import { Results } from "../../src/state/results.js";
import { recordOf, stateOf } from "../../src/state/state.js";
import { noItems, noSteps, readStep, type StepRecord, step } from "../../src/state/steps.js";
import { linear, start } from "../graphs.js";

const time = "2024-05-06T07:08:09.010Z";
const data = Object.freeze({ topic: "cairns" });
const attempt = { startedAt: time, durationMs: 5 };
const least = {
  node: "draft",
  step: 1,
  startedAt: time,
  completedAt: time,
  durationMs: 20,
  attempts: 2,
};
const usage = { inputTokens: 1 };
const fullStep: Required<StepRecord> = {
  ...least,
  phase: "check",
  failedAttempts: [attempt],
  lastAttemptAt: time,
  restarts: 1,
  usage,
  items: [{ name: "a", ...attempt, outcome: "failed" }],
};

/** A value of each field that is not empty. */
const full: StateRecord = {
  data,
  traits: 0,
  identity: {
    runId: "run-1",
    parent: { runId: "run-0", checkpointId: "cp-1" },
    graph: { name: "article", version: 4, fingerprint: "0123abcd" },
    config: { keep: 5 },
    startedAt: time,
    metadata: { tenant: "acme" },
    inherited: ["tenant"],
  },
  progress: {
    checkpointNode: "draft",
    phase: "check",
    nextNode: "review",
    timestamp: time,
    step: 1,
    status: "failed",
    error: { name: "TypeError", message: "no", node: "review", stack: "TypeError: no" },
    reason: "failure",
    counts: noCounts.with("draft", 2, 20),
    steps: noSteps.with(fullStep),
    pauses: [{ name: "ok", reason: "approval", ask: new Date(0) }],
    answers: [{ name: "ok", value: new Date(0) }],
    unfinished: { node: "review", results: Results.of([["a", 1]]), count: 1, opaque: false },
    begun: {
      node: "review",
      ...attempt,
      attempts: 1,
      failedAttempts: [attempt],
      restarts: 1,
      usage,
      items: noItems,
    },
    tasks: ["fetch"],
    rollback: 1,
    recovery: { attempts: 1, step: 1, results: 0 },
    resumes: 2,
    crashes: 3,
    ledger: Ledger.fromJSON({ usage: { draft: usage } }),
  },
  saved: { checkpointId: "cp-3", sequence: 3, savedAt: time, bytes: undefined },
};

const empty: StateRecord = {
  data,
  traits: 0,
  identity: newIdentity("run-1", noMetadata),
  progress: newProgress(),
  saved: unsaved,
};

type Field = (typeof fields)[number];

const each: [string, Field][] = fields.map((field) => [field.key, field]);
const isInHeader = ({ header, brief }: Field): boolean => header === true && !brief;
const listed = each.filter(([, { header }]) => header);

/** Its JSON by the table. */
function jsonOfField({ part, key, kind }: Field): object {
  const json = jsonOf(kind, Reflect.get(full[part], key));
  return kind.isSpread ? (json as object) : { [key]: json };
}

/** The empty record, but for one field. */
function only({ part, key }: Field): StateRecord {
  const value: unknown = Reflect.get(full[part], key);
  return { ...empty, [part]: { ...empty[part], [key]: value } };
}

/** The keys of the fields of a part, in the order of the table. */
const keysOf = (part: string): string[] =>
  fields.flatMap((field) => (field.part === part ? [field.key] : []));

describe("the records that are made have the fields of the table, in its order", () => {
  test("a new one", () => {
    expect(Object.keys(newIdentity("r", {}))).toEqual(keysOf("identity"));
    expect(Object.keys(newProgress())).toEqual(keysOf("progress"));
    expect(Object.keys(unsaved)).toEqual([...keysOf("saved"), "bytes"]);
  });

  test("with the empty values of the table", () => {
    const progress = newProgress();
    for (const { part, key, kind } of fields) {
      if (part === "progress" && kind.isEmpty)
        expect(Reflect.get(progress, key), key).toBe(kind.empty);
    }
  });

  test("one of a step, and one from JSON", async () => {
    const final = await linear(["a", "b"]).execute(start("r"));
    expect(Object.keys(recordOf(final).progress)).toEqual(keysOf("progress"));
    const loaded = recordOf(State.fromJSON(JSON.stringify(final)));
    expect(Object.keys(loaded.progress)).toEqual(keysOf("progress"));
    expect(Object.keys(loaded.identity)).toEqual(keysOf("identity"));
  });
});

describe("the JSON of a State has the fields of the table", () => {
  test.each(each)("%s if it is set", (_key, field) => {
    const json = jsonOfField(field);
    expect(encodeState(only(field))).toMatchObject(json);
    const body = encodeBody(only(field), data);
    for (const key of Object.keys(json)) expect(key in body, key).toBe(!isInHeader(field));
  });

  test.each(each)("%s if it is empty", (key, { kind, isWritten }) => {
    if (kind.isSpread) return;
    expect(key in encodeState(empty)).toBe(kind.isEmpty === undefined || isWritten === true);
  });

  test("nothing else", () => {
    const keys = fields.flatMap((field) => Object.keys(jsonOfField(field)));
    expect(Object.keys(encodeState(full)).sort()).toEqual([...keys, "waymark", "data"].sort());
  });

  const read = (json: unknown): StateRecord => recordOf(State.fromJSON(JSON.stringify(json)));

  test.each(each)("%s is read again", (key, field) => {
    const again = encodeState(read(encodeState(only(field))));
    expect(again).toEqual(JSON.parse(JSON.stringify(encodeState(only(field)))));
    expect(Reflect.get(read(encodeState(full))[field.part], key)).toEqual(
      Reflect.get(full[field.part], key),
    );
  });

  test.each(each)("%s is refused if it is wrong", (_key, field) => {
    for (const name of Object.keys(jsonOfField(field))) {
      expect(() => read({ ...encodeState(full), [name]: -0.5 }), name).toThrow(name);
    }
  });
});

describe("the header of a record has the fields of the table", () => {
  const place = {
    ...{ sequence: 3, checkpointId: "cp-3", parentId: "cp-2", previous: "cp-2", savedAt: time },
    ...{ keep: 5, keepPerPhase: 2 },
  };

  const headerOf = (record: StateRecord): Record<string, unknown> => {
    const encoded = new RecordCodec(undefined, 1).encode(stateOf(record), place, undefined);
    if (encoded instanceof Promise) throw new Error("encode must be synchronous");
    return JSON.parse(encoded.record.header) as Record<string, unknown>;
  };

  const parsed = (header: object): unknown => parseHeader(JSON.stringify(header));

  test.each(listed)("%s", (key, { part, as, kind, brief }) => {
    const value: unknown = Reflect.get(full[part], key);
    const shown = brief === undefined ? value : brief.of(value as never);
    expect(headerOf(full)[as]).toEqual(shown);
    const mayMiss = (brief?.kind ?? kind).isEmpty !== undefined;
    expect(as in headerOf(empty)).toBe(!mayMiss);
    expect(parsed({ ...headerOf(full), [as]: undefined }) !== undefined).toBe(mayMiss);
    expect(parsed({ ...headerOf(full), [as]: -0.5 })).toBeUndefined();
  });

  test("nothing else, but for what is not the State's", () => {
    const names = listed.map(([, { as }]) => as);
    const others = ["format", "parentId", "unfinished", "keep", "keepPerPhase"];
    expect(Object.keys(headerOf(full)).sort()).toEqual([...names, ...others].sort());
  });

  test.each(listed)("%s is in the State that is loaded", (key, field) => {
    const codec = new RecordCodec(undefined, 1);
    const encoded = codec.encode(stateOf(full), place, undefined);
    if (encoded instanceof Promise) throw new Error("encode must be synchronous");
    const { content, header } = encoded.record;
    const fresh = parseHeader(header);
    if (fresh === undefined) throw new Error("the header must be one");
    const record = recordOf(stateFrom(JSON.parse(content), fresh, "here"));
    expect(Reflect.get(record[field.part], key)).toEqual(Reflect.get(full[field.part], key));
  });
});

describe("a step is read as its table says", () => {
  const json = JSON.stringify({ ...fullStep, items: [["a", time, 5, "failed"]] });
  const both = [readStep, step.read] as const;

  test("with all fields, and with the least", () => {
    for (const text of [json, JSON.stringify(least)]) {
      const [one, other] = both.map((read) => read(JSON.parse(text), "state", "steps[0]"));
      expect(one).toEqual(other);
      expect(Object.keys(one ?? {})).toEqual(Object.keys(other ?? {}));
      expect(Object.isFrozen(one)).toBe(true);
    }
    expect(readStep(JSON.parse(json), "state", "steps[0]")).toEqual(fullStep);
  });

  test.each(Object.keys(fullStep))("%s, wrong or missing", (key) => {
    for (const value of [-0.5, undefined]) {
      const outcomes = both.map((read) => {
        try {
          return read({ ...(JSON.parse(json) as object), [key]: value }, "state", "steps[0]");
        } catch (error) {
          return String(error);
        }
      });
      expect(outcomes[0]).toEqual(outcomes[1]);
      if (value !== undefined) expect(outcomes[0]).toContain(key);
    }
  });
});
