import { isWaymarkError, show } from "../../errors.js";
import type { NodeResult } from "../../graph/node.js";
import { type Reducer, reduced } from "../../state/reducers.js";
import { isPlainObject } from "../../state/shape.js";
import { type Patch, recordOf, State } from "../../state/state.js";
import { Failure } from "./failure.js";

/** Whether a value must be awaited. */
export function isPromise<T>(value: T | Promise<T>): value is Promise<T> {
  return typeof (value as { then?: unknown } | undefined)?.then === "function";
}

/** Converts a node's return value to the run's State. */
export function accept<D extends object>(
  state: State<D>,
  node: string,
  returned: NodeResult<D>,
  reducers?: Readonly<Record<string, Reducer<unknown>>>,
): State<D> {
  if (returned instanceof State) {
    if (isOfRun(returned, state)) return returned;
    const problem = `returned the State of run ${show(returned.runId)}: build on the State it is given`;
    throw new Failure("NODE_RESULT", node, state, `node ${show(node)} ${problem}`);
  }
  if (typeof returned === "object" && returned !== null && isPlainObject(returned)) {
    if (reducers === undefined) return state.merge(returned);
    return state.merge(throughReducers(state, node, returned, reducers));
  }
  const problem = `must return a State or a plain object to merge; got ${show(returned)}`;
  throw new Failure("NODE_RESULT", node, state, `node ${show(node)} ${problem}`);
}

/**
 * Whether two States belong to the same run. Most share one identity object, which is faster to compare than strings.
 */
function isOfRun<D extends object>(one: State<D>, other: State<D>): boolean {
  return recordOf(one).identity === recordOf(other).identity || one.runId === other.runId;
}

function throughReducers<D extends object>(
  state: State<D>,
  node: string,
  returned: object,
  reducers: Readonly<Record<string, Reducer<unknown>>>,
): Patch<D> {
  try {
    return reduced(state.data, returned, reducers) as Patch<D>;
  } catch (error) {
    if (!isWaymarkError(error, "CONFIG")) throw error;
    const problem = `returned a value that its reducer rejects: ${error.message}`;
    throw new Failure("NODE_RESULT", node, state, `node ${show(node)} ${problem}`, error);
  }
}
