import mitt, { type Emitter, type Handler, type WildcardHandler } from "mitt";
import { isoNow } from "./clock.js";
import type { EventMap } from "./event-map.js";
import { callable } from "./options.js";

/** The name of an event. */
export type EventType = keyof EventMap;

/** One event: what happened, when, in which run, told by whom. */
export interface WaymarkEvent<T extends EventType = EventType> {
  /** Its name. */
  readonly type: T;
  /** When it happened, ISO 8601. */
  readonly timestamp: string;
  /** The graph's name, or `state`. */
  readonly source: string;
  /** The run it belongs to. */
  readonly runId: string;
  /** What is special to this type of event. */
  readonly data: EventMap[T];
}

/** Any event, as a union that narrows on `type`. */
export type AnyEvent = { [T in EventType]: WaymarkEvent<T> }[EventType];

/** Is told one type of event. What it returns is ignored; a rejected promise is reported. */
export type EventHandler<T extends EventType | "*"> = (
  event: T extends EventType ? WaymarkEvent<T> : AnyEvent,
) => unknown;

/** Is told every event, as an object. */
export interface EventObserver {
  /** Is called with each event. What it returns is ignored; a rejected promise is reported. */
  onEvent(event: AnyEvent): unknown;
}

/** Is told every event: a function, or an object with `onEvent`. */
export type Observer = ((event: AnyEvent) => unknown) | EventObserver;

/** Where a State or a run sends its events. */
export interface EventSink {
  /** Whether anybody wants events of this type; nothing is built when nobody does. */
  listens(type: EventType): boolean;
  /** Tells everybody who wants it. */
  emit<T extends EventType>(
    type: T,
    source: string,
    runId: string,
    data: EventMap[T],
    timestamp?: string,
  ): void;
}

type Bus = { [T in EventType]: AnyEvent };

// Under `module: nodenext` mitt's default export is typed as its module; at run time it is the function.
const createBus = mitt as unknown as () => Emitter<Bus>;

/** A mitt bus whose listeners can't disturb the run or each other. */
export class EventBus implements EventSink {
  readonly #bus = createBus();
  readonly #guards = new Map<unknown, Map<string, (...args: never[]) => void>>();
  /** Those who listen to everything; made anew when one comes or goes, so that telling them copies nothing. */
  #wildcards: readonly WildcardHandler<Bus>[] = [];
  #any = false;

  /**
   * Adds a listener; the same listener twice on one type counts once.
   *
   * @throws ConfigError when the listener is not a function.
   */
  on<T extends EventType | "*">(type: T, handler: EventHandler<T>): void {
    callable("handler", handler);
    const known = this.#guards.get(handler) ?? new Map<string, (...args: never[]) => void>();
    if (known.has(type)) return;
    this.#guards.set(handler, known);
    const guarded = guard(type, handler as (event: AnyEvent) => unknown);
    if (type === "*") {
      const wildcard: WildcardHandler<Bus> = (_type, event) => guarded(event);
      known.set(type, wildcard);
      this.#bus.on("*", wildcard);
    } else {
      known.set(type, guarded);
      this.#bus.on(type as EventType, guarded);
    }
    this.#count();
  }

  /** Removes a listener, also while an event is being told. */
  off<T extends EventType | "*">(type: T, handler: EventHandler<T>): void {
    const known = this.#guards.get(handler);
    const guarded = known?.get(type);
    if (known === undefined || guarded === undefined) return;
    known.delete(type);
    if (known.size === 0) this.#guards.delete(handler);
    if (type === "*") this.#bus.off("*", guarded as WildcardHandler<Bus>);
    else this.#bus.off(type as EventType, guarded as Handler<AnyEvent>);
    this.#count();
  }

  /** Whether anybody listens to anything. */
  get active(): boolean {
    return this.#any;
  }

  listens(type: EventType): boolean {
    return this.#any && (this.#wildcards.length > 0 || this.#isWanted(type));
  }

  emit<T extends EventType>(
    type: T,
    source: string,
    runId: string,
    data: EventMap[T],
    timestamp?: string,
  ): void {
    if (!this.listens(type)) return;
    const told: WaymarkEvent<T> = { type, timestamp: timestamp ?? isoNow(), source, runId, data };
    // A WaymarkEvent<T> is one member of the union, which TypeScript can't see for an open T.
    const event = told as unknown as AnyEvent;
    if (this.#isWanted(type)) this.#bus.emit(type, event);
    else for (const tell of this.#wildcards) tell(type, event);
  }

  /** Whether anybody listens to this type alone. */
  #isWanted(type: EventType): boolean {
    return Boolean(this.#bus.all.get(type)?.length);
  }

  #count(): void {
    this.#wildcards = (this.#bus.all.get("*")?.slice() ?? []) as WildcardHandler<Bus>[];
    this.#any = this.#guards.size > 0;
  }
}

/** A listener that never throws: its first failure is printed, the rest are dropped. */
export function guard<A extends readonly unknown[]>(
  type: string,
  handler: (...args: A) => unknown,
): (...args: A) => void {
  let reported = false;
  const report = (error: unknown): void => {
    if (reported) return;
    reported = true;
    console.error(`waymark: a listener for "${type}" failed; later failures are not shown.`, error);
  };
  return (...args) => {
    try {
      const result = handler(...args);
      if (result instanceof Promise) result.catch(report);
    } catch (error) {
      report(error);
    }
  };
}

/** Whether a value can observe: a function, or an object with `onEvent`. */
export function isObserver(value: unknown): value is Observer {
  return (
    typeof value === "function" ||
    (typeof value === "object" &&
      value !== null &&
      "onEvent" in value &&
      typeof value.onEvent === "function")
  );
}

/** Adds an observer to a bus. */
export function observe(bus: EventBus, observer: Observer): void {
  bus.on("*", typeof observer === "function" ? observer : (event) => observer.onEvent(event));
}

/** One sink that tells two. */
export function both(first: EventSink, second: EventSink): EventSink {
  return {
    listens: (type) => first.listens(type) || second.listens(type),
    emit: (type, source, runId, data, timestamp) => {
      first.emit(type, source, runId, data, timestamp);
      second.emit(type, source, runId, data, timestamp);
    },
  };
}
