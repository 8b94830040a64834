import type { ItemError } from "../errors.js";
import { guard } from "../events.js";
import type { AnyResult, CheckedResult, NodeFunction, Saves } from "../graph/node.js";
import { callable, checkOptions, flag, integer, timeLimit } from "../options.js";
import { factoryContext } from "../run/visit/context.js";
import { isPlainObject } from "../state/shape.js";
import type { Patch, State } from "../state/state.js";
import { type Change, checkSaves, type ItemContext, type Items, itemsOf } from "./items.js";
import { oncePerNode } from "./once-per-node.js";
import { Pool } from "./pool.js";

/** Works on one item of a parallel node; its result must be something a checkpoint can hold. */
export type ParallelWorker<D extends object, I, R> = (
  state: State<D>,
  item: I,
  context: ItemContext<D>,
) => R | Promise<R>;

/** Options of {@link map}. */
export interface MapOptions {
  /** How many items to work on at once; at least 1. By default twice the number of processors, at most 16. */
  readonly concurrency?: number | undefined;
  /** Milliseconds one item may take; then its signal aborts and it fails. No limit by default. */
  readonly timeout?: number | undefined;
}

/** Options of {@link parallel}. */
export interface ParallelOptions<D extends object, R, C = Change<D>> extends MapOptions {
  /**
   * What the first error does. `true`, the default: the node fails, and the signals of running items abort.
   * `false`: the others continue, and the node fails only if all of them do.
   */
  readonly failFast?: boolean;
  /**
   * Builds the node's result from the item results, in the order of the list. With `failFast: false` it also
   * gets the failed items, whose results are missing. By default the State is unchanged; in a graph with
   * `reducers`, objects returned by the items are merged through them, in the order of the list.
   */
  readonly merge?: (state: State<D>, results: readonly R[], errors: readonly ItemError[]) => C;
  /**
   * When results are saved: `"item"`, the default, as they come in; `"layer"` with the node; a number *n*,
   * after every *n* results.
   */
  readonly saves?: Saves;
  /**
   * Called after each item that succeeds, with the number done, the total, and its result. It can't disturb the
   * node.
   */
  readonly onProgress?: (completed: number, total: number, result: R) => unknown;
}

// Without reading a property, so that a bundler can leave it out.
const concurrencyCheck = integer(1, true);
const mapChecks = { concurrency: concurrencyCheck, timeout: timeLimit };
const checks = {
  concurrency: concurrencyCheck,
  failFast: flag,
  merge: callable,
  timeout: timeLimit,
  saves: checkSaves,
  onProgress: callable,
};

/**
 * A node that works on many items, several at a time. Results are saved as they come in, so a retry or a resume
 * works only on the missing ones. The node's `retry` applies to each item. An item that pauses lets the others
 * finish; then the run pauses, once for all of them.
 *
 * @throws ParallelError from the node, with each item that failed and the results of the others.
 * @throws ConfigError if an option is invalid.
 *
 * @example
 * ```ts
 * import { parallel, State, StateGraph } from "waymark";
 *
 * const graph = new StateGraph<{ urls: string[]; sizes: number[] }>()
 *   .addNode(
 *     "measure",
 *     parallel((state) => state.data.urls, async (_state, url) => url.length, {
 *       concurrency: 2,
 *       merge: (_state, sizes) => ({ sizes }),
 *     }),
 *   )
 *   .setEntryPoint("measure")
 *   .setExitPoint("measure");
 *
 * const final = await graph.execute(State.create({ urls: ["/a", "/bc"], sizes: [] as number[] }));
 * console.log(final.data.sizes.join()); // 2,3
 * ```
 */
export function parallel<D extends object, I, R, C extends AnyResult<D> = Change<D>>(
  items: Items<D, I>,
  worker: ParallelWorker<D, I, R>,
  options?: ParallelOptions<D, R, CheckedResult<D, C, Change<D>>>,
): NodeFunction<D>;
export function parallel<D extends object, I, R>(
  items: Items<D, I>,
  worker: ParallelWorker<D, I, R>,
  options: ParallelOptions<D, R> = {},
): NodeFunction<D> {
  callable("worker", worker);
  checkOptions("parallel", options, checks);
  const { concurrency, merge, onProgress, failFast, timeout, saves = "item" } = options;
  const progress = onProgress && guard("onProgress", onProgress);
  return oncePerNode<D>("parallel", async (state, context) => {
    const pool = new Pool<D, I, R>(context, itemsOf(items, state), {
      ...{ concurrency, failFast, saves, onProgress: progress },
      worker: (item, scope) => worker(state, item, scope),
      options: () => ({ timeout }),
    });
    const results = await pool.run();
    if (merge !== undefined) return merge(state, results, pool.errors);
    if (context.run.settings.reducers === undefined) return state;
    let next = state;
    for (const result of results)
      if (isPlainObject(result)) next = context.change(next, result as Patch<D>);
    return next;
  });
}

/**
 * A task of a {@link dag} that works on many items at once; its result is the list of their results, in order. Items
 * are saved as the dag's `saves` option says, so a resume works only on the missing ones. The task's `retry` applies
 * to each item.
 *
 * @throws ParallelError from the task, with each item that failed.
 * @throws ConfigError if an option is invalid.
 *
 * @example
 * ```ts
 * import { dag, map, State } from "waymark";
 *
 * const graph = dag<{ words: string[]; lengths: number[] }>()({
 *   words: () => ["way", "mark"],
 *   lengths: { dependsOn: ["words"], run: map(({ data }) => data.words, (_state, word) => word.length) },
 * });
 *
 * const final = await graph.execute(State.create({ words: [] as string[], lengths: [] as number[] }));
 * console.log(final.data.lengths.join()); // 3,4
 * ```
 */
export function map<D extends object, I, R>(
  items: Items<D, I>,
  worker: ParallelWorker<D, I, R>,
  options: MapOptions = {},
): (state: State<D>, context: ItemContext<D>) => Promise<R[]> {
  callable("worker", worker);
  checkOptions("map", options, mapChecks);
  const { concurrency, timeout } = options;
  return async (state, context) => {
    const pool = new Pool<D, I, R>(factoryContext(context), itemsOf(items, state), {
      worker: (item, scope) => worker(state, item, scope),
      concurrency,
      options: () => ({ timeout }),
    });
    return pool.run();
  };
}
