import type { CheckpointStore, Claim } from "../checkpoint/store.js";
import { now, sleep } from "../clock.js";
import type { SchemaError } from "../errors.js";
import type { EventMap } from "../event-map.js";
import type { EventBus, EventType } from "../events.js";
import type { LedgerWriter, ProgressPart } from "../graph/node.js";
import {
  checkPauseOptions,
  type PauseOptions,
  pauseRequest,
  type SchemaPauseOptions,
} from "../graph/pause.js";
import { callable, checkOptions, duration, strings, text } from "../options.js";
import { DATA_COPY } from "../state/data-copies.js";
import type { PauseRequest } from "../state/record.js";
import { reduced } from "../state/reducers.js";
import { type Patch, State } from "../state/state.js";
import type { ItemOutcome, ItemRecord } from "../state/steps.js";
import { bindMethods, type FactoryContext } from "./factory-context.js";
import { deadlineKey, RETRY, sleepKey, waitUntil, workKey } from "./pauses.js";
import type { Visit } from "./visit.js";

/** The context of one attempt at a node. Created at every step, so it holds little and computes on demand. */
export class RunContext<D extends object> implements FactoryContext<D> {
  readonly signal: AbortSignal;
  readonly node: string;
  readonly step: number;
  readonly attempt: number;
  readonly #visit: Visit<D>;

  static {
    bindMethods(RunContext.prototype);
  }

  constructor(visit: Visit<D>, signal: AbortSignal, node: string, step: number, attempt: number) {
    this.#visit = visit;
    this.signal = signal;
    this.node = node;
    this.step = step;
    this.attempt = attempt;
  }

  get runId(): string {
    return this.#visit.runId;
  }

  get draining(): AbortSignal {
    return this.#visit.draining;
  }

  get idempotencyKey(): string {
    const { rollback } = this.#visit;
    const key = `${this.runId}:${this.step}:${this.node}`;
    // Work after a rollback is new work, not a repetition.
    return rollback === 0 ? key : `${key}@${rollback}`;
  }

  async once<T>(key: string, action: () => T | Promise<T>, attempt = ""): Promise<T> {
    workKey("key", key);
    callable("action", action);
    const id = `${this.attempt}.${attempt}`;
    return (await this.#visit.work(this.step).once(key, id, action)) as T;
  }

  recall(key: string): unknown {
    return this.#visit.work(this.step).recall(key);
  }

  async remember(key: string, value: unknown): Promise<void> {
    workKey("key", key);
    await this.#visit.workOf(this.step, this.attempt).remember(key, value);
  }

  forget(key: string): void {
    text("key", key);
    this.#visit.workOf(this.step, this.attempt).forget(key);
  }

  keep(key: string, value: unknown): void {
    this.#visit.workOf(this.step, this.attempt).keep(key, value);
  }

  async rememberData(key: string, data: object): Promise<void> {
    await this.#visit.workOf(this.step, this.attempt).remember(DATA_COPY + key, data);
  }

  recallData(key: string): unknown {
    return this.recall(DATA_COPY + key);
  }

  forgetData(key: string): void {
    this.forget(DATA_COPY + key);
  }

  get bus(): EventBus {
    return this.#visit.settings.bus;
  }

  get tasks(): readonly string[] {
    return this.#visit.tasks;
  }

  completeItem(
    type: "step.complete" | "worker.complete",
    data: EventMap["step.complete"],
    outcome: ItemOutcome,
  ): void {
    this.#visit.addItem(data.item, data.durationMs, outcome);
    this.#visit.emit(type, data);
  }

  addInner({ name, startedAt, durationMs, outcome }: ItemRecord): void {
    this.#visit.addItem(name, durationMs, outcome, startedAt);
  }

  completeTasks(tasks: Iterable<string>): void {
    this.#visit.completeTasks(this.step, tasks);
  }

  get reduces(): boolean {
    return this.#visit.settings.reducers !== undefined;
  }

  change(state: State<D>, change: State<D> | Patch<D>): State<D> {
    if (change instanceof State) return change;
    const { reducers } = this.#visit.settings;
    const patch = reducers === undefined ? change : reduced(state.data, change, reducers);
    return state.merge(patch as Patch<D>);
  }

  async checkpoint(state: State<D>, reason: string): Promise<State<D>> {
    text("reason", reason);
    return this.#visit.workOf(this.step, this.attempt).milestone(state, reason);
  }

  pause<T>(name: string, options: SchemaPauseOptions<T>): Promise<T>;
  pause(name: string, options: PauseOptions): Promise<unknown>;
  async pause(name: string, options: PauseOptions): Promise<unknown> {
    text("name", name);
    checkPauseOptions(options);
    const work = this.#visit.workOf(this.step, this.attempt);
    const { timeout, schema } = options;
    const deadline =
      timeout === undefined
        ? undefined
        : await work.once(deadlineKey(name), `${this.attempt}`, () => now() + timeout);
    const request = pauseRequest(name, options, deadline as number | undefined);
    return work.answer(request, schema);
  }

  async answer(request: PauseRequest): Promise<unknown> {
    return this.#visit.workOf(this.step, this.attempt).answer(request, undefined);
  }

  refuse(error: SchemaError): void {
    this.#visit.workOf(this.step, this.attempt).refuse(error);
  }

  async sleep(name: string, ms: number): Promise<void> {
    text("name", name);
    duration("ms", ms);
    const work = this.#visit.work(this.step);
    const key = sleepKey(name);
    const until = (await work.once(key, `${this.attempt}.`, () => now() + ms)) as number;
    await this.#wait(key, until);
  }

  /** Waits until the next attempt is due. If the run pauses for that, the number of attempts is remembered. */
  async waitForRetry(ms: number): Promise<void> {
    if (ms <= this.#visit.longestWait) return sleep(ms, this.signal, this.draining);
    const until = now() + ms;
    await this.#visit.work(this.step).remember(RETRY, { attempts: this.attempt, until });
    await this.#wait(`${RETRY}attempt ${this.attempt + 1}`, until);
  }

  /** How many attempts failed before the run paused to wait for the next one; waits until that is due. */
  async attemptsBefore(): Promise<number> {
    const before = this.#visit.recalled(RETRY) as { attempts: number; until: number } | undefined;
    if (before === undefined) return 0;
    await this.#wait(`${RETRY}attempt ${before.attempts + 1}`, before.until);
    return before.attempts;
  }

  async #wait(name: string, until: number): Promise<void> {
    const ms = until - now();
    if (ms > this.#visit.longestWait) this.#visit.work(this.step).ask(waitUntil(name, until));
    if (ms > 0) await sleep(ms, this.signal, this.draining);
  }

  get ledger(): LedgerWriter {
    return this.#visit.ledgerWriter(this.step);
  }

  progress(part: ProgressPart, item?: string): void {
    checkOptions("progress", part, { title: text, summary: text, sources: strings });
    const { title, summary, sources = [] } = part;
    text("progress.title", title);
    text("progress.summary", summary);
    const at = { node: this.node, step: this.step, ...(item !== undefined && { item }) };
    this.emit("progress", { ...at, title, summary, sources });
  }

  emit<T extends EventType>(type: T, data: EventMap[T]): void {
    this.#visit.emit(type, data);
  }

  get store(): CheckpointStore | undefined {
    return this.#visit.settings.store;
  }

  get claim(): Claim | undefined {
    return this.#visit.claim?.lent();
  }

  async checkClaim(): Promise<void> {
    await this.#visit.claim?.verify();
  }

  /** The context of another attempt in the same visit. */
  attempted(attempt: number, signal: AbortSignal): RunContext<D> {
    this.#visit.attempt(attempt);
    return new RunContext(this.#visit, signal, this.node, this.step, attempt);
  }

  /** Notes this failed attempt in the step's record. */
  attemptFailed(): void {
    this.#visit.attemptFailed();
  }

  /** Whether another attempt would be useless: the run pauses, or can't save. */
  get isOver(): boolean {
    return this.#visit.failure !== undefined || this.#visit.asked.length > 0;
  }

  /** The State that the next attempt starts from: the last milestone, if there is one. */
  stateSoFar(): Promise<State<D>> {
    return this.#visit.soFar();
  }
}
