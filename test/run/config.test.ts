import { expect, test } from "vitest";
import {
  afterNodes,
  ConfigError,
  ExecutionError,
  type GraphConfig,
  GraphError,
  MemoryStore,
  type NodeFunction,
  StateGraph,
} from "waymark";
import { linear, RecordingStore, rejection, start, type Trail, thrown } from "../graphs.js";

function refused(config: unknown): ConfigError {
  return thrown(() => new StateGraph(config as GraphConfig), ConfigError);
}

const notWhole = [-1, 1.5, Number.NaN, "3", null, 2n, 2 ** 53];

const badValues: [field: string, values: unknown[]][] = [
  ["name", ["", 7, null, {}]],
  ["observer", [null, 7, {}, { onEvent: "no" }, [() => {}, null]]],
  ["maxIterations", [0, ...notWhole]],
  ["version", [...notWhole, Number.POSITIVE_INFINITY]],
  ["migrations", [null, "x", () => {}]],
  ["onMismatch", ["ignore", true, null, ""]],
  ["breakpoints", [null, ["a"], "a"]],
  ["breakpoints.before", [null, "a", [7]]],
  ["breakpoints.after", [null, "a", [7]]],
  ["ledger", [null, [], 7]],
  ["checkpoint", [null, [], "file", 1]],
  ["checkpoint.store", [null, 7, {}, { save() {}, load() {}, delete() {} }]],
  ["checkpoint.interval", [...notWhole, Number.POSITIVE_INFINITY]],
  ["checkpoint.preserve", ["true", 0, null]],
  ["checkpoint.keep", [0, 1, ...notWhole]],
  ["checkpoint.triggers", [null, {}, "error"]],
  ["checkpoint.keepPerPhase", [0, ...notWhole]],
  ["metadata", [null, [], "team"]],
  ["record", [null, [], 100]],
  ["record.maxSteps", notWhole],
  ["checkpoint.onSaveError", ["stop", false, null]],
];

test.each(badValues.flatMap(([field, values]) => values.map((value) => [field, value] as const)))(
  "refuses %s: %o, naming the field",
  (field, value) => {
    const [outer = "", inner] = field.split(".");
    const error = refused({ [outer]: inner === undefined ? value : { [inner]: value } });
    expect(error.option).toBe(`config.${field}`);
    expect(error.message).toMatch(new RegExp(`^config\\.${field} (must be|wants) .*[;,] got `));
  },
);

test.each([
  [
    { store: "tape", interval: 1 },
    /^store must be an address .*, or a registered name: memory.*; got "tape"$/,
  ],
  [{ store: "tape" }, /"tape"/],
  [{ store: "", interval: 1 }, /""/],
])("refuses the unknown store of %j, even without checkpointing", (checkpoint, message) => {
  expect(refused({ checkpoint }).message).toMatch(message);
});

test("refuses the name of an unknown observer, alone or among others", () => {
  expect(refused({ observer: "parrot" }).message).toContain('"parrot" is not registered');
  expect(refused({ observer: ["noop", "parrot"] }).message).toContain('"parrot"');
});

test.each([
  ["config.maxIteration", { maxIteration: 5 }],
  ["config.interval", { interval: 1 }],
  ["config.checkpoint.intervall", { checkpoint: { intervall: 1 } }],
  ["config.toString", { toString: 1 }],
])("refuses the unknown field %s and lists the known ones", (option, config) => {
  const error = refused(config);
  expect(error.option).toBe(option);
  expect(error.message).toContain("the options are");
});

test.each([
  ["no object", 7],
  ["null", null],
  ["an array", []],
])("refuses %s as config", (_, config) => {
  expect(refused(config).option).toBe("config");
});

test.each([
  ["1.5", () => ({})],
  ["one", () => ({})],
  ["0", "no function"],
])("refuses a migration from %s that is %o", (version, migration) => {
  expect(refused({ migrations: { [version]: migration } }).option).toBe(
    `config.migrations.${version}`,
  );
});

test("a config from a JSON file works", async () => {
  const config = JSON.parse(`{
    "name": "from-json", "observer": ["noop"], "maxIterations": 3, "version": 2, "onMismatch": "error",
    "checkpoint": { "store": "memory", "interval": 1, "preserve": true, "keep": 2, "onSaveError": "fail" }
  }`);
  const graph = linear(["a", "b"], config);
  const final = await graph.execute(start());
  expect(graph.name).toBe("from-json");
  expect(final.graph).toEqual({ name: "from-json", version: 2, fingerprint: graph.fingerprint });
  expect(await graph.history(final.runId)).toHaveLength(2);
});

test("a field that is undefined counts as absent", () => {
  const config = { name: undefined, checkpoint: { store: undefined, keep: undefined } };
  expect(new StateGraph(config as unknown as GraphConfig).name).toBe("graph");
});

test("a graph works without a config", async () => {
  const final = await linear(["a"]).execute(start());
  expect(final.graph).toMatchObject({ name: "graph", version: 0 });
  expect(final.checkpointId).toBe("");
});

test("a store instance is accepted, and its keep applies unless the config has one", async () => {
  const kept = async (keep?: number): Promise<number> => {
    const store = new MemoryStore({ keep: 4 });
    const checkpoint = { store, interval: 1, preserve: true, ...(keep !== undefined && { keep }) };
    const graph = linear(["a", "b", "c", "d", "e", "f"], { checkpoint });
    const { runId } = await graph.execute(start());
    return (await graph.history(runId)).length;
  };
  expect([await kept(), await kept(2), await kept(Number.POSITIVE_INFINITY)]).toEqual([4, 2, 7]);
});

test("observers may be names, functions or objects, one or many; undefined ones are ignored", async () => {
  const told: string[] = [];
  const object = {
    seen: 0,
    onEvent(): void {
      this.seen++;
    },
  };
  const observer = [(event: { type: string }) => told.push(event.type), undefined, "noop", object];
  await linear(["a"], { observer }).execute(start());
  expect(told).toContain("graph.complete");
  expect(object.seen).toBe(told.length);
});

test("later changes to a config have no effect", async () => {
  const store = new RecordingStore();
  const checkpoint = { store, interval: 1, preserve: true };
  const graph = linear(["a", "b"], { checkpoint });
  checkpoint.interval = 0;
  checkpoint.preserve = false;
  await graph.execute(start());
  expect(store.saved).toHaveLength(3);
  expect(await store.list()).toHaveLength(1);
});

test.each<[config: GraphConfig<Trail>, message: string]>([
  [{ checkpoint: { triggers: [afterNodes("a", "typo")] } }, "config.checkpoint.triggers"],
  [{ onMissingNode: { old: "typo" } }, 'config.onMissingNode["old"]'],
  [{ onMissingNode: { old: { as: "typo" } } }, 'config.onMissingNode["old"]'],
])("a graph that lacks the node named by its config %j is incomplete", async (config, option) => {
  const graph = linear(["a", "b"], config);
  const message = `${option}: there is no node "typo"; the nodes are: "a", "b"`;
  expect(() => graph.validate()).toThrow(message);
  expect((await rejection(graph.execute(start()), GraphError)).message).toContain(message);
});

test("the message of a saved error is truncated, and says so", async () => {
  const store = new MemoryStore();
  const a: NodeFunction<Trail> = () => {
    throw new Error("x".repeat(1_000_000));
  };
  const graph = linear(["a"], { checkpoint: { store, interval: 1 } }, { a });
  const { cause } = await rejection(graph.execute(start("r")), ExecutionError);
  expect(Object(cause).message).toHaveLength(1_000_000);
  const message = (await store.load("r")).error?.message;
  expect(message).toBe(`${"x".repeat(4000)}… (996000 more characters)`);
});
