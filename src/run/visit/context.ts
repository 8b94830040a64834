import type { CheckpointStore } from "../../checkpoint/store.js";
import { now, sleep } from "../../clock.js";
import { ConfigError, type SchemaError, show } from "../../errors.js";
import type { EventMap } from "../../event-map.js";
import type { EventType } from "../../events.js";
import type {
  LedgerWriter,
  NodeContext,
  ProgressPart,
  RetryPolicy,
  Saves,
} from "../../graph/node.js";
import {
  checkPauseOptions,
  type PauseOptions,
  pauseRequest,
  type SchemaPauseOptions,
} from "../../graph/pause.js";
import { callable, checkOptions, duration, strings, text } from "../../options.js";
import { progressOf } from "../../state/derive.js";
import type { PauseRequest } from "../../state/pauses.js";
import { reduced } from "../../state/reducers.js";
import { DATA_COPY } from "../../state/results.js";
import { type Patch, State } from "../../state/state.js";
import type { ItemOutcome, ItemRecord } from "../../state/steps.js";
import type { Stop } from "../loop/failure.js";
import { ANSWER, DEADLINE, RETRY, SLEEP, waitUntil, workKey } from "../pauses/pauses.js";
import type { Attempt, Part, Visit } from "./visit.js";
import type { VisitedRun, Work } from "./work.js";

/** An item of a list, as the list's node knows it. */
export interface ItemPlace {
  readonly index: number;
  /** Identifies the item, whatever its place in the list. */
  readonly id: string;
  /** The item's name in events. */
  readonly label: string;
  /** When the results of lists inside the item are saved; as in the list around it by default. */
  readonly saves?: Saves | undefined;
  /** The signals that stop this item; those of the node by default. */
  readonly stop?: Stop;
}

/**
 * The context of one attempt at a node, or at a part of it: an item of a list, a route. What follows the members of
 * {@link NodeContext} is for the node factories. Created at every step, so it holds little and computes on demand.
 */
export class RunContext<D extends object> implements NodeContext<D> {
  readonly node: string;
  readonly step: number;
  readonly #visit: Visit<D>;
  readonly #at: Attempt;

  static {
    bindMethods(RunContext.prototype, {
      ...{ once: true, recall: true, remember: true, forget: true, checkpoint: true },
      ...{ pause: true, sleep: true, progress: true, emit: true },
    });
  }

  constructor(visit: Visit<D>, node: string, step: number, at: Attempt) {
    this.node = node;
    this.step = step;
    this.#visit = visit;
    this.#at = at;
  }

  get signal(): AbortSignal {
    return this.#at.stop.signal;
  }

  get draining(): AbortSignal {
    return this.#at.stop.draining;
  }

  get runId(): string {
    return this.#visit.runId;
  }

  get attempt(): number {
    return this.#at.number;
  }

  /** The index of the item; -1 outside of a list. */
  get index(): number {
    return this.#at.part.index;
  }

  get idempotencyKey(): string {
    const { rollback } = progressOf(this.#visit.state);
    const key = `${this.runId}:${this.step}:${this.node}`;
    // Work after a rollback is new work, not a repetition.
    return (rollback === 0 ? key : `${key}@${rollback}`) + this.itemPath;
  }

  async once<T>(key: string, action: () => T | Promise<T>): Promise<T> {
    workKey("key", key);
    callable("action", action);
    const own = this.#key(key);
    return (await this.#work(own, true).once(own, trailOf(this.#at), action)) as T;
  }

  recall(key: string): unknown {
    return this.#recalled(this.#key(key));
  }

  async remember(key: string, value: unknown): Promise<void> {
    workKey("key", key);
    const own = this.#key(key);
    await this.#work(own).remember(own, value);
  }

  forget(key: string): void {
    text("key", key);
    this.#work().forget(this.#key(key));
  }

  async checkpoint(state: State<D>, reason: string): Promise<State<D>> {
    // The node has one State and many items.
    if (this.itemPath !== "") {
      throw new ConfigError("checkpoint", "is not for one item of a list: use once or remember");
    }
    text("reason", reason);
    return this.#work().milestone(state, reason);
  }

  pause<T>(name: string, options: SchemaPauseOptions<T>): Promise<T>;
  pause(name: string, options: PauseOptions): Promise<unknown>;
  async pause(name: string, options: PauseOptions): Promise<unknown> {
    text("name", name);
    checkPauseOptions(options);
    const work = this.#work();
    const { timeout, schema } = options;
    const deadline =
      timeout === undefined
        ? undefined
        : await work.once(DEADLINE + name, trailOf(this.#at), () => now() + timeout);
    const request = pauseRequest(name, options, deadline as number | undefined);
    return work.answer(request, schema);
  }

  async sleep(name: string, ms: number): Promise<void> {
    text("name", name);
    duration("ms", ms);
    const key = SLEEP + this.#key(name);
    const until = await this.#work(key, true).once(key, trailOf(this.#at), () => now() + ms);
    await this.#wait(key, until as number);
  }

  get ledger(): LedgerWriter {
    return this.#visit.ledgerWriter(this.step);
  }

  progress(part: ProgressPart): void {
    checkOptions("progress", part, { title: text, summary: text, sources: strings });
    const { title, summary, sources = [] } = part;
    text("progress.title", title);
    text("progress.summary", summary);
    const { label } = this.#at.part;
    const at = { node: this.node, step: this.step, ...(label !== undefined && { item: label }) };
    this.#visit.emit("progress", { ...at, title, summary, sources });
  }

  emit<T extends EventType>(type: T, data: EventMap[T]): void {
    this.#visit.emit(type, data);
  }

  /** The context of an item; it has keys of its own. */
  item({ index, id, label, saves, stop = this.#at.stop }: ItemPlace): RunContext<D> {
    const { part } = this.#at;
    const inside: Part = {
      prefix: `${part.prefix}[${id}] `,
      path: `${part.path}[${id}]`,
      index,
      // For items inside an item, events name the outer one.
      label: part.label ?? label,
      saves: saves ?? part.saves,
      onWrite: undefined,
      keys: undefined,
    };
    return this.#with({ part: inside, outer: this.#at, stop });
  }

  /**
   * The context of a route; it has keys of its own.
   *
   * @param onWrite - called before anything is saved.
   */
  route(name: string, onWrite: () => void): RunContext<D> {
    const { part } = this.#at;
    const prefix = `${part.prefix}route ${name} `;
    return this.#with({ part: { ...part, prefix, onWrite, keys: undefined }, outer: this.#at });
  }

  /** The context of the next attempt, which `retry` allows. */
  attempted(number: number, retry: RetryPolicy | undefined): RunContext<D> {
    if (this.#at.outer === undefined) this.#visit.attempt(number);
    return this.#with({ number, retry });
  }

  /** The same attempt, which a signal of its own stops; set before the attempt begins. */
  stoppedBy(signal: AbortSignal): this {
    this.#at.stop = { signal, draining: this.draining };
    return this;
  }

  /** The context of another attempt, or of one at a part of this. */
  #with(changes: Partial<Attempt>): RunContext<D> {
    const at = { ...this.#at, isOver: false, ...changes };
    return new RunContext(this.#visit, this.node, this.step, at);
  }

  /** Ends the attempt: it must not write into the next one's work. */
  end(): void {
    this.#at.isOver = true;
  }

  /** The policy by which whoever called this node or item retries it. */
  get retry(): RetryPolicy | undefined {
    return this.#at.retry;
  }

  /** When the results of a list are saved. */
  get saves(): Saves {
    return this.#at.part.saves;
  }

  /** The items that this is inside, such as `[3]` or `[3][0]`; `""` for none. */
  get itemPath(): string {
    return this.#at.part.path;
  }

  /** Waits until the next attempt is due. If the run pauses for that, the number of attempts is remembered. */
  async waitForRetry(ms: number): Promise<void> {
    if (ms <= this.run.settings.longestWait) return sleep(ms, this.signal, this.draining);
    const until = now() + ms;
    const key = RETRY + this.#key("");
    await this.#work(key).remember(key, { attempts: this.attempt, until });
    await this.#wait(`${key}attempt ${this.attempt + 1}`, until);
  }

  /** How many attempts failed before the run paused to wait for the next one; waits until that is due. */
  attemptsBefore(): number | Promise<number> {
    const key = RETRY + this.#key("");
    const before = this.#visit.recalled(key) as { attempts: number; until: number } | undefined;
    if (before === undefined) return 0;
    const { attempts, until } = before;
    return this.#wait(`${key}attempt ${attempts + 1}`, until).then(() => attempts);
  }

  async #wait(name: string, until: number): Promise<void> {
    const ms = until - now();
    const isLong = ms > this.run.settings.longestWait;
    if (isLong) this.#visit.work(this.step).ask(waitUntil(name, until));
    if (ms > 0) await sleep(ms, this.signal, this.draining);
  }

  /** Whether another attempt would be useless: the node pauses, or can't save. */
  get isOver(): boolean {
    const { worked } = this.#visit;
    if (worked === undefined) return false;
    // Other items may pause; this one continues.
    return worked.failure !== undefined || (this.itemPath === "" && worked.asked.length > 0);
  }

  /** Notes a failed attempt at the node; returns the State that the next one starts from: the last milestone. */
  attemptFailed(): Promise<State<D>> {
    this.#visit.attemptFailed();
    return this.#visit.left(false);
  }

  /** Remembers a value without saving: the next save includes it. */
  keep(key: string, value: unknown): void {
    const own = this.#key(key);
    this.#work(own).keep(own, value);
  }

  /** Saves a copy of the run's data; a migration or a fork changes it as it changes the data. */
  async rememberData(key: string, data: object): Promise<void> {
    const own = DATA_COPY + this.#key(key);
    await this.#work(own).remember(own, data);
  }

  /** The copy of the run's data under a key. */
  recallData(key: string): unknown {
    return this.#recalled(DATA_COPY + this.#key(key));
  }

  /** Whether this part of the node has remembered anything. */
  get hasKeys(): boolean {
    return this.#at.part.keys !== undefined;
  }

  /** Forgets everything that this part of the node has remembered. */
  forgetAll(): void {
    const work = this.#work();
    for (const key of this.#at.part.keys ?? []) work.forget(key);
  }

  /** The answer to a pause of a run inside this node; without one this run pauses. */
  async answer(request: PauseRequest): Promise<unknown> {
    return this.#work().answer(request, undefined);
  }

  /** The answer to a pause that was given before. */
  recallAnswer(name: string): unknown {
    return this.#recalled(ANSWER + name);
  }

  forgetAnswer(name: string): void {
    this.#work().forget(ANSWER + name);
  }

  /** Notes that an answer was invalid and is asked for again, so that whoever gave it is told. */
  refuse(error: SchemaError): void {
    this.#work().refusal ??= error;
  }

  /** A State with a change merged in, through the graph's reducers. */
  change(state: State<D>, change: State<D> | Patch<D>): State<D> {
    if (change instanceof State) return change;
    const { reducers } = this.run.settings;
    const patch = reducers === undefined ? change : reduced(state.data, change, reducers);
    return state.merge(patch as Patch<D>);
  }

  /** Emits that an item has ended, and adds it to the step's record. */
  completeItem(
    type: "step.complete" | "worker.complete",
    data: EventMap["step.complete"],
    outcome: ItemOutcome,
  ): void {
    this.#visit.addItem(data.item, data.durationMs, outcome);
    this.#visit.emit(type, data);
  }

  /** Adds a node of an inner graph to the step's record; inside an item it does nothing, as the item is the entry. */
  addInner({ name, startedAt, durationMs, outcome }: ItemRecord): void {
    if (this.#at.outer === undefined) this.#visit.addItem(name, durationMs, outcome, startedAt);
  }

  /** The tasks of a dag that this run has completed. */
  get tasks(): readonly string[] {
    return this.#visit.tasks;
  }

  /** Notes tasks that the node has completed; they count once the node completes. */
  completeTasks(tasks: Iterable<string>): void {
    this.#visit.completeTasks(this.step, tasks);
  }

  /** The store of the run; `undefined` if it saves nothing. */
  get store(): CheckpointStore | undefined {
    return this.run.settings.store;
  }

  /** The run: its settings, and what may stop it. */
  get run(): VisitedRun<D> {
    return this.#visit.run;
  }

  #key(key: string): string {
    return this.#at.part.prefix + key;
  }

  #recalled(own: string): unknown {
    return this.#visit.work(this.step).known.get(own);
  }

  /**
   * The work of the node, to write into.
   *
   * @param key - noted for {@link forgetAll}.
   * @param isOnce - what a given-up attempt at the node does once is kept for the next: the first result counts.
   * @throws ConfigError if the attempt, one around it or the node has ended.
   */
  #work(key?: string, isOnce = false): Work<D> {
    for (let at: Attempt | undefined = this.#at; at !== undefined; at = at.outer) {
      const { outer, part } = at;
      if (at.isOver && !(isOnce && outer === undefined)) throw endedAttempt(at, this.step);
      part.onWrite?.();
      if (key === undefined || outer === undefined) continue;
      part.keys ??= new Set();
      part.keys.add(key);
    }
    return this.#visit.work(this.step);
  }
}

/** The methods that a user may take from a context. */
type NodeMethods = {
  readonly [K in keyof NodeContext as NodeContext[K] extends (...args: never) => unknown
    ? K
    : never]: true;
};

/** Binds methods of a prototype when they are read, so that `const { once } = context` works. The others are faster. */
function bindMethods<D extends object>(prototype: RunContext<D>, methods: NodeMethods): void {
  for (const name of Object.keys(methods)) {
    const method: unknown = Reflect.get(prototype, name);
    if (typeof method !== "function") continue;
    Object.defineProperty(prototype, name, {
      get(this: unknown) {
        return method.bind(this);
      },
    });
  }
}

/** The numbers of the attempts that lead to one, such as `1.2.`: only calls of the same one share a `once`. */
function trailOf({ outer, number }: Attempt): string {
  return `${outer === undefined ? "" : trailOf(outer)}${number}.`;
}

/** The error for an attempt that writes after it was given up. */
function endedAttempt({ number, part }: Attempt, step: number): ConfigError {
  const what = part.path === "" ? `of step ${step}` : `at item ${part.path}`;
  const problem = `belongs to attempt ${number} ${what}, which has ended: stop when its signal aborts`;
  return new ConfigError("context", problem);
}

/** A context with the members for node factories. */
export function factoryContext<D extends object>(context: NodeContext<D>): RunContext<D> {
  if (context instanceof RunContext) return context;
  throw new ConfigError("context", `must be the context the node was given; got ${show(context)}`);
}
