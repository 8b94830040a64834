import type { CheckpointStore, ExportedCheckpoint } from "../../checkpoint/store.js";
import { usage } from "../exit.js";
import { type Finding, findingText, inspect } from "../inspect.js";
import type { OpenStore } from "../store/open.js";

const damages: ReadonlySet<Finding["problem"]> = new Set(["corrupt", "lost", "unreadable"]);

/**
 * Why a run can't be copied; `undefined` if it can. Copied without its damaged checkpoint, the run would repeat
 * work that is already done.
 */
export async function damageOf(opened: OpenStore, runId: string): Promise<string | undefined> {
  const { findings } = await inspect(opened, runId);
  const found = findings.find(({ problem }) => damages.has(problem));
  return found && findingText(found);
}

/**
 * Imports checkpoints with their ids.
 *
 * @throws CommandError if the store can't import.
 */
export async function importRun(
  { store, name }: OpenStore,
  checkpoints: AsyncIterable<ExportedCheckpoint>,
): Promise<void> {
  if (store.import === undefined) throw usage(`${name} can't import runs`);
  await store.import(checkpoints);
}

/**
 * Removes what an interrupted copy left behind: the beginning of a run and nothing else. A run that has continued
 * since, or that is being worked on, stays.
 */
export async function removePart(
  target: CheckpointStore,
  source: CheckpointStore,
  runId: string,
): Promise<void> {
  const [left, whole] = [await idsIn(target, runId), await idsIn(source, runId)];
  const isPart = left.length < whole.length && left.every((id, at) => id === whole[at]);
  if (left.length === 0 || !isPart) return;
  const claim = await target.claim?.(runId);
  if (claim === undefined && target.claim !== undefined) return;
  try {
    await target.delete(runId);
  } finally {
    await claim?.release();
  }
}

async function idsIn(store: CheckpointStore, runId: string): Promise<string[]> {
  const history = (await store.history?.(runId)) ?? [];
  return history.map(({ checkpointId }) => checkpointId).reverse();
}

/** Counts the items of an iteration. */
export class Counter {
  count = 0;

  async *through<T>(items: AsyncIterable<T>): AsyncGenerator<T> {
    for await (const item of items) {
      this.count++;
      yield item;
    }
  }
}
