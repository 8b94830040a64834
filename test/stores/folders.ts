import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { type AnyEvent, type CheckpointStore, type EventMap, State } from "waymark";
import type { StoreContext } from "../../src/checkpoint/store.js";
import { recordOf, stateOf } from "../../src/state/state.js";
import { openFile } from "../../src/stores/sqlite/connection.js";

/** A new folder that is removed after the test. */
export function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "waymark-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/**
 * Opens a SQLite file beside a store, by the driver that the store has: two libraries in one process don't
 * see each other's locks.
 */
export function openDatabase(path: string): ReturnType<typeof openFile> {
  if (!existsSync(path)) writeFileSync(path, "");
  return openFile(path, false);
}

/** The data of the runs of these tests. */
export interface Count {
  readonly n: number;
}

/** The State after one more step: a store keeps the newest checkpoint of each step. */
export function nextStep<D extends object>(state: State<D>): State<D> {
  const { progress, ...record } = recordOf(state);
  return stateOf({ ...record, progress: { ...progress, step: progress.step + 1 } });
}

/** Saves a run so many times, each a step; the data of each counts up. */
export async function saveTimes(
  store: CheckpointStore,
  times: number,
  runId = "run",
): Promise<State<Count>> {
  let state = State.create<Count>({ n: 0 }, { runId });
  for (let n = 1; n <= times; n++) state = await store.save(nextStep(state.set("n", n)));
  await store.close?.();
  return state;
}

/** The names in the folder of a run, in order. */
export function filesOf(root: string, run = "run"): string[] {
  return readdirSync(join(root, run)).sort();
}

/** Changes the bytes of a file. */
export function tamper(path: string, change: (bytes: Buffer) => Buffer | string): void {
  writeFileSync(path, change(readFileSync(path)));
}

/** Collects what a store emits. */
export function listen(): {
  context: StoreContext;
  events: { type: keyof EventMap; data: AnyEvent["data"] }[];
} {
  const events: { type: keyof EventMap; data: AnyEvent["data"] }[] = [];
  const emit = <T extends keyof EventMap>(type: T, data: EventMap[T]): void => {
    events.push({ type, data: data as AnyEvent["data"] });
  };
  return { context: { emit }, events };
}
