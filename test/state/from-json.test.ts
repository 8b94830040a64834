import { describe, expect, test } from "vitest";
import { State, type StateJSON } from "waymark";
import { serializationError } from "../matchers.js";

/** A State as JSON in which every field that a run can fill is filled. */
const full: StateJSON = {
  waymark: 1,
  runId: "run-1",
  parent: { runId: "run-0", checkpointId: "cp-1" },
  graph: { name: "article", version: 4, fingerprint: "0123abcd" },
  startedAt: "2024-05-06T07:00:00.000Z",
  metadata: { tenant: "acme", attempt: 2, urgent: true, ["__proto__"]: 1 },
  checkpointNode: "review",
  phase: "check",
  nextNode: "publish",
  timestamp: "2024-05-06T07:08:09.010Z",
  step: 2,
  status: "failed",
  error: { name: "TypeError", message: "no", node: "publish", stack: "TypeError: no\n    at x" },
  reason: "failure",
  visits: { draft: 1, review: 1, ["__proto__"]: 2 },
  checkpointId: "cp-3",
  sequence: 3,
  savedAt: "2024-05-06T07:08:09.020Z",
  data: { topic: "cairns" },
};

function without(key: keyof StateJSON): unknown {
  const { [key]: _, ...rest } = full;
  return rest;
}

test.each([
  ["1e400", Number.POSITIVE_INFINITY],
  ["-1e400", Number.NEGATIVE_INFINITY],
  ["-0", -0],
])("%s, which JSON reads but never writes, is saved again as what it is", (text, number) => {
  for (const data of [
    `{"n":${text}}`,
    `{"n":{"m":[${text}]}}`,
    `{"n":{"$object":{"$n":${text}}}}`,
  ]) {
    const json = JSON.stringify(full).replace('{"topic":"cairns"}', data);
    const state = State.fromJSON<{ n: unknown }>(json);
    const again = State.fromJSON<{ n: unknown }>(JSON.stringify(state));
    expect(again.data).toStrictEqual(state.data);
    expect(JSON.stringify(state.toJSON().data)).toContain(
      `"$number":"${Object.is(number, -0) ? "-0" : number}"`,
    );
  }
});

function load(json: unknown): State<object> {
  return State.fromJSON(json as StateJSON);
}

describe("metadata", () => {
  test("is restored, with every field", () => {
    const state = load(full);
    expect(state).toMatchObject({
      runId: "run-1",
      checkpointId: "cp-3",
      sequence: 3,
      checkpointNode: "review",
      timestamp: "2024-05-06T07:08:09.010Z",
      step: 2,
      status: "failed",
      reason: "failure",
      startedAt: "2024-05-06T07:00:00.000Z",
      savedAt: "2024-05-06T07:08:09.020Z",
      phase: "check",
      nextNode: "publish",
      metadata: full.metadata,
      error: full.error,
      parent: full.parent,
      graph: full.graph,
      bytes: undefined,
    });
    expect(state.visits).toEqual(full.visits);
    expect(state.toJSON()).toEqual(full);
  });

  test("is the same from an object, a text and a State", () => {
    const text = JSON.stringify(full);
    for (const json of [full, text, load(full)]) expect(JSON.stringify(load(json))).toBe(text);
  });

  test("may have a time in any form of ISO 8601", () => {
    for (const timestamp of ["2024-05-06", "2024-05-06T07:08:09Z", "+010000-01-01T00:00:00.000Z"])
      expect(load({ ...full, timestamp }).timestamp).toBe(timestamp);
  });

  test("is frozen", () => {
    const { error, parent, graph, visits, metadata, data } = load(full);
    for (const part of [error, parent, graph, visits, metadata, data]) {
      expect(Object.isFrozen(part)).toBe(true);
    }
  });

  test.each(["error", "parent", "graph", "nextNode"] as const)("%s may be missing", (key) => {
    expect(load(without(key))[key]).toBeUndefined();
    expect(load(without(key)).toJSON()).toEqual(without(key));
  });

  test("a property of Object.prototype is not a field", () => {
    const added = { error: full.error, step: 7 };
    Object.assign(Object.prototype, added);
    try {
      expect(load(without("error")).error).toBeUndefined();
      expect(() => load(without("step"))).toThrow(serializationError("state.step", "must be"));
    } finally {
      for (const key of Object.keys(added)) Reflect.deleteProperty(Object.prototype, key);
    }
  });

  test("unknown fields are ignored", () => {
    expect(load({ ...full, later: 1 }).toJSON()).toEqual(full);
  });

  test.each<[keyof StateJSON, unknown[]]>([
    ["waymark", [undefined, "1", 0, 1.5, null]],
    ["runId", [undefined, 5, "", "a\0b", "x".repeat(201), null]],
    ["checkpointId", [undefined, 5]],
    ["sequence", [undefined, -1, 0.5, "3"]],
    ["checkpointNode", [undefined, null]],
    ["timestamp", [undefined, 1_715_000_000_000, "yesterday", "", "2024-13-06T07:08:09.010Z"]],
    ["step", [undefined, -1, "2", 2 ** 60]],
    ["status", [undefined, "done", 5]],
    ["reason", [undefined, false]],
    ["startedAt", [undefined, "", "today", 5]],
    ["savedAt", [undefined, "today", 5]],
    ["phase", [undefined, null]],
    ["nextNode", [null, 5]],
    ["metadata", [null, "acme", []]],
    ["error", [null, "no", []]],
    ["parent", [null, "run-0", []]],
    ["graph", [null, "article", []]],
    ["visits", [undefined, null, 5, []]],
  ])("%s that is missing or wrong is refused by name", (key, values) => {
    for (const value of values) {
      expect(() => load({ ...full, [key]: value })).toThrow(serializationError(`state.${key}`));
    }
  });

  test.each<[string, object]>([
    ["state.error.name", { error: { ...full.error, name: 1 } }],
    ["state.error.message", { error: { name: "x", node: "y" } }],
    ["state.error.node", { error: { ...full.error, node: null } }],
    ["state.error.stack", { error: { ...full.error, stack: 1 } }],
    ["state.metadata.list", { metadata: { list: [] } }],
    ["state.parent.runId", { parent: { ...full.parent, runId: "" } }],
    ["state.parent.checkpointId", { parent: { runId: "run-0" } }],
    ["state.graph.name", { graph: { ...full.graph, name: 1 } }],
    ["state.graph.version", { graph: { ...full.graph, version: -1 } }],
    ["state.graph.fingerprint", { graph: { ...full.graph, fingerprint: undefined } }],
    ["state.visits.draft", { visits: { draft: "1" } }],
    ["state.unfinished.node", { unfinished: { results: {} } }],
    ["state.unfinished.results", { unfinished: { node: "draft" } }],
    ["state.unfinished.results", { unfinished: { node: "draft", results: { $undefined: true } } }],
    ["state.unfinished.results", { unfinished: { node: "draft", results: { $map: [] } } }],
    ["state.recovery.attempts", { recovery: { attempts: -1, step: 0, results: 0 } }],
    ["state.pauses", { pauses: {} }],
    ["state.pauses[0]", { pauses: ["review"] }],
    ["state.pauses[0].reason", { pauses: [{ name: "" }] }],
    ["state.pauses[0].breakpoint", { pauses: [{ name: "", reason: "", breakpoint: "now" }] }],
  ])("%s that is wrong is refused by name", (path, change) => {
    expect(() => load({ ...full, ...change })).toThrow(serializationError(path, /must be|can't/));
  });

  test("an error says what a field must be and what it got", () => {
    expect(() => load({ ...full, step: "2" })).toThrow(
      'state.step must be an integer ≥ 0; got "2"',
    );
    expect(() => load({ ...full, status: "done" })).toThrow(
      'state.status must be one of pending, in_progress, paused, completed, failed; got "done"',
    );
  });

  test("of a newer format is refused", () => {
    expect(() => load({ ...full, waymark: 2 })).toThrow(
      serializationError("state.waymark", "is 2: a newer waymark wrote it, this one reads up to 1"),
    );
  });

  test.each<[string, unknown]>([
    ["half a text", '{"waymark":1,'],
    ["nothing", undefined],
    ["an empty text", ""],
    ["a bigint", 1n],
  ])("%s is not JSON, and the cause is kept", (_, json) => {
    expect(() => load(json)).toThrow(
      expect.objectContaining({ path: "state", cause: expect.any(Error) }),
    );
    expect(() => load(json)).toThrow(/^state is not JSON: /);
  });

  test.each<[unknown]>([[null], [5], ["null"], ["[]"], ["true"], [[]]])(
    "%j is no State",
    (json) => {
      expect(() => load(json)).toThrow(serializationError("state", "must be an object; got"));
    },
  );
});
