import { isoNow } from "../clock.js";
import { withRecord } from "../state/derive.js";
import type { LedgerLimits } from "../state/ledger.js";
import { mergedMetadata } from "../state/metadata.js";
import { type GraphIdentity, type Metadata, newProgress, unsaved } from "../state/record.js";
import { recordOf, type State } from "../state/state.js";

/** A State at the beginning of a run of this graph; one that has run before starts over. */
export function restarted<D extends object>(
  state: State<D>,
  graph: GraphIdentity,
  settings: { readonly ledger: LedgerLimits; readonly metadata: Metadata },
): State<D> {
  const record = recordOf(state);
  const isFresh = state.status === "pending" && state.step === 0;
  const progress = isFresh ? record.progress : newProgress();
  const startedAt = isFresh ? state.startedAt : isoNow();
  return withRecord(state, {
    identity: {
      ...record.identity,
      ...mergedMetadata(record.identity, settings.metadata),
      ...{ graph, startedAt },
    },
    progress: { ...progress, ledger: progress.ledger.withLimits(settings.ledger) },
    saved: isFresh ? record.saved : unsaved,
  });
}
