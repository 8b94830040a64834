import mitt, { type Emitter, type Handler } from "mitt";
import { aside } from "./call-scope.js";
import { isoNow } from "./clock.js";
import type { EventMap } from "./event-map.js";
import { type Check, callable, check } from "./options.js";
import { printWarning } from "./warnings.js";

/** The name of an event. */
export type EventType = keyof EventMap;

/** One event: what happened, when, in which run, from which source. */
export interface WaymarkEvent<T extends EventType = EventType> {
  /** Its name. */
  readonly type: T;
  /** When it happened, ISO 8601. */
  readonly timestamp: string;
  /** The graph's name, or `state`. */
  readonly source: string;
  /** The run it belongs to. */
  readonly runId: string;
  /**
   * Where it happened, for an event of a graph that runs inside a node of another: the nodes from the
   * outermost graph down, ending with the event's own node if it is about one. Events of the outermost graph
   * have none.
   */
  readonly path?: readonly string[];
  /** The outermost run, for such an event. */
  readonly rootRunId?: string;
  /** The fields of this type of event. */
  readonly data: EventMap[T];
}

/** Any event, as a union that narrows on `type`. */
export type AnyEvent = { [T in EventType]: WaymarkEvent<T> }[EventType];

/** Whether an event is the last of a run, until it is resumed. */
export function isRunEnd({ type }: { readonly type: string }): boolean {
  return type === "graph.complete" || type === "graph.fail" || type === "graph.pause";
}

/** Handles one event type. Its return value is ignored; a rejected promise is reported. */
export type EventHandler<T extends EventType | "*"> = (
  event: T extends EventType ? WaymarkEvent<T> : AnyEvent,
) => unknown;

/** Reads the events of a run that an observer has kept. */
export interface EventTail {
  /**
   * The events since the last call; the first call returns all kept events or, from `"now"`, none.
   *
   * @param known - events known from the store: the start of the run and its last steps. Those that were not
   *   kept are returned too.
   */
  next(known: readonly AnyEvent[]): Iterable<AnyEvent> | AsyncIterable<AnyEvent>;
  /**
   * The remaining events of a run that has stopped.
   *
   * @param last - the event of how it stopped, if the store knows. It is returned if it was not kept.
   */
  end(
    last: AnyEvent | undefined,
    signal?: AbortSignal,
  ): Iterable<AnyEvent> | AsyncIterable<AnyEvent>;
}

/** Handles every event, as an object. */
export interface EventObserver {
  /** Called with each event. Its return value is ignored; a rejected promise is reported. */
  onEvent(event: AnyEvent): unknown;
  /** For an observer that keeps events, as `eventLog` does: `attach` uses it to follow runs of other processes. */
  tail?(runId: string, from: "start" | "now"): EventTail;
}

/** Handles every event: a function, or an object with `onEvent`. */
export type Observer = ((event: AnyEvent) => unknown) | EventObserver;

/** Where a State or a run sends its events. */
export interface EventSink {
  /** Whether anybody listens to this type; otherwise no event is built. */
  listens(type: EventType): boolean;
  /** Calls all listeners. */
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

/** A set of listeners. */
interface Listeners {
  has(handler: unknown, type: string): boolean;
}

/** A mitt bus whose listeners can't disturb the run or each other. */
export class EventBus implements EventSink {
  /** The nodes that lead to the graph whose bus this is; none for the outermost. */
  readonly path: readonly string[] = [];
  readonly #bus = createBus();
  readonly #guards = new Map<unknown, Map<string, Handler<AnyEvent>>>();
  /** The listeners to all events; replaced when one is added or removed, so that emitting copies nothing. */
  #wildcards: readonly Handler<AnyEvent>[] = [];

  /**
   * Adds a listener; the same listener twice on one type counts once.
   *
   * @throws ConfigError if the listener is not a function.
   */
  on<T extends EventType | "*">(type: T, handler: EventHandler<T>): void {
    callable("handler", handler);
    const known = this.#guards.get(handler) ?? new Map<string, Handler<AnyEvent>>();
    if (known.has(type)) return;
    const guarded = guard(type, handler as (event: AnyEvent) => unknown);
    this.#guards.set(handler, known.set(type, guarded));
    if (type === "*") this.#wildcards = [...this.#wildcards, guarded];
    else this.#bus.on(type as EventType, guarded);
  }

  /** Removes a listener, even while an event is being handled. */
  off<T extends EventType | "*">(type: T, handler: EventHandler<T>): void {
    const known = this.#guards.get(handler);
    const guarded = known?.get(type);
    if (known === undefined || guarded === undefined) return;
    known.delete(type);
    if (known.size === 0) this.#guards.delete(handler);
    if (type === "*") this.#wildcards = this.#wildcards.filter((one) => one !== guarded);
    else this.#bus.off(type as EventType, guarded);
  }

  /** Whether anybody listens to anything. */
  get active(): boolean {
    return this.#guards.size > 0;
  }

  listens(type: EventType): boolean {
    return this.active && (this.#wildcards.length > 0 || this.#isWanted(type));
  }

  /** The outermost run that a run of this bus is in. */
  rootOf(runId: string): string {
    return runId;
  }

  /** Passes an event to its listeners, except those that receive it from another bus. */
  deliver(event: AnyEvent, except?: Listeners): void {
    for (const [handler, known] of [...this.#guards]) {
      for (const [type, call] of [...known]) {
        if ((type === "*" || type === event.type) && !except?.has(handler, type)) call(event);
      }
    }
  }

  /** Whether a handler listens to a type, or to all types with `"*"`. */
  has(handler: unknown, type: string): boolean {
    return this.#guards.get(handler)?.has(type) === true;
  }

  emit<T extends EventType>(
    type: T,
    source: string,
    runId: string,
    data: EventMap[T],
    timestamp?: string,
  ): void {
    if (!this.listens(type)) {
      unheard(type, runId, data);
      return;
    }
    const made: WaymarkEvent<T> = { type, timestamp: timestamp ?? isoNow(), source, runId, data };
    // A WaymarkEvent<T> is one member of the union, which TypeScript can't see for an open T.
    const event = made as unknown as AnyEvent;
    if (this.#isWanted(type)) this.#bus.emit(type, event);
    for (const tell of this.#wildcards) tell(event);
  }

  /** Whether anybody listens to this type in particular. */
  #isWanted(type: EventType): boolean {
    return Boolean(this.#bus.all.get(type)?.length);
  }
}

/** Events about a graph or its data as a whole rather than one of its nodes. */
const ofGraph = /^(graph|state|edge|checkpoint)\./;

/**
 * The bus of a graph that runs inside a node: each event reaches the listeners of the graph itself and of the
 * one around it; a listener to both receives it once.
 */
export class NestedBus extends EventBus {
  override readonly path: readonly string[];
  readonly #own: EventBus;
  readonly #outer: EventBus;
  readonly #rootRunId: string;

  /** @param node - the node of the outer graph, which runs in `outerRunId`. */
  constructor(own: EventBus, outer: EventBus, node: string, outerRunId: string) {
    super();
    this.path = Object.freeze([...outer.path, node]);
    this.#own = own;
    this.#outer = outer;
    this.#rootRunId = outer.rootOf(outerRunId);
  }

  override on<T extends EventType | "*">(type: T, handler: EventHandler<T>): void {
    this.#own.on(type, handler);
  }

  override off<T extends EventType | "*">(type: T, handler: EventHandler<T>): void {
    this.#own.off(type, handler);
  }

  override get active(): boolean {
    return this.#own.active || this.#outer.active;
  }

  override rootOf(): string {
    return this.#rootRunId;
  }

  override listens(type: EventType): boolean {
    return this.#own.listens(type) || this.#outer.listens(type);
  }

  override has(handler: unknown, type: string): boolean {
    return this.#own.has(handler, type) || this.#outer.has(handler, type);
  }

  override deliver(event: AnyEvent, except?: Listeners): void {
    this.#own.deliver(event, except);
    this.#outer.deliver(event, except === undefined ? this.#own : anyOf(this.#own, except));
  }

  override emit<T extends EventType>(
    type: T,
    source: string,
    runId: string,
    data: EventMap[T],
    timestamp = isoNow(),
  ): void {
    if (!this.listens(type)) {
      unheard(type, runId, data);
      return;
    }
    // A package may emit an event without fields.
    const { node } = Object(data) as { readonly node?: unknown };
    const isNodes = typeof node === "string" && node !== "" && !ofGraph.test(type);
    const path = isNodes ? Object.freeze([...this.path, node]) : this.path;
    const event = { type, timestamp, source, runId, path, rootRunId: this.#rootRunId, data };
    this.deliver(event as unknown as AnyEvent);
  }
}

function anyOf(first: Listeners, second: Listeners): Listeners {
  return { has: (handler, type) => first.has(handler, type) || second.has(handler, type) };
}

/** Handles an event without listeners: a warning is printed. */
function unheard<T extends EventType>(type: T, runId: string, data: EventMap[T]): void {
  if (type === "checkpoint.warning") printWarning(runId, data as EventMap["checkpoint.warning"]);
}

/** A listener that never throws: its first failure is printed, the rest are dropped. */
export function guard<A extends readonly unknown[]>(
  type: string,
  handler: (...args: A) => unknown,
): (...args: A) => void {
  // Nobody awaits a listener, so a listener may await the run that calls it.
  const call = aside(handler);
  let reported = false;
  const report = (error: unknown): void => {
    if (reported) return;
    reported = true;
    console.error(`waymark: a listener for "${type}" failed; later failures are not shown.`, error);
  };
  return (...args) => {
    try {
      const result = call(...args);
      if (result instanceof Promise) result.catch(report);
    } catch (error) {
      report(error);
    }
  };
}

/** Whether a value can observe: a function, or an object with `onEvent`. */
export function isObserver(value: unknown): value is Observer {
  const onEvent: unknown = Reflect.get(Object(value), "onEvent");
  return typeof value === "function" || typeof onEvent === "function";
}

/** Throws if a value can't observe. */
export const checkObserver: Check = check("a function or an object with onEvent", isObserver);

const handlers = new WeakMap<EventObserver, EventHandler<"*">>();

/** Adds an observer to a bus. It becomes the same listener on every bus, so that nested buses can recognize it. */
export function observe(bus: EventBus, observer: Observer): void {
  if (typeof observer === "function") {
    bus.on("*", observer);
    return;
  }
  const known = handlers.get(observer);
  const handler: EventHandler<"*"> = known ?? ((event) => observer.onEvent(event));
  handlers.set(observer, handler);
  bus.on("*", handler);
}

/** One sink that passes events to two. */
export function both(first: EventSink, second: EventSink): EventSink {
  return {
    listens: (type) => first.listens(type) || second.listens(type),
    emit: (type, source, runId, data, timestamp) => {
      first.emit(type, source, runId, data, timestamp);
      second.emit(type, source, runId, data, timestamp);
    },
  };
}
