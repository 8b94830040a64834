import { describe, expect, test } from "vitest";
import {
  type CheckpointStore,
  type GraphConfig,
  GraphError,
  MigrationError,
  type Migrations,
  State,
  StateGraph,
} from "waymark";
import {
  linear,
  listen,
  mark,
  RecordingStore,
  rejection,
  start,
  stoppedRun,
  type Trail,
} from "../graphs.js";

const stopped = (config: GraphConfig<Trail> = {}) => stoppedRun(["a", "b", "c"], "b", config);

const saving = <D extends object = Trail>(
  store: CheckpointStore,
  config: Omit<GraphConfig<D>, "checkpoint"> = {},
): GraphConfig<D> => ({
  ...config,
  checkpoint: { store, interval: 1, preserve: true },
});

/** All that builds on a checkpoint. */
const callsOf = (graph: StateGraph<Trail, string>): (() => Promise<unknown>)[] => [
  () => graph.resume("r"),
  () => graph.resumeOrStart(start("r")),
  () => graph.fork("r", 1),
  () => graph.rollback("r", 1),
];

describe("a checkpoint of a graph of another shape", () => {
  test("emits an event, and the run continues in the current graph", async () => {
    const store = await stopped();
    const graph = linear(["a", "x", "c"], saving(store));
    const events = listen(graph);
    const final = await graph.resume("r");
    expect(final.data.trail).toEqual(["a", "x", "c"]);
    const before = linear(["a", "b", "c"]).fingerprint;
    expect(events.filter(({ type }) => type === "graph.mismatch").map(({ data }) => data)).toEqual([
      {
        expected: `graph ${graph.fingerprint}`,
        actual: `graph ${before}`,
        added: ["x"],
        removed: ["b"],
        rewired: ["a"],
      },
    ]);
    expect(final.graph?.fingerprint).toBe(graph.fingerprint);
  });

  test('is refused with onMismatch: "error", before anything runs', async () => {
    const store = await stopped();
    const graph = linear(["a", "x", "c"], saving(store, { onMismatch: "error" }));
    const events = listen(graph);
    for (const call of callsOf(graph)) {
      const error = await rejection(call(), GraphError);
      expect(error.code).toBe("GRAPH_MISMATCH");
      expect(error.message).toContain("config.onMismatch");
    }
    expect(events.some(({ type }) => type === "graph.mismatch")).toBe(true);
    expect(events.some(({ type }) => type === "node.start")).toBe(false);
    expect(store.log).toEqual(["start:@0", "interval:a@1", "failure:a@1"]);
  });

  test("also includes one of a graph with another name", async () => {
    const store = await stopped({ name: "mine" });
    const config = saving(store, { name: "yours", onMismatch: "error" });
    const error = await rejection(linear(["a", "b", "c"], config).resume("r"), GraphError);
    expect(error.message).toMatch(/made by another graph: mine .*; this one is yours/);
  });

  test("does not include one whose functions changed", async () => {
    const config = saving(await stopped(), { onMismatch: "error" });
    expect((await linear(["a", "b", "c"], config).resume("r")).step).toBe(3);
  });

  test("without a graph fits every graph", async () => {
    const store = new RecordingStore();
    await store.save(start("r"));
    const config = saving(store, { onMismatch: "error", version: 3 });
    expect((await linear(["a"], config).resume("r")).data.trail).toEqual(["a"]);
  });

  test("at a removed node is an error that names the existing ones", async () => {
    const store = await stopped();
    const graph = linear(["x", "y"], saving(store));
    for (const call of callsOf(graph)) {
      const error = await rejection(call(), GraphError);
      expect(error.code).toBe("GRAPH_NODE_UNKNOWN");
      expect(error.message).toMatch(/run "r".*"a".*the nodes are: "x", "y"/);
    }
    expect(store.log).toEqual(["start:@0", "interval:a@1", "failure:a@1"]);
  });
});

interface Old {
  readonly trail: readonly string[];
}

interface New {
  readonly steps: number;
  readonly tags: ReadonlySet<string>;
}

const toCount = ({ trail }: Old) => ({ steps: trail.length });
const toTags = ({ steps }: { steps: number }) => ({ steps, tags: new Set(["old"]) });

/** The same shape over the new data. */
function migrated(store: CheckpointStore, version: number, migrations: Migrations) {
  const count = (state: State<New>) => ({ steps: state.data.steps + 1 });
  return new StateGraph<New>(saving(store, { version, migrations }))
    .addNode("a", count)
    .addNode("b", count)
    .addNode("c", count)
    .addEdge("a", "b")
    .addEdge("b", "c")
    .setEntryPoint("a")
    .setExitPoint("c");
}

describe("rule 9: a checkpoint of an older version", () => {
  test("is migrated step by step before anything runs, and saved as the new version", async () => {
    const store = await stopped();
    const final = await migrated(store, 2, { 0: toCount, 1: toTags }).resume("r");
    expect(final.data).toEqual({ steps: 3, tags: new Set(["old"]) });
    expect(final.graph?.version).toBe(2);
    expect(store.saved.map(({ graph }) => graph?.version)).toEqual([0, 0, 0, 2, 2, 2]);
    expect(store.saved[1]?.data).toEqual({ trail: ["a"] });
  });

  test("is migrated only by the versions it lacks", async () => {
    const store = await stopped();
    const graph = migrated(store, 1, { 0: toCount });
    await graph.rollback("r", 1);
    const next = migrated(store, 2, { 0: toCount, 1: toTags });
    expect((await next.resume("r")).data.steps).toBe(3);
  });

  test("is migrated for fork and rollback, which save it as the new version", async () => {
    const store = await stopped();
    const graph = migrated(store, 2, { 0: toCount, 1: toTags });
    for (const state of [await graph.fork("r", 1), await graph.rollback("r", 1)]) {
      expect(state.data.steps).toBe(1);
      expect((await store.load(state.runId)).graph?.version).toBe(2);
    }
  });

  test.each<[what: string, migrations: Migrations, from: number, says: RegExp]>([
    ["its first link is missing", { 1: toTags }, 0, /no migration from 0 to 1.*migrations\[0\]/],
    ["its last link is missing", { 0: toCount }, 1, /no migration from 1 to 2.*migrations\[1\]/],
    [
      "it returns no object",
      { 0: (() => 7) as never, 1: toTags },
      0,
      /migrations\[0\] must return.*got 7/,
    ],
  ])("is refused when %s", async (_what, migrations, from, says) => {
    const store = await stopped();
    const error = await rejection(migrated(store, 2, migrations).resume("r"), MigrationError);
    expect(error).toMatchObject({ from, to: 2 });
    expect(error.message).toMatch(says);
    expect(store.saved).toHaveLength(3);
  });

  test("is refused if its migration throws, with that error as cause", async () => {
    const own = new Error("no way");
    const fails = () => {
      throw own;
    };
    const graph = migrated(await stopped(), 1, { 0: fails });
    expect((await rejection(graph.resume("r"), MigrationError)).cause).toBe(own);
  });
});

test("rule 9: a checkpoint of a newer version is refused and stays as it is", async () => {
  const store = await stopped({ version: 3 });
  const graph = linear(["a", "b", "c"], saving(store, { version: 2 }));
  for (const call of callsOf(graph)) {
    const error = await rejection(call(), MigrationError);
    expect(error).toMatchObject({ from: 3, to: 2 });
    expect(error.message).toContain("newer");
  }
  expect(store.saved).toHaveLength(3);
});

test("rule 9: corruption found by a store is thrown before a migration runs", async () => {
  const store = await stopped();
  const bad = new SyntaxError("bad bytes");
  store.load = async () => {
    throw bad;
  };
  let asked = 0;
  const migration = (data: object) => {
    asked++;
    return data;
  };
  const graph = linear(["a"], saving(store, { version: 1, migrations: { 0: migration } }));
  expect(await rejection(graph.resume("r"), SyntaxError)).toBe(bad);
  expect(asked).toBe(0);
});

test("a State that starts a run has the graph's own version", async () => {
  const config = { version: 4, migrations: {} };
  expect((await linear(["a"], config).execute(start())).graph?.version).toBe(4);
  const old = State.fromJSON<Trail>({
    ...start().toJSON(),
    graph: { name: "g", version: 1, fingerprint: "" },
  });
  expect((await linear(["a"], config, { a: mark }).execute(old)).graph?.version).toBe(4);
});
