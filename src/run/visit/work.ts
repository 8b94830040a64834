import { CallScope, callers } from "../../call-scope.js";
import { msSince, now } from "../../clock.js";
import { type Deferred, defer } from "../../concurrency.js";
import { ConfigError, SchemaError, show } from "../../errors.js";
import { advance, isOpaque, progressOf, withProgress } from "../../state/derive.js";
import { encode } from "../../state/encode.js";
import type { Progress } from "../../state/fields.js";
import { freezeCopy } from "../../state/freeze-copy.js";
import { OPAQUE, traitsOf } from "../../state/json-traits.js";
import type { PauseRequest } from "../../state/pauses.js";
import type { Reason } from "../../state/reasons.js";
import { Results } from "../../state/results.js";
import { type StandardSchema, validated } from "../../state/schema.js";
import { checkState, type State } from "../../state/state.js";
import type { ItemOutcome } from "../../state/steps.js";
import type { Settings } from "../config.js";
import type { RunControl } from "../loop/control.js";
import { outsideRun } from "../loop/failure.js";
import { ANSWER, checkDeadline, isOwnKey, PauseRequested } from "../pauses/pauses.js";
import type { Saver } from "../saving/saver.js";

/** Replaced entries are dropped once there are this many. */
const MOST_REPLACED = 100;

/** What the nodes of a run need of it. */
export interface VisitedRun<D extends object> {
  readonly settings: Settings;
  /** Whether steps are recorded. */
  readonly records: boolean;
  /** Saves the node's progress; `undefined` if nothing is saved inside nodes. */
  readonly saver: Saver<D> | undefined;
  /** Has its claim; aborted when another writer has taken the run. */
  readonly control: RunControl;
}

/** The visit that a node's work belongs to. */
export interface WorkOwner<D extends object> {
  readonly run: VisitedRun<D>;
  /** The State that the node received. */
  readonly state: State<D>;
  /** What the node's saves include besides its work: the run's ledger, its answers and the record of the step. */
  carried(): Pick<Progress, "ledger" | "answers" | "begun">;
  /** Notes a part of the node that has ended. */
  addItem(name: string, durationMs: number, outcome: ItemOutcome): void;
  /** Takes the oldest answer with a name; `undefined` if there is none. */
  take(name: string): { readonly value: unknown } | undefined;
}

/** A `once` action in progress. */
interface Once {
  readonly key: string;
  /** The actions in progress that calls inside this one wait for. */
  readonly waitsFor: Set<Once>;
  /**
   * The result for concurrent callers; the first caller awaits the action itself, so that the scope of its call is
   * kept.
   */
  shared?: Deferred<unknown>;
}

/**
 * The work of one visit to a node before it completes: remembered results, milestones and pauses. The State here has
 * the previous node as `checkpointNode`, and a resume runs this node again.
 */
export class Work<D extends object> {
  readonly #node: string;
  readonly #owner: WorkOwner<D>;
  /** What was remembered, now or before the run was resumed. */
  readonly known: Map<string, unknown>;
  /**
   * The `once` actions in progress, by attempt and key for concurrent calls, and by the name of their scope for calls
   * inside them.
   */
  readonly #running = new Map<string | null, Once>();
  /** The saves of results that have not finished yet. */
  readonly #unsaved = new Map<string, Promise<void>>();
  readonly #asked = new Map<string, PauseRequest>();
  /** The milestones since the last save. */
  #reasons: string[] = [];
  #results: Results;
  #count: number;
  #state: State<D>;
  #opaque: boolean;
  #saving: Promise<void> = Promise.resolve();
  #waiting: Promise<void> | undefined;
  /** The error of a save. The run must not continue after it, even if the node catches it. */
  failure: unknown;
  /** Why an answer was first refused. */
  refusal: SchemaError | undefined;
  #ended = false;

  constructor(node: string, owner: WorkOwner<D>) {
    const { unfinished } = progressOf(owner.state);
    const before = unfinished?.node === node ? unfinished : undefined;
    this.#node = node;
    this.#owner = owner;
    this.#results = before?.results ?? Results.of([]);
    this.known = this.#results.byKey();
    this.#count = before?.count ?? 0;
    this.#opaque = before?.opaque ?? false;
    this.#state = withProgress(owner.state, { nextNode: node });
  }

  /** The unanswered pauses that the node asked for. */
  get asked(): readonly PauseRequest[] {
    return [...this.#asked.values()];
  }

  /** The result of an action, new or remembered; it is saved when the promise resolves. */
  async once<T>(key: string, attempt: string, action: () => T | Promise<T>): Promise<unknown> {
    // Not shared between attempts: an abandoned one may wait forever.
    const id = `${attempt} ${key}`;
    const running = this.#running.get(id);
    if (running !== undefined) return this.#share(running);
    const scope = new CallScope();
    const once: Once = { key, waitsFor: new Set() };
    // Before the action is called, because it may call itself synchronously.
    this.#running.set(id, once).set(scope.name, once);
    try {
      const result = await this.#doOnce(key, () => scope.run(action));
      once.shared?.resolve(result);
      return result;
    } catch (error) {
      once.shared?.reject(error);
      throw error;
    } finally {
      once.waitsFor.clear();
      this.#running.delete(id);
      this.#running.delete(scope.name);
    }
  }

  /**
   * The result of an action that is already in progress.
   *
   * @throws ConfigError if that action waits for one that the caller is inside of.
   */
  #share(once: Once): Promise<unknown> {
    const around = callers().flatMap((name) => this.#running.get(name) ?? []);
    checkCircle(once, around);
    for (const outer of around) outer.waitsFor.add(once);
    once.shared ??= defer();
    return once.shared.promise;
  }

  async #doOnce<T>(key: string, action: () => T | Promise<T>): Promise<unknown> {
    if (!this.known.has(key)) {
      await this.#owner.run.control.verify();
      const value = await this.#timed(key, action);
      // An abandoned attempt may have finished meanwhile: the first result counts.
      if (!this.known.has(key)) await this.remember(key, value);
    }
    await this.#unsaved.get(key);
    return this.known.get(key);
  }

  /** Runs an action and records its duration and outcome. */
  async #timed<T>(key: string, action: () => T | Promise<T>): Promise<T> {
    if (isOwnKey(key)) return action();
    const started = now();
    try {
      const value = await action();
      this.#owner.addItem(key, msSince(started), "completed");
      return value;
    } catch (error) {
      if (!(error instanceof PauseRequested)) this.#owner.addItem(key, msSince(started), "failed");
      throw error;
    }
  }

  /** Remembers a value; it is saved when the promise resolves. */
  async remember(key: string, value: unknown): Promise<void> {
    this.keep(key, value);
    const saved = this.save();
    this.#unsaved.set(key, saved);
    try {
      await saved;
    } finally {
      if (this.#unsaved.get(key) === saved) this.#unsaved.delete(key);
    }
  }

  /** Remembers a value; the next save, whatever it is for, includes it. */
  keep(key: string, value: unknown): void {
    this.#checkOpen();
    const kept: unknown = freezeCopy(value);
    if (traitsOf(kept) & OPAQUE) {
      // Rejected here, with its own key, rather than by the next save.
      if (this.#owner.run.saver !== undefined) encode(kept, key);
      this.#opaque = true;
    }
    if (!this.known.has(key)) this.#count++;
    this.known.set(key, kept);
    this.#results =
      this.#results.length > this.known.size + MOST_REPLACED
        ? Results.of(this.known)
        : this.#results.with(key, kept);
  }

  forget(key: string): void {
    this.#checkOpen();
    if (this.known.delete(key)) this.#results = this.#results.without(key);
  }

  /** Continues from another State; it is saved when the promise resolves. */
  async milestone(state: State<D>, reason: string): Promise<State<D>> {
    this.#checkOpen();
    checkState(state);
    if (state.runId !== this.#state.runId) {
      const problem = `is the State of run ${show(state.runId)}: build on the State that the node is given`;
      throw new ConfigError("state", problem);
    }
    // As with results: the node gets the error and can still handle it.
    if (this.#owner.run.saver !== undefined && isOpaque(state)) state.toJSON();
    this.#state = advance(this.#state, state, progressOf(this.#state));
    this.#reasons.push(reason);
    await this.save();
    return this.#snapshot();
  }

  /**
   * The answer to a pause, as its schema returns it. Without an answer the run pauses, even if the node catches what
   * is thrown here.
   *
   * @throws PauseTimeoutError if it has timed out.
   */
  async answer(request: PauseRequest, schema: StandardSchema | undefined): Promise<unknown> {
    const { name } = request;
    const key = ANSWER + name;
    let refused = {};
    for (;;) {
      if (!this.known.has(key)) {
        const given = this.#owner.take(name);
        if (given !== undefined) await this.remember(key, given.value);
      }
      if (!this.known.has(key)) break;
      const value = this.known.get(key);
      if (schema === undefined) return value;
      try {
        return await validated("input", value, schema);
      } catch (error) {
        if (!(error instanceof SchemaError)) throw error;
        this.refusal ??= error;
        this.forget(key);
        refused = { refused: error.message };
      }
    }
    checkDeadline(request);
    return this.ask(Object.freeze({ ...request, ...refused }));
  }

  /** Pauses the run. */
  ask(request: PauseRequest): never {
    if (!this.#asked.has(request.name)) this.#asked.set(request.name, request);
    throw new PauseRequested(this.asked);
  }

  /** Waits for the saves of a node that returned; returns the State that its result builds on. */
  async end(): Promise<State<D>> {
    this.#ended = true;
    await this.#settle();
    if (this.failure !== undefined) throw this.failure;
    if (this.#asked.size > 0) throw new PauseRequested(this.asked);
    return this.#state;
  }

  /** The State that the next attempt starts from, in this process or in another. */
  async left(isLast: boolean): Promise<State<D>> {
    this.#ended ||= isLast;
    await this.#settle();
    return this.#snapshot();
  }

  #checkOpen(): void {
    if (this.#ended) throw ended(this.#state.step);
  }

  async #settle(): Promise<void> {
    while (this.#waiting !== undefined) await this.#waiting;
    await this.#saving;
  }

  #snapshot(): State<D> {
    const [node, results, opaque] = [this.#node, this.#results, this.#opaque];
    const unfinished = Object.freeze({ node, results, count: this.#count, opaque });
    return withProgress(this.#state, { unfinished, ...this.#owner.carried() });
  }

  /** Saves all there is; it is in the store when the promise resolves. Requests during a save share the next one. */
  async save(): Promise<void> {
    if (this.#owner.run.saver === undefined) return;
    this.#waiting ??= this.#saving.then(() => {
      this.#waiting = undefined;
      this.#saving = this.#saveNow();
      return this.#saving;
    });
    await this.#waiting;
    if (this.failure !== undefined) throw outsideRun(this.failure);
  }

  /** Never rejects; the error is kept. */
  async #saveNow(): Promise<void> {
    if (this.#owner.run.saver === undefined || this.failure !== undefined) return;
    const reason = this.#reasons.length > 0 ? this.#reasons.join(", ") : ("once" satisfies Reason);
    this.#reasons = [];
    try {
      const state = withProgress<D, string>(this.#snapshot(), { reason });
      const saved = await this.#owner.run.saver.save(state);
      // There may be a new milestone meanwhile, so only the record is taken.
      this.#state = this.#state.savedAs(saved);
    } catch (error) {
      this.failure = error;
    }
  }
}

/**
 * Throws if waiting for an action would be a deadlock: it waits, directly or through others, for the caller.
 *
 * @param around - the actions that the caller is inside of, innermost first.
 */
function checkCircle(once: Once, around: readonly Once[]): void {
  const askedBy = new Map<Once, Once | undefined>([[once, undefined]]);
  // Iterating over a Map also visits what is added meanwhile.
  for (const [found] of askedBy) {
    const end = around.indexOf(found);
    if (end !== -1) {
      const circle = around.slice(0, end).reverse().concat(once);
      for (let one: Once | undefined = found; one; one = askedBy.get(one)) circle.unshift(one);
      const keys = circle.map(({ key }) => show(key)).join(" → ");
      const problem = `${show(once.key)} would wait for itself (${keys}): give each its own key, or await one before the other`;
      throw new ConfigError("once", problem);
    }
    for (const next of found.waitsFor) if (!askedBy.has(next)) askedBy.set(next, found);
  }
}

/** The error for a node that writes after it has ended. */
export function ended(step: number): ConfigError {
  return new ConfigError(
    "context",
    `belongs to step ${step}, which has ended: await all you start in a node`,
  );
}
