import { OPAQUE } from "./json-traits.js";
import { newProgress, type Progress, type StateRecord } from "./record.js";
import { recordOf, type State, sinkOf, stateOf } from "./state.js";

/** The run's next State: all of `from`, but the data of `to` and the new progress. */
export function advance<D extends object>(
  from: State<D>,
  to: State<D>,
  progress: Progress,
): State<D> {
  const { identity, saved } = recordOf(from);
  const { data, traits } = recordOf(to);
  return stateOf({ data, traits, identity, progress, saved }, sinkOf(from));
}

/** The same State, with some parts of its record changed. */
export function withRecord<D extends object>(
  state: State<D>,
  changes: Partial<StateRecord>,
): State<D> {
  return stateOf({ ...recordOf(state), ...changes }, sinkOf(state));
}

/**
 * The same State, with some of its progress changed. Its fields are in the order of every other progress, and not in
 * that of a spread: the loop's code is the faster, the fewer shapes it has met.
 */
export function withProgress<D extends object>(
  state: State<D>,
  changes: Partial<Progress>,
): State<D> {
  return advance(state, state, Object.assign(newProgress(), progressOf(state), changes));
}

/** Whether a save must walk the data, because it may hold what can't be frozen or saved. */
export function isOpaque<D extends object>(state: State<D>): boolean {
  const { traits, progress } = recordOf(state);
  return (traits & OPAQUE) !== 0 || progress.unfinished?.opaque === true;
}

/** How far a State's run is. */
export function progressOf<D extends object>(state: State<D>): Progress {
  return recordOf(state).progress;
}
