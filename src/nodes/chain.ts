import type { Immutable } from "immer";
import { CHAIN, type ChainLink, stepKey } from "../checkpoint/chain-link.js";
import { ConfigError, show } from "../errors.js";
import type { ItemsCompleteData } from "../event-map.js";
import { guard } from "../events.js";
import type { NodeFunction } from "../graph/node.js";
import { callable, checkOptions } from "../options.js";
import { isStop, messageOf } from "../run/failure.js";
import { PauseSignal } from "../run/pauses.js";
import { State } from "../state/state.js";
import { alone } from "./alone.js";
import { ChainError } from "./errors.js";
import { arrive } from "./place.js";
import { type Change, type ItemContext, ItemScope, type Items, itemsOf } from "./scope.js";

/** A step of a chain: from a State and an item to the next State, or to what changes in it. */
export type ChainStep<D extends object, I> = (
  state: State<D>,
  item: I,
  context: ItemContext<D>,
) => Change<NoInfer<D>> | Promise<Change<NoInfer<D>>>;

/** Options of {@link chain}. */
export interface ChainOptions<D extends object> {
  /** Is told after each step how many are done, how many there are, and the State. It can't disturb the chain. */
  readonly onProgress?: (completed: number, total: number, state: State<D>) => unknown;
  /**
   * Is given the last State, and all of them: the first before the chain, the others after each step.
   * What it returns is the node's result. All are in the checkpoint then.
   */
  readonly intermediate?: (state: State<D>, states: readonly State<D>[]) => Change<NoInfer<D>>;
}

/** Its data is of the version that the graph is at: what a checkpoint holds is migrated when it is loaded. */
interface Link<D extends object> extends ChainLink {
  readonly data: Immutable<D>;
}

/**
 * A node that takes items one after the other: each step gets the State that the one before it came
 * to. What a step came to is saved before the next starts, so a resume goes on at the next item.
 *
 * @throws ChainError, out of the node, when a step fails; it has the item and the State so far.
 * @throws ConfigError when an option is not what it must be.
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
  const { onProgress, intermediate } = options;
  const progress = onProgress && guard("onProgress", onProgress);

  return alone("chain", async (given, context) => {
    const list = itemsOf(items, given);
    const { node, step: at } = context;
    const total = list.length;
    const link = context.recall(CHAIN) as Link<D> | undefined;
    let completed = link?.completed ?? 0;
    let state = link === undefined ? given : withData(given, link.data);
    const told = (error?: unknown): ItemsCompleteData => ({
      ...{ node, step: at, total, completed },
      ...(error !== undefined && { error: messageOf(error) }),
    });
    context.emit("chain.start", told());
    try {
      for (const item of list.slice(completed)) {
        context.signal.throwIfAborted();
        context.draining.throwIfAborted();
        const scope = new ItemScope(context, completed);
        state = await take(step, state, item, scope, total);
        completed++;
        for (const key of scope.keys ?? []) context.forget(key);
        const saved = [
          arrive(context, CHAIN, String(completed - 1), String(completed)),
          context.remember(CHAIN, { completed, data: state.data }),
        ];
        if (intermediate) saved.push(context.remember(stepKey(completed), state.data));
        await Promise.all(saved);
        progress?.(completed, total, state);
      }
    } catch (error) {
      if (!(error instanceof PauseSignal)) context.emit("chain.complete", told(error));
      throw error;
    }
    context.emit("chain.complete", told());
    if (intermediate === undefined) return state;
    const later = Array.from({ length: completed }, (_, index) =>
      withData(given, context.recall(stepKey(index + 1)) as Immutable<D>),
    );
    return changed(state, intermediate(state, [given, ...later]));
  });
}

/** One step, and the events around it. */
async function take<D extends object, I>(
  step: ChainStep<D, I>,
  state: State<D>,
  item: I,
  scope: ItemScope<D>,
  total: number,
): Promise<State<D>> {
  const { index } = scope;
  const told = { node: scope.node, step: scope.step, index, total };
  scope.emit("step.start", told);
  let next: State<D>;
  try {
    next = changed(state, await step(state, item, scope));
    // What it came to is saved as the run's own data before the loop could refuse it.
    if (next.runId !== state.runId) {
      const problem = `returned the State of run ${show(next.runId)}: build on the State it is given`;
      throw new ConfigError("step", problem);
    }
  } catch (cause) {
    if (cause instanceof PauseSignal) throw cause;
    scope.emit("step.complete", { ...told, error: messageOf(cause) });
    throw isStop(cause, scope) ? cause : new ChainError({ index, item, cause }, state);
  }
  scope.emit("step.complete", told);
  return next;
}

function withData<D extends object>(state: State<D>, data: Immutable<D>): State<D> {
  return state.update(() => data);
}

function changed<D extends object>(state: State<D>, change: Change<D>): State<D> {
  return change instanceof State ? change : state.merge(change);
}
