import { sleep } from "../../clock.js";
import { type AnyEvent, type EventTail, isRunEnd } from "../../events.js";
import type { LogPlace } from "../run-files.js";
import { type LogLine, LogReader } from "./reader.js";

/** How often, and how many milliseconds apart, to look for the last event of a run that has stopped. */
const TRIES = 20;
const PAUSE = 50;

/** So many steps are remembered besides those that the store knows. */
const REMEMBERED = 10_000;

/** What happens to a run that other processes work on: the events in its log, and the steps that only its store has. */
export class LogTail implements EventTail {
  readonly #reader: LogReader | undefined;
  /** Whether what is known now has happened before anybody asked. */
  #skips: boolean;
  #known: readonly AnyEvent[] = [];
  /** What was given of that which the store knows. A step may run twice, at different times. */
  readonly #given = new Set<string>();
  /** Whether the log has anything about the run. */
  #hasLog = false;
  /** The event with which the run stopped, by the log. */
  #end: AnyEvent | undefined;

  /** @param place - where the log is; `undefined` if there is none. */
  constructor(place: LogPlace | undefined, runId: string, from: "start" | "now") {
    this.#reader = place && new LogReader(place, runId);
    this.#skips = from === "now";
  }

  async *next(known: readonly AnyEvent[]): AsyncGenerator<AnyEvent, void, undefined> {
    if (known.length > 0) this.#known = known;
    if (this.#skips) {
      this.#skips = false;
      for (const event of known) this.#give(event);
      await this.#reader?.skip();
    }
    for await (const line of this.#reader?.read() ?? []) {
      const event = eventOf(line);
      if (event === undefined) continue;
      this.#hasLog = true;
      if (event.path === undefined) yield* this.#before(event);
      yield event;
    }
    yield* this.#missing(Number.POSITIVE_INFINITY);
  }

  async *end(
    last: AnyEvent | undefined,
    signal?: AbortSignal,
  ): AsyncGenerator<AnyEvent, void, undefined> {
    const signals = signal === undefined ? [] : [signal];
    // The last event is written right after the last checkpoint.
    for (let tries = 0; tries < TRIES && this.#hasLog && !this.#isOver(last); tries++) {
      await sleep(PAUSE, ...signals);
      yield* this.next([]);
    }
    if (last !== undefined && !this.#isOver(last)) yield last;
  }

  /** Whether an event that a worker also reports was given, or will be. */
  has(event: AnyEvent): boolean {
    if (event.type.startsWith("run.")) return false;
    return this.#hasLog || this.#given.has(keyOf(event));
  }

  #isOver(last: AnyEvent | undefined): boolean {
    if (last === undefined || this.#end === undefined) return this.#end !== undefined;
    return last.type === this.#end.type && stepOf(last) === stepOf(this.#end);
  }

  /** What happened before an event of the log, and is not in it. */
  *#before(event: AnyEvent): Generator<AnyEvent, void, undefined> {
    const { type, timestamp } = event;
    const isFirst = type === "graph.start" && !event.data.resumed;
    const isDone = type === "node.complete" && event.data.error === undefined;
    if (isRunEnd(event)) this.#end = event;
    else if (type === "graph.start") this.#end = undefined;
    const step = stepOf(event) ?? -1;
    yield* this.#missing(isDone || isFirst ? step - 1 : step, timestamp);
    if (isDone || isFirst) this.#give(event);
  }

  /** What the store knows and was not given yet: all, or what happened up to a step and a time. */
  *#missing(upTo: number, until?: string): Generator<AnyEvent, void, undefined> {
    for (const event of this.#known) {
      if ((stepOf(event) ?? 0) > upTo) return;
      if ((until === undefined || event.timestamp <= until) && this.#give(event)) yield event;
    }
  }

  /** Notes an event; `false` if it was given. */
  #give(event: AnyEvent): boolean {
    const key = keyOf(event);
    if (this.#given.has(key)) return false;
    this.#given.add(key);
    const [oldest = ""] = this.#given;
    if (this.#given.size > REMEMBERED + this.#known.length) this.#given.delete(oldest);
    return true;
  }
}

/** A run starts once, and a step completes at a time of its own. */
function keyOf(event: AnyEvent): string {
  const { type, timestamp } = event;
  return type === "graph.start" ? type : `${type} ${stepOf(event)} ${timestamp}`;
}

/** The step that an event is about. Others may emit events with anything in them, or nothing. */
function stepOf({ data }: AnyEvent): number | undefined {
  const { step } = Object(data) as { readonly step?: unknown };
  return typeof step === "number" ? step : undefined;
}

/** The event that a line was made of, as far as JSON holds it; `undefined` for a line of the log's own. */
function eventOf(line: LogLine): AnyEvent | undefined {
  const { ts: timestamp, event: type, run, source, path, inner_run: inner, ...fields } = line;
  if (source === undefined) return undefined;
  const { step_id: _, parent_id: __, ...data } = fields;
  const nested = path && { path, rootRunId: run };
  // The log is ours, and what others emit has no type to check.
  return { type, timestamp, source, runId: inner ?? run, ...nested, data } as unknown as AnyEvent;
}
