import type { CheckpointStore, ExportedCheckpoint } from "../../checkpoint/store.js";
import { usage } from "../exit.js";
import type { OpenStore } from "../store/open.js";

/** The checkpoints of a run, oldest first. */
export async function* exportRun(
  store: CheckpointStore,
  runId: string,
): AsyncGenerator<ExportedCheckpoint> {
  if (store.export !== undefined) {
    yield* store.export(runId);
  } else if (store.history !== undefined) {
    for (const { checkpointId, parentId } of (await store.history(runId)).reverse()) {
      yield { state: await store.load<object>(runId, { checkpointId }), parentId };
    }
  } else {
    yield { state: await store.load<object>(runId), parentId: "" };
  }
}

/**
 * Keeps checkpoints, each with its own id.
 *
 * @throws CommandError when the store can't.
 */
export async function importRun(
  { store, name }: OpenStore,
  checkpoints: AsyncIterable<ExportedCheckpoint>,
): Promise<void> {
  if (store.import === undefined) throw usage(`${name} can't import runs`);
  await store.import(checkpoints);
}

/** Counts what goes by. */
export class Counter {
  count = 0;

  async *through<T>(items: AsyncIterable<T>): AsyncGenerator<T> {
    for await (const item of items) {
      this.count++;
      yield item;
    }
  }
}
