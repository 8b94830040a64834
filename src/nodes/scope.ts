import { ConfigError, show } from "../errors.js";
import type { EventMap } from "../event-map.js";
import type { EventType } from "../events.js";
import type { LedgerWriter, NodeContext, ProgressPart } from "../graph/node.js";
import type { PauseOptions } from "../graph/pause.js";
import type { Stop } from "../run/failure.js";
import type { Patch, State } from "../state/state.js";

/** A State made from the one that was given, or an object to merge into it. */
export type Change<D extends object> = State<D> | Patch<D>;

/** Items to work on, or how to get them from the State: the same ones each time, as a node may run again. */
export type Items<D extends object, I> = readonly I[] | ((state: State<D>) => readonly I[]);

/** What a step of a chain or a worker of a parallel node gets besides the State and its item. */
export interface ItemContext<D extends object = object> extends NodeContext<D> {
  /**
   * The place of the item in the list, from 0 up. What is remembered here is this item's own; only the names of
   * pauses are those of the whole node.
   */
  readonly index: number;
}

/** The items for a State. */
export function itemsOf<D extends object, I>(items: Items<D, I>, state: State<D>): readonly I[] {
  const list: unknown = typeof items === "function" ? items(state) : items;
  if (Array.isArray(list)) return list;
  throw new ConfigError("items", `wants an array or a function that gives one, got ${show(list)}`);
}

/** A part of a node, as its own code sees the node's context: its keys are apart from those of the others. */
export class Scope<D extends object> implements NodeContext<D> {
  readonly #outer: NodeContext<D>;
  readonly #prefix: string;
  readonly #touch: () => void;
  /** What the keys that were used here are called outside. */
  keys: string[] | undefined;

  /** @param touch - is called before anything is saved. */
  constructor(outer: NodeContext<D>, prefix: string, touch: () => void = () => {}) {
    this.#outer = outer;
    this.#prefix = prefix;
    this.#touch = touch;
  }

  /** See {@link rootOf}. */
  get root(): NodeContext<D> {
    return rootOf(this.#outer);
  }

  /** See {@link placeOf}. */
  get place(): string {
    return placeOf(this.#outer);
  }

  get signal(): AbortSignal {
    return this.#outer.signal;
  }

  get draining(): AbortSignal {
    return this.#outer.draining;
  }

  get runId(): string {
    return this.#outer.runId;
  }

  get node(): string {
    return this.#outer.node;
  }

  get step(): number {
    return this.#outer.step;
  }

  get attempt(): number {
    return this.#outer.attempt;
  }

  get idempotencyKey(): string {
    return this.#outer.idempotencyKey;
  }

  get ledger(): LedgerWriter {
    return this.#outer.ledger;
  }

  once<T>(key: string, action: () => T | Promise<T>): Promise<T> {
    this.#touch();
    return this.#outer.once(this.#key(key), action);
  }

  recall(key: string): unknown {
    return this.#outer.recall(this.#prefix + key);
  }

  remember(key: string, value: unknown): Promise<void> {
    this.#touch();
    return this.#outer.remember(this.#key(key), value);
  }

  forget(key: string): void {
    this.#outer.forget(this.#prefix + key);
  }

  checkpoint(state: State<D>, reason: string): Promise<State<D>> {
    this.#touch();
    return this.#outer.checkpoint(state, reason);
  }

  pause(name: string, options: PauseOptions): Promise<unknown> {
    this.#touch();
    return this.#outer.pause(name, options);
  }

  sleep(name: string, ms: number): Promise<void> {
    this.#touch();
    return this.#outer.sleep(this.#prefix + name, ms);
  }

  progress(part: ProgressPart): void {
    this.#outer.progress(part);
  }

  emit<T extends EventType>(type: T, data: EventMap[T]): void {
    this.#outer.emit(type, data);
  }

  #key(key: string): string {
    const outer = this.#prefix + key;
    this.keys ??= [];
    this.keys.push(outer);
    return outer;
  }
}

/** One item of a list. */
export class ItemScope<D extends object> extends Scope<D> implements ItemContext<D> {
  readonly index: number;
  readonly #stop: Stop;

  /** @param stop - what stops this item. */
  constructor(outer: NodeContext<D>, index: number, stop: Stop = outer) {
    super(outer, `[${index}] `);
    this.index = index;
    this.#stop = stop;
  }

  override get signal(): AbortSignal {
    return this.#stop.signal;
  }

  override get draining(): AbortSignal {
    return this.#stop.draining;
  }

  override get place(): string {
    return `${super.place}[${this.index}]`;
  }

  override get idempotencyKey(): string {
    return `${super.idempotencyKey}[${this.index}]`;
  }

  /** The node's State is one, and its items are many. */
  override async checkpoint(): Promise<never> {
    throw new ConfigError("checkpoint", "is not for one item of a list: use once or remember");
  }
}

/** The context of the node itself. */
export function rootOf<D extends object>(context: NodeContext<D>): NodeContext<D> {
  return context instanceof Scope ? context.root : context;
}

/** Tells the items apart that a context is in: `[3]`, `[3][0]`; `""` in none. */
export function placeOf<D extends object>(context: NodeContext<D>): string {
  return context instanceof Scope ? context.place : "";
}
