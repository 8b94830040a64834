import { defer, onAbort } from "../concurrency.js";
import type { AnyEvent, EventBus } from "../events.js";

/** How many events may wait for their reader before the run waits too. */
const HIGH_WATER = 64;

/** Where a run waits for a reader who is slower. */
export interface Gate {
  /** What to wait for; `undefined` when the reader keeps up. */
  wait(): Promise<void> | undefined;
  /** Lets the run through from now on, because it is to end. */
  open(): void;
}

/** Starts a run whose events are read; `add` puts something between them. */
export type StartRun<T, E> = (
  signal: AbortSignal,
  gate: Gate,
  add: (item: E) => void,
) => Promise<T>;

/**
 * The events of one run, as it is read. The run is started when the first is asked for. A reader who
 * leaves cancels it at once, also while the next event is still to come, and waits until it has stopped.
 */
export function streamEvents<T, E = never>(
  bus: EventBus,
  runId: string,
  signal: AbortSignal | undefined,
  start: StartRun<T, E>,
): AsyncGenerator<AnyEvent | E, T, undefined> {
  const controller = new AbortController();
  const events = read(bus, runId, signal, controller, start);
  const leave = events.return.bind(events);
  // A generator looks at this only when its reader's last `next` is answered.
  events.return = (value) => {
    controller.abort(readerLeft());
    return leave(value);
  };
  return events;
}

async function* read<T, E>(
  bus: EventBus,
  runId: string,
  signal: AbortSignal | undefined,
  controller: AbortController,
  start: StartRun<T, E>,
): AsyncGenerator<AnyEvent | E, T, undefined> {
  const abort = (): void => controller.abort(signal?.reason);
  if (signal?.aborted) abort();
  const ignore = signal && onAbort(signal, abort);
  const queue = new Queue<AnyEvent | E>();
  const listener = (event: AnyEvent): void => {
    if (event.runId === runId || event.rootRunId === runId) queue.add(event);
  };
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
    ignore?.();
  }
}

function readerLeft(): DOMException {
  return new DOMException("the reader of the stream left", "AbortError");
}

/** The events that wait for their reader. */
class Queue<E> implements Gate {
  readonly #events: E[] = [];
  #reader = defer();
  #room = defer();
  #isOpen = false;
  #ended = false;

  /** Whether no more will come. */
  get ended(): boolean {
    return this.#ended;
  }

  add(event: E): void {
    this.#events.push(event);
    this.#reader.resolve();
  }

  end(): void {
    this.#ended = true;
    this.#reader.resolve();
  }

  take(): E | undefined {
    return this.#events.shift();
  }

  /** Lets the run continue, and waits for it. */
  more(): Promise<void> {
    this.#reader = defer();
    this.#room.resolve();
    this.#room = defer();
    return this.#reader.promise;
  }

  wait(): Promise<void> | undefined {
    return this.#isOpen || this.#events.length < HIGH_WATER ? undefined : this.#room.promise;
  }

  open(): void {
    this.#isOpen = true;
    this.#room.resolve();
  }
}
