import assert from "node:assert/strict";
import type { CheckpointStore } from "../../checkpoint/store.js";
import { type ErrorCode, isWaymarkError } from "../../errors.js";
import { State } from "../../state/state.js";

/** Opens what a store has kept with another instance. */
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

/** A saved State with nothing of the save in it, for comparing what went in with what came out. */
export function content<D extends object>(state: State<D>): unknown {
  const { checkpointId: _id, sequence: _sequence, ...rest } = state.toJSON();
  return rest;
}

/** Checks that something fails, with one of these codes. */
export async function refuses(
  action: () => Promise<unknown>,
  ...codes: readonly ErrorCode[]
): Promise<void> {
  const outcome = await (async () => action())().then(
    () => "it succeeded",
    (error: unknown) => error,
  );
  const fits = codes.some((code) => isWaymarkError(outcome, code));
  assert.ok(fits, `wanted an error with the code ${codes.join(" or ")}, got ${String(outcome)}`);
}

/** Saves a run of several steps, each building on the one before. */
export async function saveSteps(
  store: CheckpointStore,
  steps: number,
  runId?: string,
): Promise<State<Notes>[]> {
  const saved: State<Notes>[] = [];
  let state = notes(runId);
  for (let step = 1; step <= steps; step++) {
    const next = state.set("list", [step]).setCheckpointNode(`node-${step}`);
    state = await store.save(
      State.fromJSON<Notes>({ ...next.toJSON(), step, status: "in_progress" }),
    );
    saved.push(state);
  }
  return saved;
}

/** Waits for what a store does in the background. */
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
