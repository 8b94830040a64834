import * as fc from "fast-check";
import { beforeEach, describe, expect, test, vi } from "vitest";
import { type AnyEvent, consoleObserver, State, StateGraph } from "waymark";
import { configError } from "../matchers.js";

const levels = ["debug", "info", "warn", "error"] as const;

let lines: (readonly [level: string, line: string])[];

beforeEach(() => {
  lines = [];
  for (const level of levels) {
    vi.spyOn(console, level).mockImplementation((line) => void lines.push([level, line]));
  }
});

function print(
  event: Partial<AnyEvent> | object,
  options?: Parameters<typeof consoleObserver>[0],
): string {
  const observer = consoleObserver(options);
  const common = { timestamp: "2030-01-01T00:00:00.000Z", source: "article", runId: "run-1" };
  if (typeof observer === "function") observer({ ...common, ...event } as AnyEvent);
  return lines.at(-1)?.[1] ?? "";
}

describe("as text", () => {
  test.each<[object, string]>([
    [
      { type: "node.start", data: { node: "draft", step: 2 } },
      "2030-01-01T00:00:00.000Z INFO  node.start        run=run-1 source=article node=draft step=2",
    ],
    [
      { type: "checkpoint.quarantine", data: {} },
      "2030-01-01T00:00:00.000Z ERROR checkpoint.quarantine run=run-1 source=article",
    ],
    [
      {
        type: "node.start",
        data: { node: "a b", step: "", list: [1, { x: "y" }], none: undefined, no: null },
      },
      '2030-01-01T00:00:00.000Z INFO  node.start        run=run-1 source=article node="a b" step="" list=[1,{"x":"y"}] none=undefined no=null',
    ],
    [
      {
        type: "graph.fail",
        runId: 'a="b"',
        data: { error: "it = bad", cause: new Error("it = bad") },
      },
      '2030-01-01T00:00:00.000Z ERROR graph.fail        run="a=\\"b\\"" source=article error="it = bad"',
    ],
  ])("%o", (event, line) => {
    expect(print(event)).toBe(line);
  });
});

describe("as JSON", () => {
  test("is an object with level, event, run and the event's own fields", () => {
    const data = { node: "draft", step: 2, list: [{ x: "y" }] };
    expect(JSON.parse(print({ type: "node.start", data }, { json: true }))).toEqual({
      level: "info",
      event: "node.start",
      run: "run-1",
      timestamp: "2030-01-01T00:00:00.000Z",
      source: "article",
      ...data,
    });
    expect(JSON.parse(print({ type: "node.start", data: {} }, { json: true }))).toHaveProperty(
      "run",
    );
  });
});

test.each([
  ["graph.fail", "error"],
  ["checkpoint.error", "error"],
  ["graph.mismatch", "warn"],
  ["node.retry", "warn"],
  ["state.set", "debug"],
  ["edge.evaluate", "debug"],
  ["graph.start", "info"],
  ["checkpoint.save", "info"],
])("%s is of level %s, by the console's method of that name", (type, level) => {
  print({ type, data: {} });
  expect(JSON.parse(print({ type, data: {} }, { json: true })).level).toBe(level);
  expect(lines.map(([method]) => method)).toEqual([level, level]);
});

describe("no value can forge a line or move the cursor", () => {
  // Control characters, and characters that some programs treat as line breaks.
  const breaks = /[\p{Cc}\p{Zl}\p{Zp}]/u;
  const evil = "x\n2030-01-01T00:00:00.000Z INFO\r\u001b[2J\u0085\u009b\u2028\u2029y";

  test.each<[string, object]>([
    ["a field", { type: "node.start", data: { node: evil } }],
    ["a nested field", { type: "node.start", data: { list: [{ [evil]: evil }] } }],
    ["a field's name", { type: "node.start", data: { [evil]: 1 } }],
    ["a type", { type: evil, data: {} }],
    ["a run id", { type: "node.start", runId: evil, data: {} }],
    ["a source", { type: "node.start", source: evil, data: {} }],
  ])("in %s", (_, event) => {
    for (const json of [false, true]) expect(print(event, { json })).not.toMatch(breaks);
  });

  test("whatever it contains, and JSON restores it", () => {
    const text = fc.string({ unit: "binary" });
    fc.assert(
      fc.property(text, text, (node, name) => {
        const data = { node, field: { [name]: node } };
        expect(print({ type: "node.start", data })).not.toMatch(breaks);
        const line = print({ type: "node.start", data }, { json: true });
        expect(line).not.toMatch(breaks);
        expect(JSON.parse(line)).toMatchObject({ node, field: Object.fromEntries([[name, node]]) });
      }),
    );
  });
});

test("fields of a custom event can't replace those of the line", () => {
  const data = { run: "x", source: "x", level: "x", event: "graph.fail", timestamp: "x", n: 1 };
  expect(print({ type: "my.event", data })).toMatch(
    / INFO {2}my\.event .* run=run-1 source=article /,
  );
  expect(JSON.parse(print({ type: "my.event", data }, { json: true }))).toEqual({
    level: "info",
    event: "my.event",
    run: "run-1",
    timestamp: "2030-01-01T00:00:00.000Z",
    source: "article",
    n: 1,
  });
});

test("prints values that JSON can't hold as well as possible", () => {
  const cycle: Record<string, unknown> = { n: 1 };
  cycle.self = cycle;
  const event = { type: "my.event", data: { big: 12n, none: undefined, cycle } };
  expect(print(event)).toMatch(/ big="12" none=undefined cycle=object$/);
  expect(JSON.parse(print(event, { json: true }))).toMatchObject({
    event: "my.event",
    level: "info",
  });
  const big = { type: "my.event", data: { big: 12n } };
  expect(JSON.parse(print(big, { json: true }))).toMatchObject({ big: "12" });
});

test("is available to a graph by name", async () => {
  const graph = new StateGraph<object>({ name: "article", observer: "console" })
    .addNode("draft", (state) => state)
    .setEntryPoint("draft")
    .setExitPoint("draft");
  await Promise.all([
    graph.execute(State.create({}, { runId: "one" })),
    graph.execute(State.create({}, { runId: "two" })),
  ]);
  for (const run of ["one", "two"]) {
    const own = lines.filter(([, line]) => line.includes(` run=${run} source=article`));
    expect(own.map(([, line]) => line.split(/ +/)[2])).toEqual([
      "graph.start",
      "node.start",
      "node.complete",
      "graph.complete",
    ]);
  }
});

test("rejects unknown options", () => {
  expect(() => consoleObserver({ json: 1 as never })).toThrow(configError("consoleObserver.json"));
  expect(() => consoleObserver({ color: true } as never)).toThrow(
    configError("consoleObserver.color"),
  );
});

test("an event of a graph inside a node has its path", () => {
  const inside = { type: "node.start", path: ["plan", "search"], data: { node: "a", step: 1 } };
  expect(print(inside)).toContain(" run=run-1 source=article path=plan/search node=a step=1");
  expect(JSON.parse(print(inside, { json: true }))).toMatchObject({ path: ["plan", "search"] });
});
