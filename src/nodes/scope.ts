import type { CheckpointStore, Claim } from "../checkpoint/store.js";
import { ConfigError, type SchemaError, show } from "../errors.js";
import type { EventMap } from "../event-map.js";
import type { EventBus, EventType } from "../events.js";
import type { LedgerWriter, NodeContext, ProgressPart } from "../graph/node.js";
import type { PauseOptions, SchemaPauseOptions } from "../graph/pause.js";
import { bindMethods, type FactoryContext } from "../run/factory-context.js";
import type { Stop } from "../run/failure.js";
import type { PauseRequest } from "../state/record.js";
import type { Patch, State } from "../state/state.js";
import type { ItemOutcome } from "../state/steps.js";
import type { Saves } from "./saves.js";

/** A State made from the one that was given, or an object to merge into it. */
export type Change<D extends object> = State<D> | Patch<D>;

/**
 * Items to work on, or a function that gets them from the State: always the same ones, because a node may run
 * again. @inline
 */
export type Items<D extends object, I> = readonly I[] | ((state: State<D>) => readonly I[]);

/** What a step of a chain or a worker of a parallel node receives besides the State and its item. */
export interface ItemContext<D extends object = object> extends NodeContext<D> {
  /**
   * The index of the item in the list. What is remembered here belongs to this item; only the names of pauses
   * are shared by the whole node.
   */
  readonly index: number;
}

/** The items for a State. */
export function itemsOf<D extends object, I>(items: Items<D, I>, state: State<D>): readonly I[] {
  const list: unknown = typeof items === "function" ? items(state) : items;
  if (Array.isArray(list)) return list;
  const problem = `must be an array, or a function that returns one; got ${show(list)}`;
  throw new ConfigError("items", problem);
}

/** How long the name of an item may be in an event. */
const MAX_LABEL = 100;

/** What events call an item: itself if it is short and simple, else its place in the list. */
export function labelOf(item: unknown, index: number): string {
  const isSimple = ["string", "number", "bigint", "boolean"].includes(typeof item);
  return isSimple ? String(item).slice(0, MAX_LABEL) : `#${index}`;
}

/** A part of a node, as its own code sees the node's context: its keys are apart from those of the others. */
export class Scope<D extends object> implements FactoryContext<D> {
  readonly #outer: FactoryContext<D>;
  readonly #prefix: string;
  readonly #touch: () => void;
  /** What the keys that were used here are called outside. */
  #keys: string[] | undefined;
  #dataKeys: string[] | undefined;

  static {
    bindMethods(Scope.prototype);
  }

  /** @param touch - is called before anything is saved. */
  constructor(outer: FactoryContext<D>, prefix: string, touch: () => void = () => {}) {
    this.#outer = outer;
    this.#prefix = prefix;
    this.#touch = touch;
  }

  /** See {@link rootOf}. */
  get root(): FactoryContext<D> {
    return rootOf(this.#outer);
  }

  /** See {@link itemPathOf}. */
  get itemPath(): string {
    return itemPathOf(this.#outer);
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

  get bus(): EventBus {
    return this.#outer.bus;
  }

  get tasks(): readonly string[] {
    return this.#outer.tasks;
  }

  get reduces(): boolean {
    return this.#outer.reduces;
  }

  get store(): CheckpointStore | undefined {
    return this.#outer.store;
  }

  get claim(): Claim | undefined {
    return this.#outer.claim;
  }

  checkClaim(): Promise<void> {
    return this.#outer.checkClaim();
  }

  completeItem(
    type: "step.complete" | "worker.complete",
    data: EventMap["step.complete"],
    outcome: ItemOutcome,
  ): void {
    this.#outer.completeItem(type, data, outcome);
  }

  addInner(): void {
    // The item is what the record has.
  }

  completeTasks(tasks: Iterable<string>): void {
    this.#outer.completeTasks(tasks);
  }

  change(state: State<D>, change: Change<D>): State<D> {
    return this.#outer.change(state, change);
  }

  once<T>(key: string, action: () => T | Promise<T>, attempt?: string): Promise<T> {
    this.#touch();
    return this.#outer.once(this.#key(key), action, attempt);
  }

  recall(key: string): unknown {
    return this.#outer.recall(this.#prefix + key);
  }

  remember(key: string, value: unknown): Promise<void> {
    this.#touch();
    return this.#outer.remember(this.#key(key), value);
  }

  keep(key: string, value: unknown): void {
    this.#touch();
    this.#outer.keep(this.#key(key), value);
  }

  rememberData(key: string, data: object): Promise<void> {
    this.#touch();
    this.#dataKeys ??= [];
    this.#dataKeys.push(this.#prefix + key);
    return this.#outer.rememberData(this.#prefix + key, data);
  }

  recallData(key: string): unknown {
    return this.#outer.recallData(this.#prefix + key);
  }

  forgetData(key: string): void {
    this.#outer.forgetData(this.#prefix + key);
  }

  forget(key: string): void {
    this.#outer.forget(this.#prefix + key);
  }

  checkpoint(state: State<D>, reason: string): Promise<State<D>> {
    this.#touch();
    return this.#outer.checkpoint(state, reason);
  }

  pause<T>(name: string, options: SchemaPauseOptions<T>): Promise<T>;
  pause(name: string, options: PauseOptions): Promise<unknown>;
  pause(name: string, options: PauseOptions): Promise<unknown> {
    this.#touch();
    return this.#outer.pause(name, options);
  }

  answer(request: PauseRequest): Promise<unknown> {
    this.#touch();
    return this.#outer.answer(request);
  }

  refuse(error: SchemaError): void {
    this.#outer.refuse(error);
  }

  sleep(name: string, ms: number): Promise<void> {
    this.#touch();
    return this.#outer.sleep(this.#prefix + name, ms);
  }

  progress(part: ProgressPart, item?: string): void {
    this.#outer.progress(part, item);
  }

  emit<T extends EventType>(type: T, data: EventMap[T]): void {
    this.#outer.emit(type, data);
  }

  /** Whether there is anything to forget. */
  get hasKeys(): boolean {
    return this.#keys !== undefined || this.#dataKeys !== undefined;
  }

  /** Lets go of all that was remembered here. */
  forgetAll(): void {
    for (const key of this.#keys ?? []) this.#outer.forget(key);
    for (const key of this.#dataKeys ?? []) this.#outer.forgetData(key);
  }

  #key(key: string): string {
    const outer = this.#prefix + key;
    this.#keys ??= [];
    this.#keys.push(outer);
    return outer;
  }
}

/** Which item of a list a scope is for, and how it is worked on. */
export interface ItemPlace {
  readonly index: number;
  /** Distinguishes the item from the others, whatever its place; the index by default. */
  readonly id?: string;
  /** Which attempt at the item this is, where items are tried again. */
  readonly attempt?: number;
  /** What stops this item; what stops the node by default. */
  readonly stop?: Stop;
  /** When what the item does is saved. */
  readonly saves?: Saves;
  /** What events call the item. */
  readonly label: string;
}

/** One item of a list. */
export class ItemScope<D extends object> extends Scope<D> implements ItemContext<D> {
  readonly index: number;
  readonly saves: Saves;
  readonly #id: string;
  readonly #label: string;
  readonly #attempt: number | undefined;
  readonly #stop: Stop;
  #isOver = false;

  static {
    bindMethods(ItemScope.prototype);
  }

  constructor(outer: FactoryContext<D>, place: ItemPlace) {
    const { index, id = String(index), attempt, stop = outer, saves = "item" } = place;
    super(outer, `[${id}] `, () => this.#checkOpen());
    this.index = index;
    this.saves = saves;
    this.#id = id;
    this.#label = place.label;
    this.#attempt = attempt;
    this.#stop = stop;
  }

  override get signal(): AbortSignal {
    return this.#stop.signal;
  }

  override get draining(): AbortSignal {
    return this.#stop.draining;
  }

  override get attempt(): number {
    return this.#attempt ?? super.attempt;
  }

  /** Of items inside an item, the outer one is named. */
  override progress(part: ProgressPart): void {
    super.progress(part, this.#label);
  }

  override get itemPath(): string {
    return `${super.itemPath}[${this.#id}]`;
  }

  override get idempotencyKey(): string {
    return `${super.idempotencyKey}[${this.#id}]`;
  }

  /** Not shared between attempts: the one that was given up may be waiting for ever. */
  override once<T>(key: string, action: () => T | Promise<T>, attempt?: string): Promise<T> {
    const own = this.#attempt === undefined ? attempt : `${this.#attempt}.${attempt ?? ""}`;
    return super.once(key, action, own);
  }

  /** The node's State is one, and its items are many. */
  override async checkpoint(): Promise<never> {
    throw new ConfigError("checkpoint", "is not for one item of a list: use once or remember");
  }

  /** The attempt has ended: it may not write into the next one's work. */
  end(): void {
    this.#isOver = true;
  }

  #checkOpen(): void {
    if (!this.#isOver) return;
    const problem = `belongs to attempt ${this.attempt} at item ${show(this.#id)}, which has ended: stop when its signal aborts`;
    throw new ConfigError("context", problem);
  }
}

/** The context of the node itself. */
export function rootOf<D extends object>(context: FactoryContext<D>): FactoryContext<D> {
  return context instanceof Scope ? context.root : context;
}

/** Names the items that a context is in: `[3]`, `[3][0]`; `""` in none. */
export function itemPathOf<D extends object>(context: NodeContext<D>): string {
  return context instanceof Scope ? context.itemPath : "";
}

/**
 * Remembers that a node has come further. What it is at only replaces what it was at, and of that nobody
 * can see whether it got further: how far it is, is a result of its own.
 */
export function recordProgress<D extends object>(
  context: NodeContext<D>,
  name: string,
  from: string,
  to: string,
): Promise<void> {
  // First, because an attempt that was given up is refused here, before a promise waits for nobody.
  context.forget(`${name} ${from}`);
  return context.remember(`${name} ${to}`, true);
}
