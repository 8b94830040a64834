import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type Migrations, State } from "waymark";
import { checkMigrations, migrate } from "../../src/checkpoint/migration.js";
import { recordOf, sinkOf, stateOf } from "../../src/state/state.js";
import { configError } from "../matchers.js";

interface Data {
  [key: string]: unknown;
}

function made(version: number, data: Data = { log: [] }): State<Data> {
  const json = State.create(data).toJSON();
  const graph = { name: "article", version, fingerprint: "0123abcd" };
  return State.fromJSON<Data>({ ...json, graph, step: 3, checkpointNode: "draft", sequence: 4 });
}

/** A migration that adds its version to the log. */
function note(version: number): (data: object) => object {
  return (data) => ({ ...data, log: [...((data as Data).log as number[]), version] });
}

const migrations: Migrations = { 0: note(0), 1: note(1), 2: note(2) };

describe("migrate", () => {
  test("runs each migration from the State's version to the graph's, in order", () => {
    expect(migrate(made(0), 3, migrations).data.log).toEqual([0, 1, 2]);
    expect(migrate(made(1), 3, migrations).data.log).toEqual([1, 2]);
    expect(migrate(made(1), 2, migrations).data.log).toEqual([1]);
  });

  test("returns a State with the new version, and everything else unchanged", () => {
    const state = made(0);
    const migrated = migrate(state, 3, migrations);
    expect(migrated.toJSON()).toEqual({
      ...state.toJSON(),
      graph: { ...state.graph, version: 3 },
      data: { log: [0, 1, 2] },
    });
    expect(state.data.log).toEqual([]);
    expect(state.graph?.version).toBe(0);
  });

  test("returns a State unchanged at the graph's version, or if no graph has run it", () => {
    const [current, fresh] = [made(3), State.create<Data>({ log: [] })];
    expect(migrate(current, 3, {})).toBe(current);
    expect(migrate(fresh, 3, migrations)).toBe(fresh);
  });

  test("returns frozen data", () => {
    const when = new Date(0);
    const migrated = migrate(made(0), 1, { 0: () => ({ when, list: [1n] }) });
    expect(Object.isFrozen(migrated.data.list)).toBe(true);
    when.setTime(1);
    expect(State.fromJSON<Data>(migrated.toJSON()).data).toEqual({ when: new Date(0), list: [1n] });
  });

  test("passes a migration frozen data", () => {
    const careless = (data: object): object => {
      (data as { log: number[] }).log.push(0);
      return data;
    };
    const state = made(0);
    expect(() => migrate(state, 1, { 0: careless })).toThrow(
      expect.objectContaining({ code: "MIGRATION", cause: expect.any(TypeError) }),
    );
    expect(state.data.log).toEqual([]);
  });

  test("keeps the State's observer", () => {
    const types: string[] = [];
    const fields = recordOf(made(0));
    const observed = State.create<Data>({}, { observer: ({ type }) => types.push(type) });
    const state = stateOf<Data>(fields, sinkOf(observed));
    migrate(state, 1, migrations).set("a", 1);
    expect(types).toEqual(["state.create", "state.set"]);
  });

  const mine = new RangeError("mine");
  test.each<[string, number, number, Migrations, RegExp, object]>([
    [
      "a newer checkpoint",
      4,
      3,
      migrations,
      /schema version 4, the graph 3: the checkpoint is newer/,
      { from: 4 },
    ],
    [
      "no migration at all",
      0,
      1,
      {},
      /there is no migration from 0 to 1: add migrations\[0\]/,
      { from: 0 },
    ],
    [
      "a missing link",
      0,
      3,
      { 0: note(0), 2: note(2) },
      /no migration from 1 to 2: add migrations\[1\]/,
      { from: 1 },
    ],
    [
      "a migration that throws what has no text",
      0,
      1,
      {
        0: () => {
          throw Object.create(null);
        },
      },
      /migrations\[0\] failed: a null-prototype object/,
      { from: 0 },
    ],
    [
      "a migration that throws",
      1,
      3,
      {
        1: () => {
          throw mine;
        },
      },
      /migrations\[1\] failed: RangeError: mine/,
      { from: 1, cause: mine },
    ],
    [
      "one that returns nothing",
      0,
      1,
      { 0: () => undefined as never },
      /migrations\[0\] must return a plain object; got undefined/,
      { from: 0 },
    ],
    ["one that returns null", 0, 1, { 0: () => null as never }, /got null/, { from: 0 }],
    ["one that returns a list", 0, 1, { 0: () => [] }, /got an array/, { from: 0 }],
    [
      "one that is asynchronous",
      0,
      1,
      { 0: (async () => ({})) as never },
      /got a Promise/,
      { from: 0 },
    ],
  ])("refuses %s", (_, from, to, table, message, fields) => {
    const run = (): unknown => migrate(made(from), to, table);
    expect(run).toThrow(message);
    expect(run).toThrow(
      expect.objectContaining({ name: "MigrationError", code: "MIGRATION", to, ...fields }),
    );
  });

  test("in two steps has the same result as in one", () => {
    const table: Migrations = Object.fromEntries(
      Array.from({ length: 10 }, (_, at) => [at, note(at)]),
    );
    const versions = fc
      .tuple(fc.nat(10), fc.nat(10), fc.nat(10))
      .map((list) => list.sort((a, b) => a - b));
    fc.assert(
      fc.property(versions, ([from = 0, middle = 0, to = 0]) => {
        const state = made(from);
        const once = migrate(state, to, table);
        const twice = migrate(migrate(state, middle, table), to, table);
        expect(JSON.stringify(twice)).toBe(JSON.stringify(once));
      }),
    );
  });
});

describe("checkMigrations", () => {
  test("accepts functions by version", () => {
    expect(() => checkMigrations("config.migrations", migrations)).not.toThrow();
    expect(() => checkMigrations("config.migrations", {})).not.toThrow();
  });

  test.each<[unknown, string]>([
    [null, "config.migrations"],
    ["x", "config.migrations"],
    [{ one: () => ({}) }, "config.migrations.one"],
    [{ "-1": () => ({}) }, "config.migrations.-1"],
    [{ 1.5: () => ({}) }, "config.migrations.1.5"],
    [{ 0: "x" }, "config.migrations.0"],
  ])("refuses %o", (table, option) => {
    expect(() => checkMigrations("config.migrations", table)).toThrow(
      configError(option, "must be .*; got "),
    );
  });
});
