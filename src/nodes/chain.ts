import type { Immutable } from "immer";
import { guard } from "../events.js";
import type { NodeContext, NodeFunction } from "../graph/node.js";
import { callable, checkOptions } from "../options.js";
import { isStop, messageOf } from "../run/failure.js";
import { PauseSignal } from "../run/pauses.js";
import { type Patch, State } from "../state/state.js";
import { ChainError } from "./errors.js";
import { type ItemContext, ItemScope, type Items, itemsOf } from "./scope.js";

/** A step of a chain: from a State and an item to the next State, or to what changes in it. */
export type ChainStep<D extends object, I> = (
  state: State<D>,
  item: I,
  context: ItemContext<D>,
) => State<D> | Patch<D> | Promise<State<D> | Patch<D>>;

/** Options of {@link chain}. */
export interface ChainOptions<D extends object> {
  /** Is told after each step how many are done, how many there are, and the State. It can't disturb the chain. */
  readonly onProgress?: (completed: number, total: number, state: State<D>) => unknown;
  /**
   * Makes the node's result of the State before the chain and those after each step. They are all in
   * the checkpoint then. By default the last is the result.
   */
  readonly intermediate?: (states: readonly State<D>[]) => State<D> | Patch<D>;
}

/** What a chain remembers: how many steps are done, and what they came to. */
interface Link<D extends object> {
  readonly completed: number;
  readonly data: Immutable<D>;
}

/**
 * A node that takes items one after the other: each step gets the State that the one before it came
 * to. What a step came to is saved before the next starts, so a resume goes on at the next item.
 *
 * @throws ChainError, out of the node, when a step fails; it has the item and the State so far.
 *
 * @example
 * ```ts
 * import { chain, State, StateGraph } from "waymark";
 *
 * const graph = new StateGraph<{ words: string[]; text: string }>()
 *   .addNode("join", chain((state) => state.data.words, (state, word) => ({ text: `${state.data.text}${word} ` })))
 *   .setEntryPoint("join")
 *   .setExitPoint("join");
 *
 * const final = await graph.execute(State.create({ words: ["a", "way", "mark"], text: "" }));
 * console.log(final.data.text.trim()); // a way mark
 * ```
 */
export function chain<D extends object, I>(
  items: Items<D, I>,
  step: ChainStep<D, I>,
  options: ChainOptions<D> = {},
): NodeFunction<D> {
  callable("step", step);
  checkOptions("chain", options, { onProgress: callable, intermediate: callable });
  const { intermediate } = options;
  const progress = options.onProgress && guard("onProgress", options.onProgress);

  return async (given, context) => {
    const list = itemsOf(items, given);
    const total = list.length;
    const link = context.recall("chain") as Link<D> | undefined;
    let completed = link?.completed ?? 0;
    let state = link === undefined ? given : withData(given, link.data);
    const states = [given, ...before(given, context, completed)];
    const at = { node: context.node, step: context.step, total };
    context.emit("chain.start", { ...at, completed });
    try {
      for (const [index, item] of list.slice(completed).entries()) {
        context.signal.throwIfAborted();
        context.draining.throwIfAborted();
        const scope = new ItemScope(context, completed, context.signal);
        state = await take(state, item, scope, at.total, step);
        completed++;
        const saved = [context.remember("chain", { completed, data: state.data })];
        if (intermediate !== undefined) {
          saved.push(context.remember(`state ${completed}`, state.data));
          states.push(state);
        }
        for (const key of scope.keys ?? []) context.forget(key);
        await Promise.all(saved);
        progress?.(completed, total, state);
      }
    } catch (error) {
      context.emit("chain.complete", { ...at, completed, error: messageOf(error) });
      throw error;
    }
    context.emit("chain.complete", { ...at, completed });
    return intermediate === undefined ? state : intermediate(states);
  };
}
