import assert from "node:assert/strict";
import type { CheckpointStore, SaveOptions } from "../../checkpoint/store.js";
import { useClock } from "../../clock.js";
import { Mutex } from "../../concurrency.js";
import { type ErrorCode, isWaymarkError } from "../../errors.js";
import { State } from "../../state/state.js";

/** Opens the same data with another instance of the store. */
type Reopen = (store: CheckpointStore) => CheckpointStore | Promise<CheckpointStore>;

/** One test of the suite: its name, and what it does to a new, empty store. */
export type Case = readonly [
  name: string,
  run: (store: CheckpointStore, reopen: Reopen | undefined) => Promise<void>,
];

/** The data of the suite's runs. */
export interface Notes {
  topic: string;
  list?: number[];
  any?: unknown;
}

/** A new run. */
export const notes = (runId?: string): State<Notes> =>
  State.create<Notes>({ topic: "cairns" }, runId === undefined ? {} : { runId });

/** A saved State without its id, sequence and time of saving, for comparing what went in with what came out. */
export function content<D extends object>(state: State<D>): unknown {
  const { checkpointId: _id, sequence: _sequence, savedAt: _savedAt, ...rest } = state.toJSON();
  return rest;
}

/** Checks that an action fails with one of these codes. */
export async function refuses(
  action: () => Promise<unknown>,
  ...codes: readonly ErrorCode[]
): Promise<void> {
  const outcome = await (async () => action())().then(
    () => "it succeeded",
    (error: unknown) => error,
  );
  const fits = codes.some((code) => isWaymarkError(outcome, code));
  assert.ok(fits, `must be an error with the code ${codes.join(" or ")}; got ${String(outcome)}`);
}

/** The State after one more node, built on the given one. */
export function stepAfter(state: State<Notes>, phase = ""): State<Notes> {
  const step = state.step + 1;
  const next = state.set("list", [step]).setCheckpointNode(`node-${step}`).toJSON();
  const { unfinished: _unfinished, ...done } = next;
  return State.fromJSON<Notes>({ ...done, step, phase, status: "in_progress", reason: "interval" });
}

/** The State inside an unfinished node that has `count` results so far, built on the given one. */
export function insideNode(state: State<Notes>, count: number): State<Notes> {
  const results = Object.fromEntries(Array.from({ length: count }, (_, at) => [`item-${at}`, at]));
  const unfinished = { node: `node-${state.step + 1}`, results, count };
  return State.fromJSON<Notes>({ ...state.toJSON(), unfinished, reason: "once" });
}

/** Saves a run of several steps, each building on the one before. */
export async function saveSteps(
  store: CheckpointStore,
  steps: number,
  runId?: string,
  options?: SaveOptions,
): Promise<State<Notes>[]> {
  const saved: State<Notes>[] = [];
  let state = notes(runId);
  for (let step = 1; step <= steps; step++) {
    state = await store.save(stepAfter(state), options);
    saved.push(state);
  }
  return saved;
}

/** The newest of the States that were saved. */
export function lastOf(saved: readonly State<Notes>[]): State<Notes> {
  const last = saved.at(-1);
  assert.ok(last);
  return last;
}

export async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const item of items) all.push(item);
  return all;
}

/** Makes `count` progress saves of one node, each building on the one before. */
export async function saveProgress(
  store: CheckpointStore,
  from: State<Notes>,
  saves: number,
): Promise<State<Notes>> {
  let state = from;
  for (let count = 1; count <= saves; count++) state = await store.save(insideNode(state, count));
  return state;
}

const clock = new Mutex();

/** Runs an action with the clock set to a time, which is then the `savedAt` of what a store saves. */
export function at<T>(moment: string, action: () => Promise<T>): Promise<T> {
  return clock.run(async () => {
    const restore = useClock({ now: () => Date.parse(moment), after: realTimer });
    try {
      return await action();
    } finally {
      restore();
    }
  });
}

/** A store's own timers must still fire meanwhile. */
function realTimer(ms: number, callback: () => void): () => void {
  const timer = setTimeout(callback, ms);
  return () => clearTimeout(timer);
}

/** Waits until a check passes, for what a store does in the background. */
export async function eventually(check: () => Promise<void>): Promise<void> {
  for (let tries = 0; ; tries++) {
    try {
      return await check();
    } catch (error) {
      if (tries === 200) throw error;
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  }
}
