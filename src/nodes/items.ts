import { msSince, now } from "../clock.js";
import { ConfigError, messageOf, show } from "../errors.js";
import type { EventMap } from "../event-map.js";
import type { NodeContext } from "../graph/node.js";
import { check } from "../options.js";
import { isStop } from "../run/loop/failure.js";
import { PauseRequested } from "../run/pauses/pauses.js";
import type { RunContext } from "../run/visit/context.js";
import type { Patch, State } from "../state/state.js";

/** A State made from the one that was given, or an object to merge into it. */
export type Change<D extends object> = State<D> | Patch<D>;

/**
 * Items to work on, or a function that gets them from the State: always the same ones, because a node may run
 * again.
 */
export type Items<D extends object, I> = readonly I[] | ((state: State<D>) => readonly I[]);

/** What a step of a chain or a worker of a parallel node receives besides the State and its item. */
export interface ItemContext<D extends object = object> extends NodeContext<D> {
  /**
   * The index of the item in the list. What is remembered here belongs to this item; only the names of pauses
   * are shared by the whole node.
   */
  readonly index: number;
}

/** Checks the `saves` option. */
export const checkSaves = check(
  '"item", "layer" or an integer ≥ 1',
  (value) =>
    value === "item" || value === "layer" || (Number.isSafeInteger(value) && Number(value) >= 1),
);

/** The items for a State. */
export function itemsOf<D extends object, I>(items: Items<D, I>, state: State<D>): readonly I[] {
  const list: unknown = typeof items === "function" ? items(state) : items;
  if (Array.isArray(list)) return list;
  const problem = `must be an array, or a function that returns one; got ${show(list)}`;
  throw new ConfigError("items", problem);
}

/** The maximum length of an item's name in events. */
const MAX_LABEL = 100;

/** The name of an item in events: a simple value itself, cut if it is long; otherwise the index. */
export function labelOf(item: unknown, index: number): string {
  const isSimple = ["string", "number", "bigint", "boolean"].includes(typeof item);
  return isSimple ? String(item).slice(0, MAX_LABEL) : `#${index}`;
}

/** Works on an item: emits that it starts and ends, and adds it to the step's record. */
export async function workOn<D extends object, R>(
  context: RunContext<D>,
  kind: "step" | "worker",
  data: EventMap["worker.start"],
  work: () => R | Promise<R>,
): Promise<R> {
  context.emit(`${kind}.start`, data);
  const started = now();
  try {
    const result = await work();
    context.completeItem(
      `${kind}.complete`,
      { ...data, durationMs: msSince(started) },
      "completed",
    );
    return result;
  } catch (error) {
    if (error instanceof PauseRequested) throw error;
    const ended = { ...data, durationMs: msSince(started), error: messageOf(error) };
    const outcome = isStop(error, context) ? "stopped" : "failed";
    context.completeItem(`${kind}.complete`, ended, outcome);
    throw error;
  }
}

/**
 * Remembers that a node has advanced. Overwriting its intermediate value does not show that, so the position is
 * remembered under a key of its own.
 */
export function recordProgress<D extends object>(
  context: NodeContext<D>,
  name: string,
  from: string,
  to: string,
): Promise<void> {
  // First, because it throws in an abandoned attempt, before there is a promise that nobody awaits.
  context.forget(`${name} ${from}`);
  return context.remember(`${name} ${to}`, true);
}
