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
 * again.
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

/** The maximum length of an item's name in events. */
const MAX_LABEL = 100;

/** The name of an item in events: a simple value itself, cut if it is long; otherwise the index. */
export function labelOf(item: unknown, index: number): string {
  const isSimple = ["string", "number", "bigint", "boolean"].includes(typeof item);
  return isSimple ? String(item).slice(0, MAX_LABEL) : `#${index}`;
}

/** The context of one part of a node; its keys are separate from those of other parts. */
export class Scope<D extends object> implements FactoryContext<D> {
  readonly #outer: FactoryContext<D>;
  readonly #prefix: string;
  readonly #touch: () => void;
  /** The outer names of the keys that were used here. */
  #keys: string[] | undefined;
  #dataKeys: string[] | undefined;

  static {
    bindMethods(Scope.prototype);
  }

  /** @param touch - called before anything is saved. */
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
    // A step record lists the items, not what runs inside them.
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

  /** Forgets everything that was remembered here. */
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
  /** Identifies the item, whatever its place in the list; the index by default. */
  readonly id?: string;
  /** The number of the attempt at the item, if items are retried. */
  readonly attempt?: number;
  /** The signals that stop this item; those of the node by default. */
  readonly stop?: Stop;
  /** When results inside the item are saved. */
  readonly saves?: Saves;
  /** The item's name in events. */
  readonly label: string;
}

/** The context of one item of a list. */
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

  /** For items inside an item, the event names the outer one. */
  override progress(part: ProgressPart): void {
    super.progress(part, this.#label);
  }

  override get itemPath(): string {
    return `${super.itemPath}[${this.#id}]`;
  }

  override get idempotencyKey(): string {
    return `${super.idempotencyKey}[${this.#id}]`;
  }

  /** Not shared between attempts: an abandoned one may wait forever. */
  override once<T>(key: string, action: () => T | Promise<T>, attempt?: string): Promise<T> {
    const own = this.#attempt === undefined ? attempt : `${this.#attempt}.${attempt ?? ""}`;
    return super.once(key, action, own);
  }

  /** The node has one State and many items. */
  override async checkpoint(): Promise<never> {
    throw new ConfigError("checkpoint", "is not for one item of a list: use once or remember");
  }

  /** Ends the attempt: it must not write into the next one's work. */
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

/** The path of items that a context is inside, such as `[3]` or `[3][0]`; `""` for none. */
export function itemPathOf<D extends object>(context: NodeContext<D>): string {
  return context instanceof Scope ? context.itemPath : "";
}

/**
 * Remembers that a node has advanced. Overwriting its intermediate value does not show that, so the position is
 * remembered under a key of its own.
 */
export function recordProgress<D extends object>(
  context: NodeContext<D>,
  name: string,
  from: string,
  to: string,
): Promise<void> {
  // First, because it throws in an abandoned attempt, before there is a promise that nobody awaits.
  context.forget(`${name} ${from}`);
  return context.remember(`${name} ${to}`, true);
}
