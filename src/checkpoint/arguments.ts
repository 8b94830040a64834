import { ConfigError, show } from "../errors.js";
import { type Check, callable, checkOptions, flag, integer } from "../options.js";
import { checkState, State } from "../state/state.js";
import { checkKeep, checkKeepPerPhase } from "./retention.js";
import type { CheckpointAt, ExportedCheckpoint, SaveOptions, StoreContext } from "./store.js";

/** Throws if the value to save is not a State, or an option is invalid. */
export function checkSave(state: unknown, options: SaveOptions): void {
  checkState(state);
  checkContext("options", options);
  if (options.keep !== undefined) checkKeep("keep", options.keep);
  if (options.keepPerPhase !== undefined) checkKeepPerPhase("keepPerPhase", options.keepPerPhase);
}

const step = integer(0);
/** Throws if the value is not a checkpoint id. */
export const checkpointId: Check = (name, value) => {
  if (typeof value !== "string")
    throw new ConfigError(name, `must be a string; got ${show(value)}`);
};

/** Throws if a step or a checkpoint id is invalid. */
export const atChecks: Readonly<Record<keyof CheckpointAt, Check>> = {
  step: (_, value) => step("step", value),
  checkpointId: (_, value) => checkpointId("checkpointId", value),
};

/** Throws if the checkpoint to load is not named by a step or a checkpoint id. */
export function checkAt(at: CheckpointAt, context: StoreContext = {}): void {
  checkOptions("at", at, atChecks);
  checkContext("context", context);
}

function checkContext(name: string, context: StoreContext): void {
  if (typeof context !== "object" || context === null)
    throw new ConfigError(name, `must be an object of options; got ${show(context)}`);
  if (context.emit !== undefined) callable(`${name}.emit`, context.emit);
  if (context.inspect !== undefined) flag(`${name}.inspect`, context.inspect);
}

/** The checkpoints to import. Throws as soon as it reaches one that is invalid. */
export async function* checkImport(
  checkpoints: AsyncIterable<ExportedCheckpoint> | Iterable<ExportedCheckpoint>,
): AsyncGenerator<ExportedCheckpoint> {
  const given = Object(checkpoints);
  if (!(Symbol.asyncIterator in given) && !(Symbol.iterator in given)) {
    const problem = `must be an iterable of checkpoints, as export() gives; got ${show(checkpoints)}`;
    throw new ConfigError("checkpoints", problem);
  }
  for await (const checkpoint of checkpoints) {
    const { state, parentId } = Object(checkpoint) as Partial<ExportedCheckpoint>;
    if (!(state instanceof State) || typeof parentId !== "string") {
      const problem = `must each have a state and a parentId, as export() gives; got ${show(checkpoint)}`;
      throw new ConfigError("checkpoints", problem);
    }
    yield { state, parentId };
  }
}
