import type { AnyEvent, EventBus } from "../events.js";

/** How many events may wait for their reader before the run waits too. */
const HIGH_WATER = 64;

/** The events of one run, as it is read. The run is started when the first is asked for. */
export async function* streamEvents<T>(
  bus: EventBus,
  runId: string,
  signal: AbortSignal | undefined,
  start: (signal: AbortSignal, gate: () => Promise<void> | undefined) => Promise<T>,
): AsyncGenerator<AnyEvent, T, undefined> {
  const controller = new AbortController();
  const abort = (): void => controller.abort(signal?.reason);
  if (signal?.aborted) abort();
  signal?.addEventListener("abort", abort);

  const waiting: AnyEvent[] = [];
  let reader = defer();
  let room = defer();
  const listener = (event: AnyEvent): void => {
    if (event.runId !== runId) return;
    waiting.push(event);
    reader.resolve();
  };
  bus.on("*", listener);
  let ended = false;
  const running = start(controller.signal, () =>
    waiting.length < HIGH_WATER ? undefined : room.promise,
  );
  const end = (): void => {
    ended = true;
    reader.resolve();
  };
  running.then(end, end);
  try {
    while (!ended || waiting.length > 0) {
      const event = waiting.shift();
      if (event !== undefined) {
        yield event;
      } else {
        reader = defer();
        room.resolve();
        room = defer();
        if (!ended) await reader.promise;
      }
    }
    return await running;
  } finally {
    // A reader who leaves early cancels the run, and waits until it has stopped.
    bus.off("*", listener);
    signal?.removeEventListener("abort", abort);
    if (!ended) {
      controller.abort(new DOMException("the reader of the stream left", "AbortError"));
      room.resolve();
      await running.catch(() => {});
    }
  }
}

function defer(): { readonly promise: Promise<void>; readonly resolve: () => void } {
  let resolve = (): void => {};
  const promise = new Promise<void>((done) => {
    resolve = done;
  });
  return { promise, resolve };
}
