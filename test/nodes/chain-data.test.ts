import { expect, test } from "vitest";
import {
  ChainError,
  chain,
  ExecutionError,
  type GraphConfig,
  type ItemContext,
  MemoryStore,
  type NodeFunction,
  route,
  State,
} from "waymark";
import { forkRun } from "../../src/checkpoint/fork.js";
import type { ChainOptions } from "../../src/nodes/chain.js";
import { rejection } from "../graphs.js";
import { only } from "./nodes.js";

interface Old {
  readonly sum: number;
}
interface New {
  readonly total: number;
  readonly totals?: readonly number[];
}

const items = [1, 2, 3];
const migrations = { 0: ({ sum }: Old): New => ({ total: sum }) };

/** Adds up the items; of the older version, it is stopped at the third. */
const older = (options: ChainOptions<Old> = {}): NodeFunction<Old> =>
  chain(
    items,
    (state: State<Old>, item) => {
      if (item === 3) throw new Error("stop");
      return { sum: state.data.sum + item };
    },
    options,
  );
const newer = (options: ChainOptions<New> = {}): NodeFunction<New> =>
  chain(items, (state: State<New>, item) => ({ total: state.data.total + item }), options);

/** What the older graph leaves half-way, and how a newer one continues it. */
async function change(before: NodeFunction<Old>, after: NodeFunction<New>): Promise<State<New>> {
  const checkpoint = { store: new MemoryStore(), interval: 1 };
  const start = State.create<Old>({ sum: 10 }, { runId: "r" });
  await rejection(only(before, { checkpoint }).execute(start), ExecutionError);
  const config: GraphConfig<New> = { checkpoint, version: 1, migrations };
  return only(after, config).resume("r");
}

test("a stopped chain continues from its migrated data", async () => {
  expect((await change(older(), newer())).data).toEqual({ total: 16 });
});

test("a chain inside a route continues from migrated data, too", async () => {
  const before = route<Old>(() => "add", { add: older() });
  const after = route<New>(() => "add", { add: newer() });
  expect((await change(before, after)).data).toEqual({ total: 16 });
});

test("intermediate States are migrated, too", async () => {
  const before = older({ intermediate: (state) => state });
  const after = newer({
    intermediate: (state, states) =>
      state.set(
        "totals",
        states.map(({ data }) => data.total),
      ),
  });
  expect((await change(before, after)).data).toEqual({ total: 16, totals: [10, 11, 13, 16] });
});

test("a fork inside a chain continues with its changes", async () => {
  interface Bill {
    readonly sum: number;
    readonly rate: number;
  }
  let isBroken = true;
  const node = chain(items, (state: State<Bill>, item) => {
    if (isBroken && item === 3) throw new Error("stop");
    return { sum: state.data.sum + item * state.data.rate };
  });
  const store = new MemoryStore();
  const graph = only(node, { checkpoint: { store, interval: 1 } });
  const start = State.create<Bill>({ sum: 0, rate: 1 }, { runId: "r" });
  await rejection(graph.execute(start), ExecutionError);
  isBroken = false;
  const forks = [
    await graph.fork("r", 0, { rate: 100 }),
    // As the command does it, which has no graph.
    await forkRun(store, "r", { step: 0 }, { rate: 100 }),
  ];
  for (const { runId } of forks)
    expect((await graph.resume(runId)).data).toEqual({ sum: 303, rate: 100 });
  expect((await graph.resume("r")).data).toEqual({ sum: 6, rate: 1 });
});

test("a node's own remembered values stay unchanged, whatever their keys", async () => {
  const checkpoint = { store: new MemoryStore(), interval: 1 };
  const own = { chain: 7, "supply chain": { completed: 1 }, "state 1": { sum: 1 } };
  const before: NodeFunction<Old> = async (_state, context) => {
    for (const [key, value] of Object.entries(own)) await context.remember(key, value);
    throw new Error("stop");
  };
  const start = State.create<Old>({ sum: 10 }, { runId: "r" });
  await rejection(only(before, { checkpoint }).execute(start), ExecutionError);
  const found: unknown[] = [];
  const after: NodeFunction<New> = (state, context) => {
    for (const key of Object.keys(own)) found.push(context.recall(key));
    return state;
  };
  await only(after, { checkpoint, version: 1, migrations }).resume("r");
  expect(found).toEqual(Object.values(own));
});

test("a step that returns the State of another run fails, and nothing of it is kept", async () => {
  const checkpoint = { store: new MemoryStore(), interval: 1 };
  const other = State.create<Old>({ sum: 99 }, { runId: "other" });
  const step = (state: State<Old>, item: number, _context: ItemContext<Old>) =>
    item === 2 && isWrong ? other : { sum: state.data.sum + item };
  let isWrong = true;
  const graph = only(chain(items, step), { checkpoint });
  const start = State.create<Old>({ sum: 10 }, { runId: "r" });
  const { cause } = await rejection(graph.execute(start), ExecutionError);
  expect(cause).toBeInstanceOf(ChainError);
  expect(cause).toMatchObject({
    index: 1,
    cause: { message: 'step returned the State of run "other": build on the State it is given' },
  });
  isWrong = false;
  expect((await graph.resume("r")).data).toEqual({ sum: 16 });
});
