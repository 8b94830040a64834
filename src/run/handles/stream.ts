import { abortWith, defer } from "../../concurrency.js";
import type { AnyEvent, EventBus } from "../../events.js";
import type { Immutable } from "../../state/immutable.js";
import type { State } from "../../state/state.js";

/** The number of events that may wait for their reader before the run waits too. */
const HIGH_WATER = 64;

/** Makes a run wait for a slower reader. */
export type Gate = Pick<Queue<unknown>, "wait" | "open">;

/**
 * The events of one run. The run starts when the first is requested. A reader that leaves cancels it at once, even
 * while an event is pending, and waits until it has stopped.
 *
 * @param start - starts the run; `add` inserts something between its events.
 */
export function streamEvents<T, E = never>(
  bus: EventBus,
  runId: string,
  signal: AbortSignal | undefined,
  start: (signal: AbortSignal, gate: Gate, add: (item: E) => void) => Promise<T>,
): AsyncGenerator<AnyEvent | E, T, undefined> {
  const controller = new AbortController();
  const queue = new Queue<AnyEvent | E>();
  const listener = (event: AnyEvent): void => {
    if (event.runId === runId || event.rootRunId === runId) queue.add(event);
  };
  async function* read(): AsyncGenerator<AnyEvent | E, T, undefined> {
    const ignore = abortWith(controller, signal);
    bus.on("*", listener);
    const running = start(controller.signal, queue, (item) => queue.add(item));
    const end = (): void => queue.end();
    running.then(end, end);
    try {
      for (;;) {
        const event = queue.take();
        if (event !== undefined) yield event;
        else if (queue.ended) return await running;
        else await queue.more();
      }
    } finally {
      bus.off("*", listener);
      if (!queue.ended) controller.abort(readerLeft());
      await running.catch(() => {});
      ignore();
    }
  }
  return leavable(read(), controller);
}

/** Lets a reader leave at once, even while the next value is pending: `controller` then aborts. */
export function leavable<E, T>(
  values: AsyncGenerator<E, T, undefined>,
  controller: AbortController,
): AsyncGenerator<E, T, undefined> {
  const leave = values.return.bind(values);
  // By itself, a generator handles `return` only after the pending `next` has settled.
  values.return = (value) => {
    controller.abort(readerLeft());
    return leave(value);
  };
  return values;
}

function readerLeft(): DOMException {
  return new DOMException("the reader of the stream left", "AbortError");
}

/** The events that wait for their reader. */
class Queue<E> {
  readonly #events: E[] = [];
  /** Whether no more will come. */
  ended = false;
  #reader = defer();
  #room = defer();
  #isOpen = false;

  add(event: E): void {
    this.#events.push(event);
    this.#reader.resolve();
  }

  end(): void {
    this.ended = true;
    this.#reader.resolve();
  }

  take(): E | undefined {
    return this.#events.shift();
  }

  /** Lets the run continue, and waits for its next event. */
  more(): Promise<void> {
    this.#reader = defer();
    this.#room.resolve();
    this.#room = defer();
    return this.#reader.promise;
  }

  /** What the run awaits; `undefined` if the reader keeps up. */
  wait(): Promise<void> | undefined {
    return this.#isOpen || this.#events.length < HIGH_WATER ? undefined : this.#room.promise;
  }

  /** Lets the run continue from now on, because it is about to end. */
  open(): void {
    this.#isOpen = true;
    this.#room.resolve();
  }
}

/** Called after each completed node with the States before and after it. */
export type ValuesListener<D extends object> = (
  node: string,
  before: State<D>,
  after: State<D>,
) => void;

/** The changes of a node; see {@link StateGraph.stream}. */
export interface ValuesEvent<D extends object> {
  /** Distinguishes it from the events of the run. */
  readonly type: "values";
  /** The node that completed. */
  readonly node: string;
  /** The number of nodes that have completed. */
  readonly step: number;
  /** The keys whose values changed, with the new values; `undefined` for a removed key. */
  readonly changed: { readonly [K in keyof D]?: Immutable<D[K]> | undefined };
}

/** Emits an event with the changes of each node. */
export function valuesListener<D extends object>(
  add: (event: ValuesEvent<D>) => void,
): ValuesListener<D> {
  return (node, before, after) => {
    const changed = changesOf(before.data, after.data) as ValuesEvent<D>["changed"];
    add({ type: "values", node, step: after.step, changed });
  };
}

/** The top-level keys that differ. Data is structurally shared, so what did not change is the same object. */
function changesOf(before: object, after: object): object {
  const keys = new Set([...Object.keys(before), ...Object.keys(after)]);
  const isNew = (key: string): boolean =>
    !Object.is(Reflect.get(before, key), Reflect.get(after, key)) ||
    Object.hasOwn(before, key) !== Object.hasOwn(after, key);
  return Object.fromEntries(
    [...keys].filter(isNew).map((key): [string, unknown] => [key, Reflect.get(after, key)]),
  );
}
