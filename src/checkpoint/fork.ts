import type { GraphIdentity } from "../state/record.js";
import { newRunId } from "../state/run-id.js";
import { type Patch, State } from "../state/state.js";
import { withChainData } from "./chain-link.js";

/** A new run that goes on from a checkpoint, with changes merged in. Nothing of it is saved yet. */
export function forked<D extends object>(
  source: State<D>,
  changes: Patch<D>,
  graph: GraphIdentity | undefined,
): State<D> {
  const { runId, checkpointId, unfinished } = source;
  const change = (data: object): object => ({ ...data, ...changes });
  const merged = State.progressed(source.merge(changes), {
    unfinished: unfinished && withChainData(unfinished, change),
  });
  const parent = Object.freeze({ runId, checkpointId });
  const identity = { runId: newRunId(), parent, graph };
  const saved = { checkpointId, sequence: 0 };
  return State.fromFields<D>({ ...State.fields(merged), identity, saved });
}
