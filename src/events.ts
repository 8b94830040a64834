import mitt, { type Emitter, type Handler, type WildcardHandler } from "mitt";
import { isoNow } from "./clock.js";
import { callable } from "./options.js";

/** What each event carries in `data`. Packages that emit their own events add to this interface. */
export interface EventMap {
  /** A State was made. */
  "state.create": { readonly keys: number };
  /** A State was cloned. */
  "state.clone": { readonly keys: number };
  /** One key was set. The value is not in the event. */
  "state.set": { readonly key: string };
  /** Several keys were set, by `merge`, `update` or a node that returned an object. */
  "state.merge": { readonly keys: number };

  /** A run starts, or goes on after a resume. */
  "graph.start": { readonly entryPoint: string; readonly step: number; readonly resumed: boolean };
  /** A run reached an exit point. */
  "graph.complete": { readonly exitPoint: string; readonly step: number };
  /** A run ended with an error, or was cancelled. */
  "graph.fail": {
    readonly node: string;
    readonly step: number;
    readonly code: string;
    readonly error: string;
  };
  /** A run waits for input, or at a breakpoint. */
  "graph.pause": { readonly node: string; readonly step: number; readonly reason: string };
  /** A checkpoint was made by a graph of another name or topology. */
  "graph.mismatch": { readonly expected: string; readonly actual: string };

  /** A node is about to run. */
  "node.start": { readonly node: string; readonly step: number };
  /** A node returned, or threw: then `error` is its message. `usage` is what it wrote into the ledger. */
  "node.complete": {
    readonly node: string;
    readonly step: number;
    readonly durationMs: number;
    readonly error?: string;
    readonly usage?: Readonly<Record<string, number | undefined>>;
  };
  /** An attempt of a node failed; the next comes after `delayMs`. */
  "node.retry": {
    readonly node: string;
    readonly step: number;
    readonly attempt: number;
    readonly error: string;
    readonly delayMs: number;
  };

  /** A predicate was asked. */
  "edge.evaluate": {
    readonly from: string;
    readonly to: string;
    readonly name?: string;
    readonly result: boolean;
  };
  /** The run goes along this edge. */
  "edge.transition": { readonly from: string; readonly to: string; readonly name?: string };
  /** A node is about to run again. */
  "cycle.detected": { readonly node: string; readonly visitCount: number; readonly step: number };

  /** A checkpoint is in the store. */
  "checkpoint.save": {
    readonly node: string;
    readonly step: number;
    readonly sequence: number;
    readonly checkpointId: string;
    readonly reason: string;
    readonly bytes?: number;
    readonly durationMs: number;
  };
  /** A checkpoint was read. */
  "checkpoint.load": {
    readonly node: string;
    readonly step: number;
    readonly checkpointId: string;
  };
  /** A run goes on at `resumeNode`. */
  "checkpoint.resume": {
    readonly node: string;
    readonly step: number;
    readonly resumeNode: string;
  };
  /** The checkpoints of a finished run were removed. */
  "checkpoint.delete": { readonly node: string; readonly step: number };
  /** A checkpoint that is not what was written was set aside. */
  "checkpoint.quarantine": {
    readonly file: string;
    readonly expected: string;
    readonly actual: string;
  };
  /** A node wrote a decision into the ledger. */
  decision: {
    readonly node: string;
    readonly step: number;
    readonly description: string;
    readonly rationale?: string;
    readonly confidence?: number;
    readonly alternatives?: readonly string[];
  };
  /** A node finished a part of what the run makes. */
  progress: {
    readonly node: string;
    readonly step: number;
    readonly title: string;
    readonly summary: string;
    readonly sources: readonly string[];
  };

  /** A save, a removal or a load failed and the run goes on without it. */
  "checkpoint.error": {
    readonly action: "save" | "delete" | "load";
    readonly node: string;
    readonly error: string;
  };
}

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

/** Is told every event: a function, or an object with `onEvent`. */
export type Observer = ((event: AnyEvent) => unknown) | { onEvent(event: AnyEvent): unknown };

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
  #all = false;
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
    return this.#any && (this.#all || Boolean(this.#bus.all.get(type)?.length));
  }

  emit<T extends EventType>(
    type: T,
    source: string,
    runId: string,
    data: EventMap[T],
    timestamp?: string,
  ): void {
    if (!this.listens(type)) return;
    const event: WaymarkEvent<T> = { type, timestamp: timestamp ?? isoNow(), source, runId, data };
    // A WaymarkEvent<T> is one member of the union, which TypeScript can't see for an open T.
    this.#bus.emit(type, event as unknown as AnyEvent);
  }

  #count(): void {
    this.#all = Boolean(this.#bus.all.get("*")?.length);
    this.#any = this.#guards.size > 0;
  }
}

/** A listener that never throws: its first failure is printed, the rest are dropped. */
function guard(type: string, handler: (event: AnyEvent) => unknown): (event: AnyEvent) => void {
  let reported = false;
  const report = (error: unknown): void => {
    if (reported) return;
    reported = true;
    console.error(`waymark: a listener for "${type}" failed; later failures are not shown.`, error);
  };
  return (event) => {
    try {
      const result = handler(event);
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
