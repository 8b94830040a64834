import { describe, expect, test } from "vitest";
import {
  CheckpointConflictError,
  CheckpointNotFoundError,
  CheckpointSaveError,
  type ErrorCode,
  ExecutionError,
  GraphError,
  State,
  WaymarkError,
} from "waymark";
import { exitCodes, explain } from "../../src/cli/exit.js";
import { errorText } from "../../src/cli/output/error-text.js";
import { painter } from "../../src/cli/output/style.js";
import { facts, table } from "../../src/cli/output/table.js";
import { cut, plain, plainLines, toJson, widthOf } from "../../src/cli/output/text.js";
import { ago, bytes, count, dollars, duration, usageText } from "../../src/cli/output/units.js";
import { errorTable } from "../../src/errors/table.js";
import { Redaction } from "../../src/report/redaction.js";

const paint = (_look: unknown, text: string): string => text;

describe("a table", () => {
  const columns = [
    { head: "name", cell: (row: string) => row, least: 4 },
    { head: "n", cell: (row: string) => String(row.length), right: true },
  ];

  test("is aligned in columns", () => {
    expect(table(columns, ["a", "abcdefghijkl"], 80, paint)).toBe(
      "name           n\na              1\nabcdefghijkl  12",
    );
  });

  test("fits the width as far as its columns may shrink", () => {
    expect(table(columns, ["a", "abcdefghijkl"], 10, paint)).toBe(
      "name     n\na        1\nabcde…  12",
    );
    expect(table(columns, ["abcdefghijkl"], 1, paint)).toBe("name   n\nabc…  12");
  });

  test("shrinks the widest column first", () => {
    const two = [...columns, { head: "more", cell: (row: string) => `${row}!`, least: 6 }];
    expect(table(two, ["abcdefghijkl"], 18, paint)).toBe("name     n  more\nabcde…  12  abcde…");
  });

  test("drops optional columns if the rest would not fit", () => {
    const more = [
      { head: "second", cell: () => "second", leave: 2 },
      ...columns,
      { head: "first", cell: () => "first", leave: 1 },
    ];
    expect(table(more, ["abcdefghijkl"], 18, paint)).toBe("second  name     n\nsecond  abcde…  12");
    expect(table(more, ["abcdefghijkl"], 8, paint)).toBe("name   n\nabc…  12");
  });

  test("counts wide characters as two columns", () => {
    expect(table(columns, ["山山", "abcde"], 80, paint)).toBe("name   n\n山山   2\nabcde  5");
  });
});

test("undefined facts are left out", () => {
  expect(
    facts(
      [
        ["a", "1"],
        ["longer", undefined],
        ["bc", ""],
        ["d", "2\n"],
        ["e", []],
      ],
      80,
      paint,
    ),
  ).toBe("a  1\nd  2\\n");
  expect(facts([], 80, paint)).toBe("");
});

test("a list of facts that does not fit a line continues below its first item", () => {
  const list = ["a=1", "bc=23", "d=4"];
  expect(facts([["run", list]], 15, paint)).toBe("run  a=1,\n     bc=23, d=4");
  expect(facts([["run", list]], 80, paint)).toBe("run  a=1, bc=23, d=4");
});

describe("text", () => {
  test("escapes what a terminal would execute", () => {
    expect(plain("a\n\t\u001b[31m\u0085\u202e")).toBe("a\\n\\t\\x1b[31m\\x85\\u202e");
    expect(plainLines("a\n\tb\u001b")).toBe("a\n\tb\\x1b");
    expect(plain("\u009b31m\u061c\u2066\u200f\ufeff")).toBe("\\x9b31m\\u61c\\u2066\\u200f\\ufeff");
    expect(toJson("\u061c")).toBe('"\\u061c"');
    expect(toJson({ a: "\u001b\u009b\u2028", b: 1n })).toBe(
      '{"a":"\\u001b\\u009b\\u2028","b":"1"}',
    );
    expect(toJson(undefined)).toBe("null");
  });

  test("is measured and truncated by its width on the screen", () => {
    expect(widthOf("aé山e\u0301🙂")).toBe(7);
    expect(cut("山山山", 4)).toBe("山…");
    expect(cut("abc", 3)).toBe("abc");
  });
});

test("prints colours only to terminals that support them", () => {
  const red = (output: object, env = {}, wanted = true) =>
    painter(output as never, env, wanted)("red", "x");
  expect(red({ isTTY: true })).toBe("\u001b[31mx\u001b[0m");
  expect(red({})).toBe("x");
  expect(red({ isTTY: true }, { NO_COLOR: "1" })).toBe("x");
  expect(red({ isTTY: true }, { TERM: "dumb" })).toBe("x");
  expect(red({ isTTY: true }, {}, false)).toBe("x");
});

test("prints ages, durations and costs in readable units", () => {
  const now = Date.parse("2026-01-02T00:00:00Z");
  expect(ago("2026-01-02T00:00:00Z", now)).toBe("now");
  expect(ago("2026-01-01T23:57:00Z", now)).toBe("3 min ago");
  expect(ago("2025-12-01T00:00:00Z", now)).toBe("32 d ago");
  expect(ago("never", now)).toBe("never");
  const minute = 60_000;
  const lengths = [
    5.7,
    999,
    1000,
    59_990,
    2 * minute + 5000,
    60 * minute,
    76 * 60 * minute + minute,
  ];
  expect(lengths.map(duration)).toEqual([
    "5 ms",
    "999 ms",
    "1.0 s",
    "59.9 s",
    "2 min 5 s",
    "1 h",
    "3 d 4 h",
  ]);
  expect([0, 0.00001, 0.004, 1.239].map(dollars)).toEqual(["", "<$0.0001", "$0.0040", "$1.24"]);
  const usage = { inputTokens: 12_900, outputTokens: 0, costUsd: 0 };
  expect(usageText(usage)).toBe("12,900 tokens in, 0 out, $0");
  expect(usageText({ ...usage, inputTokens: 0 })).toBeUndefined();
  expect([bytes(12), bytes(1234), bytes(123_456), bytes(5e15)]).toEqual([
    "12 B",
    "1.2 KB",
    "123 KB",
    "5000 TB",
  ]);
  expect([count(1, "run"), count(2, "run")]).toEqual(["1 run", "2 runs"]);
});

test("every error has an exit code, and a line with a remedy", () => {
  const unknown = "--debug shows where it comes from";
  expect(explain("text")).toEqual({ code: 1, message: "text", hint: unknown });
  expect(explain({ name: "ErrnoError", errno: 54 })).toMatchObject({ message: "ErrnoError" });
  expect(explain(null)).toMatchObject({ message: "null" });
  expect(explain({})).toMatchObject({ message: "[object Object]" });
  expect(explain(new CheckpointNotFoundError("a")).hint).toBe("waymark list shows the runs");
  expect(explain(new GraphError("GRAPH_NO_NODES", "it has no nodes"))).toMatchObject({
    code: 1,
    hint: "",
  });
  const refused = ["::1", "127.0.0.1"].map((host) => new Error(`connect ECONNREFUSED ${host}`));
  const all = Object.assign(new AggregateError(refused), { code: "ECONNREFUSED" });
  expect(explain(all)).toEqual({
    code: 1,
    message: "connect ECONNREFUSED ::1; connect ECONNREFUSED 127.0.0.1",
    hint: "no server answers there; start it, or name another --store",
  });
  const full = Object.assign(new Error("ENOSPC: no space left"), { code: "ENOSPC" });
  expect(explain(full).hint).toContain("the disk is full");
  const options = { nodeName: "a", state: State.create({}), path: [] };
  expect(explain(new CheckpointSaveError("nothing was saved", options))).toEqual({
    code: 1,
    message: "nothing was saved",
    hint: "waymark doctor checks the store",
  });
  expect(explain(new CheckpointConflictError("a", 1, 2)).hint).toBe("waymark watch a follows it");
  const none = new CheckpointNotFoundError("a", { step: 3 });
  expect(explain(none)).toMatchObject({ code: 3, hint: "waymark history a shows those it has" });
});

test.each(Object.entries(errorTable))(
  "%s ends the command with one of the exit codes that its help lists",
  (code, facts) => {
    const { code: shown } = explain(new WaymarkError(code as ErrorCode, "wrong"));
    expect(shown).toBe(facts.exit);
    expect(exitCodes.map(([listed]) => listed)).toContain(shown);
  },
);

test("what an error says is shown without what must not be shown of its cause", () => {
  const where = { nodeName: "a", state: State.create({}), path: [] };
  const failed = (cause: unknown): ExecutionError =>
    new ExecutionError("NODE_FAILED", `node "a" failed: ${String(cause)}`, { ...where, cause });
  const quoting = new ExecutionError("PREDICATE_FAILED", "the predicate failed: sesame", {
    ...where,
    cause: new Error("sesame"),
  });
  const said = (...patterns: string[]): string[] =>
    [failed(new Error("sesame")), failed("sesame"), quoting, "sesame"].map((error) =>
      errorText(error, new Redaction(patterns)),
    );
  expect(said("error.message")).toEqual([
    'node "a" failed: [redacted]',
    "[redacted]",
    "PREDICATE_FAILED: [redacted]",
    "[redacted]",
  ]);
  expect(said()).toContain("the predicate failed: sesame");
});
