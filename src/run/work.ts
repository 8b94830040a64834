import { CallScope, callers } from "../call-scope.js";
import { msSince, now } from "../clock.js";
import { type Deferred, defer } from "../concurrency.js";
import {
  CheckpointConflictError,
  ConfigError,
  PauseTimeoutError,
  SchemaError,
  show,
} from "../errors.js";
import { advance, isOpaque, progressOf, withProgress } from "../state/derive.js";
import { encode } from "../state/encode.js";
import { freezeCopy } from "../state/freeze-copy.js";
import { OPAQUE, traitsOf } from "../state/json-traits.js";
import { type PauseRequest, type Progress, Results } from "../state/record.js";
import { type StandardSchema, validated } from "../state/schema.js";
import { checkState, type State } from "../state/state.js";
import type { ItemOutcome } from "../state/steps.js";
import type { RunClaim } from "./claim.js";
import { outsideRun } from "./failure.js";
import { answerKey, isExpired, isOwnKey, PauseSignal } from "./pauses.js";
import type { Saver } from "./saver.js";

/** Entries that were replaced are dropped when there are so many of them. */
const MOST_REPLACED = 100;

/** The visit that a node's work belongs to. */
export interface WorkOwner<D extends object> {
  /** Saves what the node does; `undefined` if nothing is saved inside nodes. */
  readonly saver: Saver<D> | undefined;
  /** The claim under which the run is worked on. */
  readonly claim: RunClaim | undefined;
  /** Is called when another writer has taken the run. */
  readonly lost: (error: unknown) => void;
  /** What the node's saves carry that others write too: the run's ledger, its signals and the record of the step. */
  carried(): Pick<Progress, "ledger" | "signals" | "begun">;
  /** Notes a part of the node that has ended. */
  addItem(name: string, durationMs: number, outcome: ItemOutcome): void;
  /** Takes the oldest signal of a name; `undefined` if there is none. */
  take(name: string): { readonly value: unknown } | undefined;
}

/** Something that is being done once. */
interface Once {
  readonly key: string;
  /** What was being done when it was asked for inside this. */
  readonly waitsFor: Set<Once>;
  /** The result for those who ask meanwhile; who began it awaits the action itself, so that its callers stay known. */
  shared?: Deferred<unknown>;
}

/**
 * What one visit of a node does before it completes: results it must not lose, milestones, pauses.
 * The State in here has the node before it as `checkpointNode`, and a resume runs this node again.
 */
export class Work<D extends object> {
  readonly #node: string;
  readonly #owner: WorkOwner<D>;
  readonly #known: Map<string, unknown>;
  /**
   * What is being done once, by attempt and key, for those who ask for the same at the same time, and by the name
   * of its scope, for those who ask inside it.
   */
  readonly #running = new Map<string | null, Once>();
  /** The saves of results that are not in the store yet. */
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
  #failure: unknown;
  #refusal: SchemaError | undefined;
  #ended = false;

  constructor(node: string, state: State<D>, owner: WorkOwner<D>) {
    const { unfinished } = progressOf(state);
    const before = unfinished?.node === node ? unfinished : undefined;
    this.#node = node;
    this.#owner = owner;
    this.#results = before?.results ?? Results.of([]);
    this.#known = this.#results.byKey();
    this.#count = before?.count ?? 0;
    this.#opaque = before?.opaque ?? false;
    this.#state = state;
  }

  /** The error of a save. The run must not continue after it, whatever the node makes of it. */
  get failure(): unknown {
    return this.#failure;
  }

  /** Why an answer was refused. */
  get refusal(): SchemaError | undefined {
    return this.#refusal;
  }

  /** The pauses that the node asked for and that nobody has answered. */
  get asked(): readonly PauseRequest[] {
    return [...this.#asked.values()];
  }

  recall(key: string): unknown {
    return this.#known.get(key);
  }

  /** What an action gave, now or before; it is saved when the promise resolves. */
  async once<T>(key: string, attempt: string, action: () => T | Promise<T>): Promise<unknown> {
    // Not shared between attempts: the one that was given up may be waiting for ever.
    const id = `${attempt} ${key}`;
    const running = this.#running.get(id);
    if (running !== undefined) return this.#share(running);
    const scope = new CallScope();
    const once: Once = { key, waitsFor: new Set() };
    // Before the action is called, which may ask for itself at once.
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
   * The result of something that is being done already.
   *
   * @throws ConfigError if that waits for what the caller is inside.
   */
  #share(once: Once): Promise<unknown> {
    const around = callers().flatMap((name) => this.#running.get(name) ?? []);
    checkCircle(once, around);
    for (const outer of around) outer.waitsFor.add(once);
    once.shared ??= defer();
    return once.shared.promise;
  }

  async #doOnce<T>(key: string, action: () => T | Promise<T>): Promise<unknown> {
    if (!this.#known.has(key)) {
      await this.#owner.claim?.verify();
      const value = await this.#timed(key, action);
      // An attempt that was given up may have come to its end meanwhile: the first result counts.
      if (!this.#known.has(key)) await this.remember(key, value);
    }
    await this.#unsaved.get(key);
    return this.#known.get(key);
  }

  /** Does an action and notes how it went. */
  async #timed<T>(key: string, action: () => T | Promise<T>): Promise<T> {
    if (isOwnKey(key)) return action();
    const started = now();
    try {
      const value = await action();
      this.#owner.addItem(key, msSince(started), "completed");
      return value;
    } catch (error) {
      if (!(error instanceof PauseSignal)) this.#owner.addItem(key, msSince(started), "failed");
      throw error;
    }
  }

  /** Keeps a value; it is saved when the promise resolves. */
  async remember(key: string, value: unknown): Promise<void> {
    this.keep(key, value);
    const saved = this.#save();
    this.#unsaved.set(key, saved);
    try {
      await saved;
    } finally {
      if (this.#unsaved.get(key) === saved) this.#unsaved.delete(key);
    }
  }

  /** Keeps a value; the next save, whatever it is for, has it. */
  keep(key: string, value: unknown): void {
    this.#checkOpen();
    const kept: unknown = freezeCopy(value);
    if (traitsOf(kept) & OPAQUE) {
      // Refused here, by its own name, and not by the save that happens to come next.
      if (this.#owner.saver !== undefined) encode(kept, key);
      this.#opaque = true;
    }
    if (!this.#known.has(key)) this.#count++;
    this.#known.set(key, kept);
    this.#results =
      this.#results.length > this.#known.size + MOST_REPLACED
        ? Results.of(this.#known)
        : this.#results.with(key, kept);
  }

  forget(key: string): void {
    this.#checkOpen();
    if (this.#known.delete(key)) this.#results = this.#results.without(key);
  }

  /** Continues from another State; it is saved when the promise resolves. */
  async milestone(state: State<D>, reason: string): Promise<State<D>> {
    this.#checkOpen();
    checkState(state);
    if (state.runId !== this.#state.runId) {
      const problem = `is the State of run ${show(state.runId)}: build on the State that the node is given`;
      throw new ConfigError("state", problem);
    }
    // As with results: the node gets the error, and can still do something about it.
    if (this.#owner.saver !== undefined && isOpaque(state)) state.toJSON();
    this.#state = advance(this.#state, state, progressOf(this.#state));
    this.#reasons.push(reason);
    await this.#save();
    return this.#snapshot();
  }

  /**
   * The answer to a pause, as its schema gives it. Without one the run pauses, whatever the node makes
   * of what is thrown here.
   *
   * @throws PauseTimeoutError if its time is up.
   */
  async answer(request: PauseRequest, schema: StandardSchema | undefined): Promise<unknown> {
    const { name } = request;
    const key = answerKey(name);
    let refused = {};
    for (;;) {
      if (!this.#known.has(key)) {
        const signal = this.#owner.take(name);
        if (signal !== undefined) await this.remember(key, signal.value);
      }
      if (!this.#known.has(key)) break;
      const value = this.#known.get(key);
      if (schema === undefined) return value;
      try {
        return await validated("input", value, schema);
      } catch (error) {
        if (!(error instanceof SchemaError)) throw error;
        this.refuse(error);
        this.forget(key);
        refused = { refused: error.message };
      }
    }
    if (isExpired(request)) throw new PauseTimeoutError(name, request.deadline);
    return this.ask(Object.freeze({ ...request, ...refused }));
  }

  /** Notes that an answer did not fit. */
  refuse(error: SchemaError): void {
    this.#refusal ??= error;
  }

  /** Saves what is carried; it is in the store when the promise resolves. */
  async flush(): Promise<void> {
    await this.#save();
  }

  /** Pauses the run. */
  ask(request: PauseRequest): never {
    if (!this.#asked.has(request.name)) this.#asked.set(request.name, request);
    throw new PauseSignal(this.asked);
  }

  /** The node has returned, and all is saved: the State that its result builds on. */
  async end(): Promise<State<D>> {
    this.#ended = true;
    await this.#settle();
    if (this.#failure !== undefined) throw this.#failure;
    if (this.#asked.size > 0) throw new PauseSignal(this.asked);
    return this.#state;
  }

  /** The node is not done: the State that its next attempt starts from, in this process or in another. */
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

  /** Those who come while a save is under way share the next one. */
  async #save(): Promise<void> {
    if (this.#owner.saver === undefined) return;
    this.#waiting ??= this.#saving.then(() => {
      this.#waiting = undefined;
      this.#saving = this.#saveNow();
      return this.#saving;
    });
    await this.#waiting;
    if (this.#failure !== undefined) throw outsideRun(this.#failure);
  }

  /** Never rejects; what went wrong is kept. */
  async #saveNow(): Promise<void> {
    if (this.#owner.saver === undefined || this.#failure !== undefined) return;
    const reason = this.#reasons.length > 0 ? this.#reasons.join(", ") : "once";
    this.#reasons = [];
    try {
      const saved = await this.#owner.saver.save(withProgress(this.#snapshot(), { reason }));
      // A milestone may have come meanwhile, so only the record is taken.
      this.#state = this.#state.savedAs(saved);
    } catch (error) {
      this.#failure = error;
      if (error instanceof CheckpointConflictError) this.#owner.lost(error);
    }
  }
}

/**
 * Refuses to wait for something that waits, itself or by others, for the one who asks.
 *
 * @param around - what the caller is inside, the innermost first.
 */
function checkCircle(once: Once, around: readonly Once[]): void {
  const askedBy = new Map<Once, Once | undefined>([[once, undefined]]);
  // Those that are found on the way are visited, too.
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

/** The error for a node that writes when it is over. */
export function ended(step: number): ConfigError {
  return new ConfigError(
    "context",
    `belongs to step ${step}, which has ended: await all you start in a node`,
  );
}
