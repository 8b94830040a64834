import { type Identity, newProgress, type Progress, type StateRecord } from "./fields.js";
import { OPAQUE } from "./json-traits.js";
import { checkMetadata, keptMetadata, type Metadata } from "./metadata.js";
import type { Reason } from "./reasons.js";
import { recordOf, type State, sinkOf, stateOf } from "./state.js";

/** The run's next State: `from` with the data of `to` and the new progress. */
export function advance<D extends object>(
  from: State<D>,
  to: State<D>,
  progress: Progress,
): State<D> {
  const { identity, saved } = recordOf(from);
  const { data, traits } = recordOf(to);
  return stateOf({ data, traits, identity, progress, saved }, sinkOf(from));
}

/** The same State with parts of its record changed. */
export function withRecord<D extends object>(
  state: State<D>,
  changes: Partial<StateRecord>,
): State<D> {
  return stateOf({ ...recordOf(state), ...changes }, sinkOf(state));
}

/** Changes to parts of a State's progress, with a reason of waymark's own, or of type `R`. */
export type ProgressChanges<R extends string = Reason> = Partial<Omit<Progress, "reason">> & {
  readonly reason?: R;
};

/**
 * The same State with parts of its progress changed. The fields keep the order of every other progress
 * object, which a spread would not: the fewer shapes the loop sees, the faster it is.
 */
export function withProgress<D extends object, R extends string = Reason>(
  state: State<D>,
  changes: ProgressChanges<NoInfer<R>>,
): State<D> {
  return advance(state, state, Object.assign(newProgress(""), progressOf(state), changes));
}

/** Whether a save must walk the data, because it may hold what can't be frozen or saved. */
export function isOpaque<D extends object>(state: State<D>): boolean {
  const { traits, progress } = recordOf(state);
  return (traits & OPAQUE) !== 0 || progress.unfinished?.opaque === true;
}

/** The progress of a State's run. */
export function progressOf<D extends object>(state: State<D>): Progress {
  return recordOf(state).progress;
}

/** A run's metadata, and which of its keys come from the graph. */
type MetadataOf = Pick<Identity, "metadata" | "inherited">;

/**
 * A run's metadata combined with that of the graph that runs it now. The run's own values stay; those from an
 * earlier graph are replaced.
 *
 * @throws ConfigError if both together are too large.
 */
export function mergedMetadata(run: MetadataOf, graph: Metadata): MetadataOf {
  const { metadata, inherited } = run;
  const ofGraph = new Set(inherited);
  const isOwn = (key: string): boolean => Object.hasOwn(metadata, key) && !ofGraph.has(key);
  const added = Object.entries(graph).filter(([key]) => !isOwn(key));
  if (added.every(([key, value]) => ofGraph.has(key) && metadata[key] === value)) return run;
  const merged = { ...metadata, ...Object.fromEntries(added) };
  checkMetadata("metadata", merged);
  for (const [key] of added) ofGraph.add(key);
  return { metadata: keptMetadata(merged), inherited: Object.freeze([...ofGraph]) };
}
