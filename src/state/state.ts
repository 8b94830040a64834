import type { Draft, Immutable } from "immer";
import { now } from "../clock.js";
import { ConfigError, SerializationError, show } from "../errors.js";
import type { EventSink } from "../events.js";
import { checkData, checkStateOptions, type Patch, type StateOptions, sinkFor } from "./input.js";
import { decodeState, encodeState, type StateJSON } from "./json.js";
import type { Ledger } from "./ledger.js";
import { own } from "./own.js";
import { produce } from "./recipe.js";
import {
  type GraphIdentity,
  type Identity,
  newProgress,
  type ParentLink,
  type PauseRequest,
  type Progress,
  type Recovery,
  type RunError,
  type RunStatus,
  type Saved,
  type StateFields,
  type Unfinished,
  unsaved,
  type VisitCounts,
  type Visits,
} from "./record.js";
import { newRunId } from "./run-id.js";
import { setKey } from "./shape.js";
import { OPAQUE, traitsOf, traitsOfValues } from "./traits.js";

export type { Patch, StateOptions } from "./input.js";

/**
 * What a run knows, and how far it is. A State never changes: every method returns a new one that
 * shares what stayed the same. A State that is saved is a checkpoint; there is no other kind.
 *
 * @example
 * ```ts
 * import { State } from "waymark";
 *
 * const first = State.create({ topic: "cairns", words: 0 });
 * const second = first.set("words", 120);
 * console.log(first.data.words, second.data.words); // 0 120
 * console.log(first.runId === second.runId); // true
 * ```
 */
export class State<D extends object> {
  readonly #data: Immutable<D>;
  readonly #traits: number;
  readonly #identity: Identity;
  readonly #progress: Progress;
  readonly #saved: Saved;
  readonly #sink: EventSink | undefined;

  private constructor(
    data: Immutable<D>,
    traits: number,
    identity: Identity,
    progress: Progress,
    saved: Saved,
    sink: EventSink | undefined,
  ) {
    this.#data = data;
    this.#traits = traits;
    this.#identity = identity;
    this.#progress = progress;
    this.#saved = saved;
    this.#sink = sink;
  }

  /**
   * Starts a new run's State. The data is copied: what happens to the original later is not seen.
   *
   * @throws ConfigError when `data` is not a plain object, or an option is not what it must be.
   */
  static create<D extends object>(data: D, options: StateOptions = {}): State<D> {
    checkData(data);
    checkStateOptions(options);
    const { runId = newRunId(), observer } = options;
    const kept = own(data);
    const identity = { runId, parent: undefined, graph: undefined };
    const sink = sinkFor(observer);
    const state = new State<D>(kept, traitsOf(kept), identity, newProgress(), unsaved, sink);
    state.#tell("state.create", kept);
    return state;
  }

  /**
   * A State out of what {@link State.toJSON} gave, or out of that as text; exactly the same one.
   *
   * @throws SerializationError that names what is missing, wrong or of a newer format.
   */
  static fromJSON<D extends object>(json: StateJSON | string): State<D> {
    let tree: unknown;
    try {
      tree = JSON.parse(typeof json === "string" ? json : JSON.stringify(json));
    } catch (cause) {
      throw new SerializationError("state", `is not JSON: ${String(cause)}`, { cause });
    }
    return State.fromFields(decodeState(tree));
  }

  /** The user's data, frozen to the bottom. */
  get data(): Immutable<D> {
    return this.#data;
  }

  /** Names the run. */
  get runId(): string {
    return this.#identity.runId;
  }

  /** The last node that completed; `""` before the first. */
  get checkpointNode(): string {
    return this.#progress.checkpointNode;
  }

  /** When that node completed, or when the State was made, ISO 8601. */
  get timestamp(): string {
    return this.#progress.timestamp;
  }

  /** How many nodes have completed in this run, over all its resumes. */
  get step(): number {
    return this.#progress.step;
  }

  /** What the run is doing, or how it ended. */
  get status(): RunStatus {
    return this.#progress.status;
  }

  /** What made the run fail. */
  get error(): RunError | undefined {
    return this.#progress.error;
  }

  /**
   * Why this State was last to be saved: `start`, `interval`, `complete`, `failure`, `abort`, `pause`,
   * `input`, `resume`, `once`, `fork`, `rollback`, `recovery`, or what a trigger or a milestone says.
   */
  get reason(): string {
    return this.#progress.reason;
  }

  /** How often each node completed, as of the last save or the end of the run. */
  get visits(): Visits {
    return this.#progress.visits.byName();
  }

  /** What the run has used, decided and made. */
  get ledger(): Ledger {
    return this.#progress.ledger;
  }

  /** What a paused run waits for. */
  get pauses(): readonly PauseRequest[] {
    return this.#progress.pauses;
  }

  /** @internal What a node that has not completed has done so far. */
  get unfinished(): Unfinished | undefined {
    return this.#progress.unfinished;
  }

  /** @internal How often the run was recovered and got no further. */
  get recovery(): Recovery | undefined {
    return this.#progress.recovery;
  }

  /** @internal How often each node completed, before names are put to it. */
  get visitCounts(): VisitCounts {
    return this.#progress.visits;
  }

  /** The id of the checkpoint this State was saved as; `""` until saved. */
  get checkpointId(): string {
    return this.#saved.checkpointId;
  }

  /** The place of that checkpoint in the run's history, from 1 up; 0 until saved. */
  get sequence(): number {
    return this.#saved.sequence;
  }

  /** How large that checkpoint is, where the store says so. */
  get bytes(): number | undefined {
    return this.#saved.bytes;
  }

  /** The graph that ran this State last. */
  get graph(): GraphIdentity | undefined {
    return this.#identity.graph;
  }

  /** The checkpoint that this run was forked from. */
  get parent(): ParentLink | undefined {
    return this.#identity.parent;
  }

  /** The value of a key, `undefined` where there is none; {@link State.has} tells the two apart. */
  get<K extends keyof D>(key: K): Immutable<D[K]> {
    const data: object = this.#data;
    return (Object.hasOwn(data, key) ? Reflect.get(data, key) : undefined) as Immutable<D[K]>;
  }

  /** Whether a key is there, also when its value is `undefined`. */
  has(key: keyof D): boolean {
    return Object.hasOwn(this.#data, key);
  }

  /**
   * A State with one key set.
   *
   * @throws ConfigError when the key is not a string.
   */
  set<K extends keyof D & string>(key: K, value: D[K] | Immutable<D[K]>): State<D> {
    if (typeof key !== "string") throw new ConfigError("key", `wants a string, got ${show(key)}`);
    const kept: unknown = own(value, Reflect.get(this.#data, key));
    const data = Object.freeze({ ...this.#data, [key]: kept }) as Immutable<D>;
    const next = this.#with(data, this.#traits | traitsOf(kept));
    if (this.#sink?.listens("state.set"))
      this.#sink.emit("state.set", "state", this.runId, { key });
    return next;
  }

  /**
   * A State with several keys set. Of another State only the data is taken: the run stays this one.
   *
   * @throws ConfigError when it is given neither an object nor a State.
   */
  merge(changes: Patch<D> | State<D>): State<D> {
    const patch: object = changes instanceof State ? changes.#data : changes;
    checkData(patch);
    // A symbol comes along, so that a save can refuse it: it would be lost without a word.
    const data = { ...this.#data, ...patch } as object;
    let traits = this.#traits;
    for (const key of Object.keys(patch)) {
      const given: unknown = Reflect.get(data, key);
      const kept: unknown = own(given, Reflect.get(this.#data, key));
      if (kept !== given) setKey(data, key, kept);
      traits |= traitsOf(kept);
    }
    const next = this.#with(Object.freeze(data) as Immutable<D>, traits);
    next.#tell("state.merge", patch);
    return next;
  }

  /**
   * A State changed by an immer recipe, which may write to its draft as it likes.
   *
   * @throws ConfigError when the recipe is asynchronous, or returns something that can't be data,
   * or returns something besides changing its draft.
   *
   * @example
   * ```ts
   * import { State } from "waymark";
   *
   * const state = State.create({ items: ["a"] }).update((draft) => {
   *   draft.items.push("b");
   * });
   * console.log(state.data.items.join()); // a,b
   * ```
   */
  update(recipe: (draft: Draft<D>) => unknown): State<D> {
    const changed = produce(this.#data as object, recipe as (draft: object) => unknown);
    if (changed === this.#data) return this;
    checkData(changed);
    const kept = own(changed) as Immutable<D>;
    const next = this.#with(kept, traitsOf(kept));
    next.#tell("state.merge", kept);
    return next;
  }

  /** An equal State that is another object. The data is shared: nobody can change it. */
  clone(): State<D> {
    const next = this.#with(this.#data, this.#traits);
    next.#tell("state.clone", this.#data);
    return next;
  }

  /**
   * A State that says this node has completed just now; its timestamp is later than before.
   *
   * @throws ConfigError when the node is no string.
   */
  setCheckpointNode(node: string): State<D> {
    if (typeof node !== "string")
      throw new ConfigError("node", `wants a string, got ${show(node)}`);
    const timestamp = new Date(Math.max(now(), Date.parse(this.timestamp) + 1)).toISOString();
    return State.advance(this, this, { ...this.#progress, checkpointNode: node, timestamp });
  }

  /**
   * Saves this State. The State that comes back carries its `checkpointId`; build on that one.
   *
   * @throws CheckpointConflictError when another State of this run was saved since.
   * @throws ConfigError when it is given no store.
   */
  async checkpoint(store: { save(state: State<D>): Promise<State<D>> }): Promise<State<D>> {
    if (typeof store?.save !== "function") {
      throw new ConfigError("store", `wants a CheckpointStore, got ${show(store)}`);
    }
    return store.save(this);
  }

  /** For stores: this State as the checkpoint it was just saved as. The record must not change any more. */
  savedAs(record: Saved): State<D> {
    const saved = record instanceof State ? State.recordOf(record) : record;
    return new State(this.#data, this.#traits, this.#identity, this.#progress, saved, this.#sink);
  }

  /**
   * All of this State as plain JSON; {@link State.fromJSON} is the way back.
   *
   * @throws SerializationError that names the path of what can't be saved.
   */
  toJSON(): StateJSON {
    return encodeState(State.fields(this));
  }

  /** What `console.log` shows. */
  [Symbol.for("nodejs.util.inspect.custom")](): object {
    const { runId, status, step, checkpointNode, data } = this;
    return { runId, status, step, checkpointNode, data };
  }

  /** @internal What a State is made of. */
  static fields<D extends object>(state: State<D>): StateFields {
    return {
      data: state.#data,
      traits: state.#traits,
      identity: state.#identity,
      progress: state.#progress,
      saved: state.#saved,
    };
  }

  /** @internal A State of these fields; the data must be frozen. */
  static fromFields<D extends object>(fields: StateFields, sink?: EventSink): State<D> {
    const { data, traits, identity, progress, saved } = fields;
    return new State<D>(data as Immutable<D>, traits, identity, progress, saved, sink);
  }

  /** @internal The run's next State: all of `from`, but the data of `to` and the new progress. */
  static advance<D extends object>(from: State<D>, to: State<D>, progress: Progress): State<D> {
    return new State(to.#data, to.#traits, from.#identity, progress, from.#saved, from.#sink);
  }

  /** @internal The same State, with some of its progress changed. */
  static progressed<D extends object>(state: State<D>, changes: Partial<Progress>): State<D> {
    return State.advance(state, state, { ...state.#progress, ...changes });
  }

  /** @internal The same State, as another run's or another graph's. */
  static identified<D extends object>(state: State<D>, identity: Identity): State<D> {
    return State.fromFields<D>({ ...State.fields(state), identity }, state.#sink);
  }

  /** @internal The same State, telling its events to another sink. */
  static tellTo<D extends object>(state: State<D>, sink: EventSink | undefined): State<D> {
    return State.fromFields<D>(State.fields(state), sink);
  }

  /** @internal Who is told this State's events. */
  static sinkOf<D extends object>(state: State<D>): EventSink | undefined {
    return state.#sink;
  }

  /** @internal The record this State was last saved as. */
  static recordOf<D extends object>(state: State<D>): Saved {
    return state.#saved;
  }

  /** @internal Whether a save must walk the data, because it may hold what can't be frozen or saved. */
  static isOpaque<D extends object>(state: State<D>): boolean {
    return (state.#traits & OPAQUE) !== 0 || state.#progress.unfinished?.opaque === true;
  }

  #with(data: Immutable<D>, traits: number): State<D> {
    // What was opaque may be gone; everything else is settled by looking at what came in.
    const known = traits & OPAQUE ? traitsOfValues(data as object) : traits;
    return new State(data, known, this.#identity, this.#progress, this.#saved, this.#sink);
  }

  #tell(type: "state.create" | "state.clone" | "state.merge", changed: object): void {
    if (this.#sink?.listens(type) !== true) return;
    this.#sink.emit(type, "state", this.runId, { keys: Object.keys(changed).length });
  }
}
