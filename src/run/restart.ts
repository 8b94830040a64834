import type { LedgerLimits } from "../state/ledger.js";
import { type GraphIdentity, newProgress, unsaved } from "../state/record.js";
import { State } from "../state/state.js";

/** A State at the beginning of a run of this graph; one that has run before starts over. */
export function restarted<D extends object>(
  state: State<D>,
  graph: GraphIdentity,
  limits: LedgerLimits,
): State<D> {
  const fields = State.fields(state);
  const isFresh = state.status === "pending" && state.step === 0;
  const progress = isFresh ? fields.progress : newProgress();
  return State.fromFields<D>(
    {
      ...fields,
      identity: { ...fields.identity, graph },
      progress: { ...progress, ledger: progress.ledger.withLimits(limits) },
      saved: isFresh ? fields.saved : unsaved,
    },
    State.sinkOf(state),
  );
}
