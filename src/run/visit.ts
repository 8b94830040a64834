import { isoNow, msBetween, now } from "../clock.js";
import { ConfigError, type SchemaError } from "../errors.js";
import type { EventMap } from "../event-map.js";
import type { EventType } from "../events.js";
import type { LedgerWriter } from "../graph/node.js";
import { object } from "../options.js";
import { progressOf, withProgress } from "../state/derive.js";
import { Ledger, type Usage } from "../state/ledger.js";
import { type Answer, noPauses, type PauseRequest, type Progress } from "../state/record.js";
import { defined } from "../state/shape.js";
import type { State } from "../state/state.js";
import {
  type AttemptRecord,
  type Begun,
  type ItemLog,
  type ItemOutcome,
  MAX_FAILED_ATTEMPTS,
  noFailedAttempts,
  noItems,
} from "../state/steps.js";
import type { RunClaim } from "./claim.js";
import type { Settings } from "./config.js";
import type { RunControl } from "./control.js";
import type { Saver } from "./saver.js";
import { ended, Work, type WorkOwner } from "./work.js";

/** The running node, as its contexts see it. A run has one, and reuses it for each node. */
export class Visit<D extends object> implements WorkOwner<D> {
  readonly runId: string;
  readonly #settings: Settings;
  readonly saver: Saver<D> | undefined;
  readonly #records: boolean;
  readonly control: RunControl;
  /** The claim on the run. */
  readonly claim: RunClaim | undefined;
  #state: State<D>;
  #node = "";
  #attempt = 1;
  #open = false;
  #work: Work<D> | undefined;
  #ledger: Ledger;
  #answers: readonly Answer[];
  /** Called when the next node begins. */
  #onBegin: (() => void) | undefined;
  #tasks: readonly string[];
  /** The part of this visit that earlier processes did. */
  #before: Begun | undefined;
  #startedAt = "";
  #items = noItems;
  #failedAttempts = noFailedAttempts;
  #attemptStartedAt = "";
  /** The attempt that was noted as failed. */
  #noted = 0;
  #ledgerBefore: Ledger;

  /**
   * @param records - whether steps are recorded.
   * @param claim - the claim on the run.
   */
  constructor(
    settings: Settings,
    saver: Saver<D> | undefined,
    state: State<D>,
    records: boolean,
    control: RunControl,
    claim: RunClaim | undefined,
  ) {
    this.runId = state.runId;
    this.#settings = settings;
    this.saver = saver;
    this.#records = records;
    this.control = control;
    this.claim = claim;
    this.#state = state;
    this.#ledger = state.ledger;
    this.#ledgerBefore = state.ledger;
    this.#tasks = progressOf(state).tasks;
    this.#answers = progressOf(state).answers;
  }

  /** The State that the running node received, or is about to. */
  get state(): State<D> {
    return this.#state;
  }

  /** The answers that no pause has used yet. */
  get answers(): readonly Answer[] {
    return this.#answers;
  }

  /** Keeps an answer for a later pause. Nothing is saved yet. */
  addAnswer(answer: Answer): void {
    this.#answers = Object.freeze([...this.#answers, answer]);
  }

  /** Whether an answer is still unused. */
  hasAnswer(answer: Answer): boolean {
    return this.#answers.includes(answer);
  }

  /** The current ledger, answers and record of the step. */
  carried(): Pick<Progress, "ledger" | "answers" | "begun"> {
    const begun = this.#records ? this.#begun(0) : undefined;
    return { ledger: this.#ledger, answers: this.#answers, begun };
  }

  /** Takes the oldest answer with a name; `undefined` if there is none. */
  take(name: string): Answer | undefined {
    const taken = this.#answers.find((answer) => answer.name === name);
    if (taken === undefined) return undefined;
    this.#answers = Object.freeze(this.#answers.filter((answer) => answer !== taken));
    return taken;
  }

  /** Saves the answers in the middle of the running node; `undefined` if no node is running. */
  saveAnswers(): Promise<void> | undefined {
    return this.#open ? this.work(this.#state.step).flush() : undefined;
  }

  /** Resolves when the next node begins, or the run ends. */
  next(): Promise<void> {
    const before = this.#onBegin;
    return new Promise((resolve) => {
      this.#onBegin = () => {
        before?.();
        resolve();
      };
    });
  }

  /** Ends the last visit: no other node begins. */
  close(): void {
    this.#announce();
  }

  #announce(): void {
    const onBegin = this.#onBegin;
    this.#onBegin = undefined;
    onBegin?.();
  }

  /** The run's settings. */
  get settings(): Settings {
    return this.#settings;
  }

  /** The completed tasks of a dag, including those of the running node. */
  get tasks(): readonly string[] {
    return this.#tasks;
  }

  /** Notes tasks that the running node has completed; they count once the node completes. */
  completeTasks(step: number, tasks: Iterable<string>): void {
    this.#check(step);
    this.#tasks = Object.freeze([...new Set([...this.#tasks, ...tasks])]);
  }

  /** The sequence of the run's last rollback; 0 if there was none. */
  get rollback(): number {
    return progressOf(this.#state).rollback;
  }

  /** How many milliseconds a run may wait in this process; it pauses for longer waits. */
  get longestWait(): number {
    return this.#settings.longestWait;
  }

  /** What the running node remembered before the run was resumed. */
  recalled(key: string): unknown {
    const { unfinished } = progressOf(this.#state);
    return unfinished?.node === this.#node ? unfinished.results.byKey().get(key) : undefined;
  }

  /** The run's ledger, with what the running node has written. */
  get ledger(): Ledger {
    return this.#ledger;
  }

  /** The ledger as it was when the running node began. */
  get ledgerBefore(): Ledger {
    return this.#ledgerBefore;
  }

  /** Aborts when the run drains. */
  get draining(): AbortSignal {
    return this.control.draining;
  }

  /** Begins the visit of a node. */
  begin(node: string, state: State<D>, startedAt: string): void {
    const { begun, tasks } = progressOf(state);
    this.#state = state;
    this.#node = node;
    this.#before = begun?.node === node ? begun : undefined;
    this.#startedAt = startedAt;
    this.#items = this.#before?.items ?? noItems;
    this.#failedAttempts = this.#before?.failedAttempts ?? noFailedAttempts;
    this.#ledgerBefore = this.#ledger;
    this.#attempt = 1;
    this.#attemptStartedAt = startedAt;
    this.#noted = 0;
    this.#open = true;
    this.#work = undefined;
    this.#tasks = tasks;
    if (this.#onBegin !== undefined) this.#announce();
  }

  /** The part of this visit that earlier processes did; `undefined` if there is none. */
  get before(): Begun | undefined {
    return this.#before;
  }

  /** When the node began in this process, ISO 8601. */
  get startedAt(): string {
    return this.#startedAt;
  }

  /** The parts of the node that have ended. */
  get items(): ItemLog {
    return this.#items;
  }

  /** The newest failed attempts. */
  get failedAttempts(): readonly AttemptRecord[] {
    return this.#failedAttempts;
  }

  /** When the current attempt began, ISO 8601. */
  get attemptStartedAt(): string {
    return this.#attemptStartedAt;
  }

  /** Notes that the current attempt has failed, once. */
  attemptFailed(): void {
    if (!this.#records || this.#noted === this.#attempt) return;
    this.#noted = this.#attempt;
    const startedAt = this.#attemptStartedAt;
    const record = Object.freeze({ startedAt, durationMs: msBetween(startedAt, isoNow()) });
    const newest = [...this.#failedAttempts, record].slice(-MAX_FAILED_ATTEMPTS);
    this.#failedAttempts = Object.freeze(newest);
  }

  /** Notes a part of the node that has ended. */
  addItem(
    name: string,
    durationMs: number,
    outcome: ItemOutcome,
    startedAt = new Date(now() - durationMs).toISOString(),
  ): void {
    if (!this.#records || !this.#open) return;
    const record = { name: name.slice(0, MAX_NAME), startedAt, durationMs, outcome };
    this.#items = this.#items.with(Object.freeze(record));
  }

  /** The record of the step so far, for a resume to add to. */
  #begun(failed: number): Begun {
    const { startedAt = this.#startedAt, attempts = 0, restarts = 0 } = this.#before ?? {};
    const usage = usageOver(this.#before?.usage, this.#ledger.usageSince(this.#ledgerBefore));
    const durationMs = (this.#before?.durationMs ?? 0) + msBetween(this.#startedAt, isoNow());
    return Object.freeze({
      ...{ node: this.#node, startedAt, durationMs, restarts, usage, items: this.#items },
      attempts: attempts + failed,
      failedAttempts: this.#failedAttempts,
    });
  }

  /** The usage of this visit, across all processes. */
  get usage(): Usage | undefined {
    if (this.#ledger === this.#ledgerBefore && this.#before === undefined) return undefined;
    return usageOver(this.#before?.usage, this.#ledger.usageSince(this.#ledgerBefore));
  }

  /**
   * Ends the visit of a node that returned, and returns the State that its result builds on. Its contexts can no
   * longer write.
   */
  end(state: State<D>): State<D> | Promise<State<D>> {
    this.#open = false;
    return this.#work === undefined ? state : this.#work.end();
  }

  /**
   * Ends the visit of a node that did not complete, and returns the State for a resume. Its contexts can no longer
   * write.
   */
  async fail(): Promise<State<D>> {
    this.#open = false;
    return this.#work?.left(true) ?? this.#left();
  }

  /** The same State with the attempts of this visit counted, after the last of them failed. */
  failed(state: State<D>): State<D> {
    this.attemptFailed();
    return this.#records ? withProgress(state, { begun: this.#begun(this.#attempt) }) : state;
  }

  /** The State that the next attempt starts from. */
  async soFar(): Promise<State<D>> {
    return this.#work?.left(false) ?? this.#left();
  }

  #left(): State<D> {
    return withProgress(this.#state, this.carried());
  }

  /**
   * Only the newest attempt may replace what is remembered, set milestones and pause; an abandoned one may still be
   * running.
   */
  attempt(attempt: number): void {
    if (attempt === this.#attempt) return;
    this.#attempt = attempt;
    this.#attemptStartedAt = isoNow();
  }

  /** How many attempts the node has had in this visit. */
  get attempts(): number {
    return this.#attempt;
  }

  /** The error of a failed save in this visit, if there was one. */
  get failure(): unknown {
    return this.#work?.failure;
  }

  /** Why an answer was refused in this visit. */
  get refusal(): SchemaError | undefined {
    return this.#work?.refusal;
  }

  /** The unanswered pauses that the node asked for. */
  get asked(): readonly PauseRequest[] {
    return this.#work?.asked ?? noPauses;
  }

  /** The work of the running node, for one of its attempts. */
  workOf(step: number, attempt: number): Work<D> {
    if (attempt === this.#attempt) return this.work(step);
    throw new ConfigError(
      "context",
      `belongs to attempt ${attempt} of step ${step}, which has ended: stop when its signal aborts`,
    );
  }

  /** The work of the running node. */
  work(step: number): Work<D> {
    this.#check(step);
    this.#work ??= this.#newWork();
    return this.#work;
  }

  #newWork(): Work<D> {
    const state = withProgress(this.#state, { nextNode: this.#node });
    return new Work<D>(this.#node, state, this);
  }

  ledgerWriter(step: number): LedgerWriter {
    this.#check(step);
    const node = this.#node;
    const origin = { node, step };
    const write = (next: Ledger): void => {
      this.#check(step);
      this.#ledger = next;
    };
    return {
      usage: (usage) => {
        write(this.#ledger.addUsage(node, usage));
        if (this.#settings.bus.listens("usage")) this.emit("usage", { ...usage, ...origin });
      },
      decision: (decision) => {
        object("decision", decision);
        write(this.#ledger.addDecision({ ...decision, ...origin, timestamp: isoNow() }));
        if (this.#settings.bus.listens("decision"))
          this.emit("decision", { ...defined(decision), ...origin });
      },
      agent: (id, agent) => {
        object("agent", agent);
        write(this.#ledger.setAgent(id, { ...agent, ...origin, timestamp: isoNow() }));
      },
      output: (name, ref) =>
        write(this.#ledger.setOutput(name, { ref, ...origin, timestamp: isoNow() })),
      merge: (base, other) =>
        write(this.#ledger.merge(base, other).withLimits(this.#settings.ledger)),
    };
  }

  emit<T extends EventType>(type: T, data: EventMap[T]): void {
    this.#settings.bus.emit(type, this.#settings.name, this.runId, data);
  }

  /** Throws if the node has ended: it must not write into the next one's work. */
  #check(step: number): void {
    if (!this.#open || step !== this.#state.step) throw ended(step);
  }
}

/** The maximum length of a part's name. */
const MAX_NAME = 200;

/** The sum of two usages. */
function usageOver(before: Usage | undefined, since: Usage | undefined): Usage | undefined {
  if (before === undefined || since === undefined) return before ?? since;
  return Ledger.empty.addUsage("all", before).addUsage("all", since).usageSince(Ledger.empty);
}
