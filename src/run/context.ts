import type { EventMap, EventSink, EventType } from "../events.js";
import type { NodeContext } from "../graph/node.js";

/** What one visit of one node gets. Made for every step, so it holds little and computes late. */
export class RunContext implements NodeContext {
  readonly signal: AbortSignal;
  readonly runId: string;
  readonly node: string;
  readonly step: number;
  readonly #sink: EventSink;
  readonly #source: string;

  constructor(
    signal: AbortSignal,
    runId: string,
    node: string,
    step: number,
    sink: EventSink,
    source: string,
  ) {
    this.signal = signal;
    this.runId = runId;
    this.node = node;
    this.step = step;
    this.#sink = sink;
    this.#source = source;
  }

  get idempotencyKey(): string {
    return `${this.runId}:${this.step}:${this.node}`;
  }

  emit<T extends EventType>(type: T, data: EventMap[T]): void {
    this.#sink.emit(type, this.#source, this.runId, data);
  }
}
