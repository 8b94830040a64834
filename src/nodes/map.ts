import { callable, checkOptions, integer, timeLimit } from "../options.js";
import { factoryContext } from "../run/context.js";
import type { State } from "../state/state.js";
import { type ItemContext, type Items, itemsOf } from "./items.js";
import type { ParallelWorker } from "./parallel.js";
import { Pool } from "./pool.js";

/** Options of {@link map}. */
export interface MapOptions {
  /** How many items to work on at once; at least 1. By default twice the number of processors, at most 16. */
  readonly concurrency?: number | undefined;
  /** Milliseconds one item may take; then its signal aborts and it fails. No limit by default. */
  readonly timeout?: number | undefined;
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
  checkOptions("map", options, { concurrency: integer(1, true), timeout: timeLimit });
  const { concurrency, timeout } = options;
  return async (state, context) => {
    const pool = new Pool<D, I, R>(factoryContext(context), itemsOf(items, state), {
      worker: (item, scope) => worker(state, item, scope),
      concurrency,
      options: () => ({ timeout }),
    });
    return pool.inOrder(await pool.run());
  };
}
