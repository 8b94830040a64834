/** A stream returned by an SDK. */
export interface SourceStream<T> extends AsyncIterable<T> {
  readonly controller: AbortController;
}

/** A stream like those of the OpenAI and Anthropic SDKs, whose chunks arrive live or come from a checkpoint. */
export class RecordedStream<T> implements SourceStream<T> {
  readonly controller: AbortController;
  readonly #iterate: () => AsyncIterator<T>;

  constructor(iterate: () => AsyncIterator<T>, controller = new AbortController()) {
    this.#iterate = iterate;
    this.controller = controller;
  }

  [Symbol.asyncIterator](): AsyncIterator<T> {
    return this.#iterate();
  }

  /** Two streams of the same chunks, each read at its own speed. */
  tee(): [RecordedStream<T>, RecordedStream<T>] {
    const source = this.#iterate();
    const queues: [Promise<IteratorResult<T>>[], Promise<IteratorResult<T>>[]] = [[], []];
    const branch = (queue: Promise<IteratorResult<T>>[]): RecordedStream<T> => {
      const next = (): Promise<IteratorResult<T>> => {
        const waiting = queue.shift();
        if (waiting !== undefined) return waiting;
        const result = source.next();
        for (const other of queues) if (other !== queue) other.push(result);
        return result;
      };
      return new RecordedStream(() => ({ next }), this.controller);
    };
    return [branch(queues[0]), branch(queues[1])];
  }

  /** The chunks as lines of JSON. */
  toReadableStream(): ReadableStream<Uint8Array> {
    const source = this.#iterate();
    const encoder = new TextEncoder();
    return new ReadableStream({
      async pull(controller) {
        const { value, done } = await source.next();
        if (done) controller.close();
        else controller.enqueue(encoder.encode(`${JSON.stringify(value)}\n`));
      },
      async cancel() {
        await source.return?.();
      },
    });
  }
}
