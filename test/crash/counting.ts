import { type CheckpointStore, isWaymarkError, State } from "waymark";
import { CrashDisk } from "../../src/testing/crash-file-system.js";
import { nextStep } from "../stores/folders.js";

/** The data of a run that counts: its list has as many items as it has counted. */
export interface Count {
  readonly n: number;
  readonly list: readonly string[];
}

type Status = "in_progress" | "completed";

/** A new disk, on which only the folder around the root is. */
export async function newDisk(): Promise<CrashDisk> {
  const disk = new CrashDisk();
  await disk.mount().mkdir("/data");
  return disk.settled();
}

export const start = (runId = "run"): State<Count> =>
  State.create<Count>({ n: 0, list: [] }, { runId });

/** Saves the next State of a run and notes on the disk what is promised when. */
export async function count(
  store: CheckpointStore,
  disk: CrashDisk,
  from: State<Count>,
  status: Status = "in_progress",
): Promise<State<Count>> {
  const { runId, data } = from;
  const n = data.n + 1;
  const next = nextStep(from.merge({ n, list: [...data.list, `item ${n}`] }));
  disk.mark(`saving ${runId} ${n}`);
  const saved = await store.save(
    next.status === status ? next : State.fromJSON<Count>({ ...next.toJSON(), status }),
  );
  disk.mark(`saved ${runId} ${n}`);
  return saved;
}

/** Counts from 1 up. */
export async function countTo(
  store: CheckpointStore,
  disk: CrashDisk,
  end: number,
  runId = "run",
): Promise<State<Count>> {
  let state = start(runId);
  while (state.data.n < end) state = await count(store, disk, state);
  return state;
}

/** What may be found of a run after a power cut: the last that was acknowledged, or the one in flight. */
export function allowed(marks: readonly string[], runId = "run", atLeast = 0): number[] {
  return ["saved", "saving"].map((word) => {
    const numbers = marks.flatMap((mark) =>
      mark.startsWith(`${word} ${runId} `) ? [Number(mark.split(" ").at(-1))] : [],
    );
    return Math.max(atLeast, ...numbers);
  });
}

/** The newest State of a run; `undefined` when there is none. */
export async function load(
  store: CheckpointStore,
  runId = "run",
  events: string[] = [],
): Promise<State<Count> | undefined> {
  try {
    return await store.load<Count>(runId, {}, { emit: (type) => events.push(type) });
  } catch (error) {
    if (isWaymarkError(error, "CHECKPOINT_NOT_FOUND")) return undefined;
    throw error;
  }
}
