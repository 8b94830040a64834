import { ChainError, ConfigError, messageOf, show } from "../errors.js";
import type { EventMap } from "../event-map.js";
import { guard } from "../events.js";
import type { AnyResult, CheckedResult, NodeFunction } from "../graph/node.js";
import { callable, checkOptions } from "../options.js";
import { isStop } from "../run/loop/failure.js";
import { PauseRequested } from "../run/pauses/pauses.js";
import type { RunContext } from "../run/visit/context.js";
import type { Immutable } from "../state/immutable.js";
import type { State } from "../state/state.js";
import {
  type Change,
  type ItemContext,
  type Items,
  itemsOf,
  labelOf,
  recordProgress,
  workOn,
} from "./items.js";
import { oncePerNode } from "./once-per-node.js";

/** A step of a chain: takes a State and an item, and returns the next State or the changes to make. */
export type ChainStep<D extends object, I, R = Change<D> | Promise<Change<D>>> = (
  state: State<D>,
  item: I,
  context: ItemContext<D>,
) => R;

/** Options of {@link chain}. */
export interface ChainOptions<D extends object, R = Change<D>> {
  /** Called after each step with the number done, the total, and the State. It can't disturb the chain. */
  readonly onProgress?: (completed: number, total: number, state: State<D>) => unknown;
  /**
   * Called with the last State and the list of all States: the one before the chain, then one after each step. Its
   * return value is the node's result. With this option the checkpoint holds all of them.
   */
  readonly intermediate?: (state: State<D>, states: readonly State<D>[]) => R;
}

/** The key of the number of completed steps, and of the data after the last of them. */
const CHAIN = "chain";

/** The key of the data after a step, which only `intermediate` needs. */
function stepKey(step: number): string {
  return `${CHAIN} ${step}`;
}

/**
 * A node that works on items one after the other: each step gets the State of the previous one. The result of a
 * step is saved before the next starts, so a resume continues at the next item.
 *
 * @throws ChainError from the node if a step fails; it has the item and the State so far.
 * @throws ConfigError if an option is invalid.
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
export function chain<
  D extends object,
  I,
  R extends AnyResult<D> = Change<D> | Promise<Change<D>>,
  M extends AnyResult<D> = Change<D>,
>(
  items: Items<D, I>,
  step: ChainStep<D, I, CheckedResult<D, R, Change<D> | Promise<Change<D>>>>,
  options?: ChainOptions<D, CheckedResult<D, M, Change<D>>>,
): NodeFunction<D>;
export function chain<D extends object, I>(
  items: Items<D, I>,
  step: ChainStep<D, I>,
  options: ChainOptions<D> = {},
): NodeFunction<D> {
  callable("step", step);
  checkOptions("chain", options, { onProgress: callable, intermediate: callable });
  const { onProgress, intermediate } = options;
  const progress = onProgress && guard("onProgress", onProgress);

  return oncePerNode<D>("chain", async (given, context) => {
    const list = itemsOf(items, given);
    const { node, step: at } = context;
    const total = list.length;
    const before = context.recallData(CHAIN) as Immutable<D> | undefined;
    let completed = before === undefined ? 0 : (context.recall(CHAIN) as number);
    let state = before === undefined ? given : withData(given, before);
    const progressData = (error?: unknown): EventMap["chain.complete"] => ({
      ...{ node, step: at, total, completed },
      ...(error !== undefined && { error: messageOf(error) }),
    });
    context.emit("chain.start", progressData());
    try {
      for (const item of list.slice(completed)) {
        context.signal.throwIfAborted();
        context.draining.throwIfAborted();
        await context.run.control.verify();
        const index = completed;
        const label = labelOf(item, index);
        const own = context.item({ index, id: String(index), label });
        const data = { node, step: at, index, item: label, total };
        state = await take(step, state, item, own, data);
        completed++;
        own.forgetAll();
        const saved = [
          recordProgress(context, CHAIN, String(index), String(completed)),
          context.remember(CHAIN, completed),
          context.rememberData(CHAIN, state.data),
        ];
        if (intermediate) saved.push(context.rememberData(stepKey(completed), state.data));
        await Promise.all(saved);
        progress?.(completed, total, state);
      }
    } catch (error) {
      if (!(error instanceof PauseRequested)) context.emit("chain.complete", progressData(error));
      throw error;
    }
    context.emit("chain.complete", progressData());
    if (intermediate === undefined) return state;
    const later = Array.from({ length: completed }, (_, index) =>
      withData(given, context.recallData(stepKey(index + 1)) as Immutable<D>),
    );
    return context.change(state, intermediate(state, [given, ...later]));
  });
}

/** Takes one step. */
async function take<D extends object, I>(
  step: ChainStep<D, I>,
  state: State<D>,
  item: I,
  context: RunContext<D>,
  data: EventMap["step.start"],
): Promise<State<D>> {
  try {
    return await workOn(context, "step", data, async () => {
      const next = context.change(state, await step(state, item, context));
      // Checked here, because the result is saved as the run's own data before the engine could reject it.
      if (next.runId === state.runId) return next;
      const problem = `returned the State of run ${show(next.runId)}: build on the State it is given`;
      throw new ConfigError("step", problem);
    });
  } catch (cause) {
    if (cause instanceof PauseRequested || isStop(cause, context)) throw cause;
    throw new ChainError({ index: data.index, item, cause }, state);
  }
}

function withData<D extends object>(state: State<D>, data: Immutable<D>): State<D> {
  return state.update(() => data);
}
