import { join } from "node:path";
import { PGlite } from "@electric-sql/pglite";
import * as fc from "fast-check";
import { expect, test } from "vitest";
import {
  CheckpointConflictError,
  type CheckpointStore,
  END,
  MemoryStore,
  State,
  StateGraph,
} from "waymark";
import { FileStore } from "waymark/stores/file";
import { mirror } from "waymark/stores/mirror";
import { PostgresStore } from "waymark/stores/postgres";
import { RedisStore } from "waymark/stores/redis";
import { SqliteStore } from "waymark/stores/sqlite";
import { useClock } from "../../src/clock.js";
import { rejection } from "../graphs.js";
import { newFolder } from "./folders.js";
import { startRedis, withRedis } from "./redis/server.js";

/** How many steps of a run are kept. */
const keep = 3;

const sqlite = () => new SqliteStore({ path: join(newFolder(), "waymark.db"), keep });

/** The stores that must behave as the model does, and how many sequences each is tried with. */
const stores: readonly (readonly [
  name: string,
  open: () => CheckpointStore | Promise<CheckpointStore>,
  sequences: number,
])[] = [
  ["MemoryStore", () => new MemoryStore({ keep }), 300],
  ["FileStore", () => new FileStore({ root: newFolder(), durability: "os", keep }), 60],
  ["SqliteStore", sqlite, 60],
  ["PostgresStore on PGlite", () => new PostgresStore({ client: new PGlite(), keep }), 20],
  ["a mirror", () => mirror(sqlite(), [sqlite()], { mode: "sync" }), 20],
];

interface Count {
  readonly count: number;
}

/** Something that is done to the store; `run` and `at` choose among the runs and checkpoints that are there. */
type Action =
  | { readonly kind: "start" }
  | { readonly kind: "step" | "again" | "progress" | "finish" | "delete"; readonly run: number }
  | { readonly kind: "stale" | "fork" | "rollback"; readonly run: number; readonly at: number }
  | { readonly kind: "prune"; readonly maxRuns: number };

const run = fc.nat(5);
const one = (kind: "step" | "again" | "progress" | "finish" | "delete") =>
  fc.record({ kind: fc.constant(kind), run });
const older = (kind: "stale" | "fork" | "rollback") =>
  fc.record({ kind: fc.constant(kind), run, at: fc.nat(9) });

const actions: fc.Arbitrary<Action[]> = fc.array(
  fc.oneof(
    { weight: 2, arbitrary: fc.record({ kind: fc.constant("start" as const) }) },
    { weight: 8, arbitrary: one("step") },
    { weight: 2, arbitrary: one("again") },
    { weight: 6, arbitrary: one("progress") },
    { weight: 2, arbitrary: one("finish") },
    { weight: 1, arbitrary: one("delete") },
    { weight: 1, arbitrary: older("stale") },
    { weight: 2, arbitrary: older("fork") },
    { weight: 2, arbitrary: older("rollback") },
    {
      weight: 1,
      arbitrary: fc.record({ kind: fc.constant("prune" as const), maxRuns: fc.nat(3) }),
    },
  ),
  { minLength: 1, maxLength: 40 },
);

/** A checkpoint as the model has it. */
interface Kept {
  readonly state: State<Count>;
  readonly parentId: string;
}

const isUnfinished = ({ state }: Kept): boolean => state.toJSON().unfinished !== undefined;

/** Of each run every checkpoint ever saved, newest first, and by that what a store has to say. */
class Model {
  readonly #runs = new Map<string, Kept[]>();

  save(state: State<Count>, parentId: string): void {
    const before = this.#runs.get(state.runId) ?? [];
    this.#runs.delete(state.runId);
    this.#runs.set(state.runId, [{ state, parentId }, ...before]);
  }

  delete(runId: string): void {
    this.#runs.delete(runId);
  }

  /** The ids of all runs, the last saved first. */
  get ids(): string[] {
    return [...this.#runs.keys()].reverse();
  }

  get(runId: string): readonly Kept[] {
    return this.#runs.get(runId) ?? [];
  }

  /**
   * What is left of a run: of its newest steps the newest checkpoint, and where it is inside a node, that; two
   * at least.
   */
  kept(runId: string): Kept[] {
    const all = this.get(runId);
    const byStep = new Map<number, Kept>();
    for (const one of all) {
      if (!isUnfinished(one) && !byStep.has(one.state.step)) byStep.set(one.state.step, one);
    }
    const steps = [...byStep.values()].slice(0, keep);
    const [newest] = all;
    const left = newest !== undefined && isUnfinished(newest) ? [newest, ...steps] : steps;
    return left.length === 1 ? all.slice(0, 2) : left;
  }

  /** The finished runs beyond the newest so many. */
  prunable(maxRuns: number): string[] {
    const finished = this.ids.filter((id) => this.get(id)[0]?.state.status === "completed");
    return finished.slice(maxRuns);
  }
}

/** A graph without end, for forks and rollbacks. */
function graphOn(store: CheckpointStore) {
  return new StateGraph<Count>({ checkpoint: { store, interval: 1, keep } })
    .addNode("odd", (state) => state)
    .addNode("even", (state) => state)
    .addEdge("odd", "even")
    .addEdge("even", "odd")
    .addEdge("odd", END, () => false)
    .setEntryPoint("odd");
}

/** The State after one more node. */
function stepped(from: State<Count>, status: "in_progress" | "completed"): State<Count> {
  const { unfinished: _unfinished, error: _error, ...json } = from.toJSON();
  const step = from.step + 1;
  const checkpointNode = step % 2 === 0 ? "even" : "odd";
  const data = { count: from.data.count + 1 };
  const reason = status === "completed" ? "complete" : "interval";
  return State.fromJSON<Count>({ ...json, data, step, checkpointNode, status, reason });
}

/** The State inside the next node, with one result more than before. */
function inside(from: State<Count>): State<Count> {
  const { unfinished, ...json } = from.toJSON();
  const count = (unfinished?.count ?? 0) + 1;
  const results = Object.fromEntries(Array.from({ length: count }, (_, at) => [`k${at}`, at]));
  const node = from.step % 2 === 0 ? "odd" : "even";
  const status = "in_progress";
  return State.fromJSON<Count>({
    ...json,
    status,
    reason: "once",
    unfinished: { node, results, count },
  });
}

/** What a store says of all its runs is what the model says. */
async function compare(store: CheckpointStore, model: Model): Promise<void> {
  expect((await store.list()).sort()).toEqual([...model.ids].sort());
  expect((await store.runs?.())?.map(({ runId }) => runId)).toEqual(model.ids);
  for (const runId of model.ids) {
    const kept = model.kept(runId);
    const history = (await store.history?.(runId)) ?? [];
    expect(history.map(({ bytes: _bytes, metadata: _metadata, ...entry }) => entry)).toEqual(
      kept.map((one) => ({
        sequence: one.state.sequence,
        step: one.state.step,
        node: one.state.checkpointNode,
        phase: "",
        status: one.state.status,
        timestamp: one.state.timestamp,
        savedAt: one.state.savedAt,
        checkpointId: one.state.checkpointId,
        parentId: one.parentId,
        reason: one.state.reason,
        unfinished: isUnfinished(one),
      })),
    );
    for (const { state } of model.get(runId)) {
      const { checkpointId } = state;
      const isKept = kept.some((one) => one.state === state);
      const loaded = await store.load<Count>(runId, { checkpointId }).catch(() => undefined);
      expect(loaded?.toJSON()).toEqual(isKept ? state.toJSON() : undefined);
      expect(await store.find?.(checkpointId)).toBe(isKept ? runId : undefined);
    }
  }
}

/** Does one thing to the store and to the model. */
async function perform(action: Action, store: CheckpointStore, model: Model): Promise<void> {
  const save = async (state: State<Count>): Promise<void> => {
    const parentId = state.checkpointId;
    model.save(await store.save(state, { keep }), parentId);
  };
  if (action.kind === "start") return save(State.create<Count>({ count: 0 }));
  if (action.kind === "prune") {
    const { maxRuns } = action;
    const wanted = model.prunable(maxRuns);
    expect(await store.prune?.({ maxRuns, dryRun: true })).toEqual(wanted);
    expect(await store.prune?.({ maxRuns })).toEqual(wanted);
    for (const runId of wanted) model.delete(runId);
    return;
  }
  const runId = model.ids[action.run % model.ids.length] ?? "";
  const [newest] = model.get(runId);
  if (newest === undefined) return;
  switch (action.kind) {
    case "step":
      return save(stepped(newest.state, "in_progress"));
    case "finish":
      return save(stepped(newest.state, "completed"));
    case "again":
      return save(newest.state);
    case "progress":
      return save(inside(newest.state));
    case "delete":
      await store.delete(runId);
      return model.delete(runId);
    case "stale": {
      const stale = model.get(runId)[1 + action.at];
      if (stale === undefined) return;
      await rejection(store.save(stale.state, { keep }), CheckpointConflictError);
      return;
    }
    case "fork":
    case "rollback": {
      const kept = model.kept(runId);
      const { checkpointId } = (kept[action.at % kept.length] ?? newest).state;
      model.save(await graphOn(store)[action.kind](runId, checkpointId), checkpointId);
    }
  }
}

/** What a store says is what the model says, whatever is done to both. */
async function checkStore(store: CheckpointStore, numRuns: number): Promise<void> {
  // Each action has a moment of its own, so that there is one order of runs.
  let time = Date.UTC(2030, 0, 1);
  const restore = useClock({
    now: () => time,
    after: (ms, callback) => {
      const timer = setTimeout(callback, ms);
      return () => clearTimeout(timer);
    },
  });
  try {
    const law = async (sequence: readonly Action[]): Promise<void> => {
      for (const runId of await store.list()) await store.delete(runId);
      const model = new Model();
      for (const action of [{ kind: "start" } as const, ...sequence]) {
        time += 1000;
        await perform(action, store, model);
      }
      await compare(store, model);
    };
    await fc.assert(fc.asyncProperty(actions, law), { numRuns });
  } finally {
    restore();
    await store.close?.();
  }
}

test.each(stores)("%s always has the history of the model", async (_name, open, numRuns) =>
  checkStore(await open(), numRuns),
);

withRedis("RedisStore", () => {
  test("always has the history of the model", async () => {
    const server = await startRedis(["--appendonly", "yes", "--appendfsync", "no"]);
    await checkStore(new RedisStore({ url: server.url, keep }), 40);
    await server.stop();
  });
});
