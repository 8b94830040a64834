import { isoNow, msBetween, now } from "../../clock.js";
import { type Deferred, defer } from "../../concurrency.js";
import type { EventMap } from "../../event-map.js";
import type { EventType } from "../../events.js";
import type { LedgerWriter, RetryPolicy, Saves } from "../../graph/node.js";
import { object } from "../../options.js";
import { progressOf, withProgress } from "../../state/derive.js";
import type { Progress } from "../../state/fields.js";
import { Ledger, type Usage } from "../../state/ledger.js";
import type { Answer } from "../../state/pauses.js";
import { defined } from "../../state/shape.js";
import type { State } from "../../state/state.js";
import {
  type Begun,
  type ItemOutcome,
  MAX_FAILED_ATTEMPTS,
  noFailedAttempts,
  noItems,
} from "../../state/steps.js";
import type { Stop } from "../loop/failure.js";
import { ended, type VisitedRun, Work, type WorkOwner } from "./work.js";

/** The whole node, or a part of it with keys of its own: an item of a list, a route. */
export interface Part {
  /** Put before its keys. */
  readonly prefix: string;
  /** The items that it is inside, such as `[3]` or `[3][0]`; `""` for none. */
  readonly path: string;
  /** The index of the item; -1 outside of a list. */
  readonly index: number;
  /** The item's name in events. */
  readonly label: string | undefined;
  readonly saves: Saves;
  /** Called before anything is saved. */
  readonly onWrite: (() => void) | undefined;
  /** The keys that were used; unknown for the whole node. */
  keys: Set<string> | undefined;
}

/** One attempt at a part. */
export interface Attempt {
  readonly part: Part;
  /** The attempt that it is inside; `undefined` at the whole node. */
  readonly outer: Attempt | undefined;
  /** Starts at 1. */
  readonly number: number;
  stop: Stop;
  /** The policy by which it is tried again, or what is around it; that of the items inside it, too. */
  readonly retry: RetryPolicy | undefined;
  /** Whether it was given up, and must not write any more. */
  isOver: boolean;
}

/**
 * The running node, as its contexts see it. A run has one, and reuses it for each node. The loop calls `begin`, then
 * `end` or `left` and `failed`, and reads the fields, which are written here only; the rest is for the contexts.
 */
export class Visit<D extends object> implements WorkOwner<D> {
  readonly runId: string;
  readonly run: VisitedRun<D>;
  /** The first attempt at each node. */
  readonly first: Attempt;
  /** The State that the running node received, or is about to. */
  state: State<D>;
  /** The run's ledger, with what the running node has written. */
  ledger: Ledger;
  /** The ledger as it was when the running node began. */
  ledgerBefore: Ledger;
  /** The answers that no pause has used yet. */
  answers: readonly Answer[];
  /** The completed tasks of a dag, including those of the running node. */
  tasks: readonly string[];
  /** The part of this visit that earlier processes did. */
  before = notBegun;
  /** The parts of the node that have ended. */
  items = noItems;
  /** How many attempts the node has had in this visit. */
  attempts = 1;
  /** When the node began in this process, ISO 8601. */
  startedAt = "";
  /** When the current attempt began, ISO 8601. */
  attemptStartedAt = "";
  /** The newest failed attempts. */
  failedAttempts = noFailedAttempts;
  /** What the running node has remembered, saved and asked for; `undefined` if nothing. */
  worked: Work<D> | undefined;
  /** The attempt that was noted as failed. */
  #noted = 0;
  #node = "";
  #open = false;
  /** Resolved when the next node begins. */
  #next: Deferred<void> | undefined;

  constructor(run: VisitedRun<D>, state: State<D>) {
    this.runId = state.runId;
    this.run = run;
    this.first = {
      part: {
        ...{ prefix: "", path: "", index: -1, label: undefined },
        ...{ saves: "item", onWrite: undefined, keys: undefined },
      },
      ...{
        outer: undefined,
        number: 1,
        stop: run.control,
        retry: undefined,
        isOver: false,
      },
    };
    this.state = state;
    this.ledger = state.ledger;
    this.ledgerBefore = state.ledger;
    const { answers, tasks } = progressOf(state);
    this.answers = answers;
    this.tasks = tasks;
  }

  /** Begins the visit of a node. */
  begin(node: string, state: State<D>, startedAt: string): void {
    const { begun, tasks } = progressOf(state);
    const before = begun?.node === node ? begun : notBegun;
    this.state = state;
    this.ledgerBefore = this.ledger;
    this.tasks = tasks;
    this.before = before;
    this.items = before.items;
    this.attempts = 1;
    this.attemptStartedAt = startedAt;
    this.failedAttempts = before.failedAttempts;
    this.#noted = 0;
    this.#node = node;
    this.startedAt = startedAt;
    this.#open = true;
    this.worked = undefined;
    if (this.#next !== undefined) this.close();
  }

  /**
   * Ends the visit of a node that returned, and returns the State that its result builds on. Its contexts can no
   * longer write.
   */
  end(state: State<D>): State<D> | Promise<State<D>> {
    this.#open = false;
    return this.worked === undefined ? state : this.worked.end();
  }

  /**
   * The State that the next attempt starts from.
   *
   * @param isLast - ends the visit of a node that did not complete: its contexts can no longer write.
   */
  async left(isLast: boolean): Promise<State<D>> {
    if (isLast) this.#open = false;
    return this.worked?.left(isLast) ?? withProgress(this.state, this.carried());
  }

  /** The same State with the attempts of this visit counted, after the last of them failed. */
  failed(state: State<D>): State<D> {
    this.attemptFailed();
    return this.run.records ? withProgress(state, { begun: this.#begun(this.attempts) }) : state;
  }

  /** The usage of this visit, across all processes. */
  get usage(): Usage | undefined {
    return usageOver(this.before.usage, this.ledger.usageSince(this.ledgerBefore));
  }

  /** Keeps an answer for a later pause. Nothing is saved yet. */
  addAnswer(answer: Answer): void {
    this.answers = Object.freeze([...this.answers, answer]);
  }

  /** Saves the answers in the middle of the running node; `undefined` if no node is running. */
  saveAnswers(): Promise<void> | undefined {
    return this.#open ? this.work(this.state.step).save() : undefined;
  }

  /** Takes the oldest answer with a name; `undefined` if there is none. */
  take(name: string): Answer | undefined {
    const taken = this.answers.find((answer) => answer.name === name);
    if (taken !== undefined) {
      this.answers = Object.freeze(this.answers.filter((answer) => answer !== taken));
    }
    return taken;
  }

  /** Resolves when the next node begins, or the run ends. */
  next(): Promise<void> {
    this.#next ??= defer();
    return this.#next.promise;
  }

  /** Ends the last visit: no other node begins. */
  close(): void {
    this.#next?.resolve();
    this.#next = undefined;
  }

  /** The current ledger, answers and record of the step. */
  carried(): Pick<Progress, "ledger" | "answers" | "begun"> {
    const begun = this.run.records ? this.#begun(0) : undefined;
    return { ledger: this.ledger, answers: this.answers, begun };
  }

  /** Notes tasks that the running node has completed; they count once the node completes. */
  completeTasks(step: number, tasks: Iterable<string>): void {
    this.#check(step);
    this.tasks = Object.freeze([...new Set([...this.tasks, ...tasks])]);
  }

  /** What the running node remembered, now or before the run was resumed. */
  recalled(key: string): unknown {
    if (this.worked !== undefined) return this.worked.known.get(key);
    const { unfinished } = progressOf(this.state);
    return unfinished?.node === this.#node ? unfinished.results.byKey().get(key) : undefined;
  }

  /** Notes that an attempt at the node begins. */
  attempt(attempt: number): void {
    if (attempt === this.attempts) return;
    this.attempts = attempt;
    this.attemptStartedAt = isoNow();
  }

  /** Notes that the current attempt has failed, once. */
  attemptFailed(): void {
    if (!this.run.records || this.#noted === this.attempts) return;
    this.#noted = this.attempts;
    const startedAt = this.attemptStartedAt;
    const record = Object.freeze({ startedAt, durationMs: msBetween(startedAt, isoNow()) });
    const newest = [...this.failedAttempts, record].slice(-MAX_FAILED_ATTEMPTS);
    this.failedAttempts = Object.freeze(newest);
  }

  /** Notes a part of the node that has ended. */
  addItem(
    name: string,
    durationMs: number,
    outcome: ItemOutcome,
    startedAt = new Date(now() - durationMs).toISOString(),
  ): void {
    if (!this.run.records || !this.#open) return;
    const record = { name: name.slice(0, MAX_NAME), startedAt, durationMs, outcome };
    this.items = this.items.with(Object.freeze(record));
  }

  /** The record of the step so far, for a resume to add to. */
  #begun(failed: number): Begun {
    const { startedAt, durationMs, attempts, restarts } = this.before;
    const { usage, items, failedAttempts } = this;
    return Object.freeze({
      node: this.#node,
      startedAt: startedAt || this.startedAt,
      durationMs: durationMs + msBetween(this.startedAt, isoNow()),
      attempts: attempts + failed,
      ...{ restarts, usage, items, failedAttempts },
    });
  }

  /** The work of the running node. */
  work(step: number): Work<D> {
    this.#check(step);
    this.worked ??= new Work<D>(this.#node, this);
    return this.worked;
  }

  ledgerWriter(step: number): LedgerWriter {
    this.#check(step);
    const origin = { node: this.#node, step };
    const dated = <T extends object>(entry: T) => ({ ...entry, ...origin, timestamp: isoNow() });
    const write = (next: Ledger): void => {
      this.#check(step);
      this.ledger = next;
    };
    return {
      usage: (usage) => {
        write(this.ledger.addUsage(origin.node, usage));
        this.emit("usage", { ...usage, ...origin });
      },
      decision: (decision) => {
        object("decision", decision);
        write(this.ledger.addDecision(dated(decision)));
        this.emit("decision", { ...defined(decision), ...origin });
      },
      agent: (id, agent) => {
        object("agent", agent);
        write(this.ledger.setAgent(id, dated(agent)));
      },
      output: (name, ref) => write(this.ledger.setOutput(name, dated({ ref }))),
      merge: (base, other) =>
        write(this.ledger.merge(base, other).withLimits(this.run.settings.ledger)),
    };
  }

  emit<T extends EventType>(type: T, data: EventMap[T]): void {
    this.run.settings.bus.emit(type, this.run.settings.name, this.runId, data);
  }

  /** Throws if the node has ended: it must not write into the next one's work. */
  #check(step: number): void {
    if (!this.#open || step !== this.state.step) throw ended(step);
  }
}

/** What earlier processes did of a node that none of them has begun. */
export const notBegun: Begun = Object.freeze({
  ...{ node: "", startedAt: "", durationMs: 0, attempts: 0, restarts: 0 },
  ...{ failedAttempts: noFailedAttempts, usage: undefined, items: noItems },
});

/** The maximum length of a part's name. */
const MAX_NAME = 200;

/** The sum of two usages. */
function usageOver(before: Usage | undefined, since: Usage | undefined): Usage | undefined {
  if (before === undefined || since === undefined) return before ?? since;
  return Ledger.empty.addUsage("all", before).addUsage("all", since).usageSince(Ledger.empty);
}
