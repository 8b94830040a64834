import { isoNow, now } from "../clock.js";
import { ConfigError, show } from "../errors.js";
import { checkObserver, EventBus, type EventSink, type Observer, observe } from "../events.js";
import { type Check, check, checkOptions, checkRunId, string } from "../options.js";
import { newId } from "../random.js";
import type { Visits } from "./counts.js";
import {
  newIdentity,
  newProgress,
  type Saved,
  type SavedNow,
  type StateRecord,
  unsaved,
} from "./fields.js";
import { freezeCopy } from "./freeze-copy.js";
import type { Draft, Immutable } from "./immutable.js";
import { decodeState, encodeState, type StateJSON } from "./json.js";
import { OPAQUE, traitsOf, traitsOfValues } from "./json-traits.js";
import { treeOf } from "./kinds.js";
import type { Ledger } from "./ledger.js";
import { checkMetadata, keptMetadata, type Metadata } from "./metadata.js";
import type { PauseRequest } from "./pauses.js";
import { produce } from "./recipe.js";
import type { GraphIdentity, ParentLink, RunError, RunStatus } from "./record.js";
import { isPlainObject, ownOf, setKey } from "./shape.js";
import type { NodeTotals, StepRecord } from "./steps.js";

/** New values for some keys of `D`, as accepted by `merge` and returned by a node. */
export type Patch<D extends object> = { readonly [K in keyof D]?: D[K] | Immutable<D[K]> };

/** Options of {@link State.create}. */
export interface StateOptions {
  /** The id of the run, 1 to 200 characters without control characters; a new uuid v7 by default. */
  readonly runId?: string;
  /** Values for listing and filtering the run; at most 4 KB as JSON. */
  readonly metadata?: Metadata;
  /** Receives the `state.*` events of this State and of all States derived from it. */
  readonly observer?: Observer;
}

/** The record of a State. */
export let recordOf: <D extends object>(state: State<D>) => StateRecord;

/** The State with this record; its data must be frozen. */
export let stateOf: <D extends object>(record: StateRecord, sink?: EventSink) => State<D>;

/** Where a State sends its events. */
export let sinkOf: <D extends object>(state: State<D>) => EventSink | undefined;

/**
 * A run's data and its position. A State is immutable: every method returns a new one that shares whatever did
 * not change. A saved State is a checkpoint; there is no other kind.
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
  readonly #record: StateRecord;
  readonly #sink: EventSink | undefined;

  static {
    recordOf = (state) => state.#record;
    stateOf = (record, sink) => new State(record, sink);
    sinkOf = (state) => state.#sink;
  }

  private constructor(record: StateRecord, sink: EventSink | undefined) {
    this.#record = record;
    this.#sink = sink;
  }

  /**
   * Creates the State of a new run. The data is copied: later changes to the original have no effect.
   *
   * @throws ConfigError if `data` is not a plain object, or an option is invalid.
   */
  static create<D extends object>(data: D, options: StateOptions = {}): State<D> {
    checkData(data);
    checkOptions("options", options, optionChecks);
    const { runId = newId(), observer, metadata } = options;
    const kept: object = freezeCopy(data);
    const identity = newIdentity(runId, metadata && keptMetadata(metadata));
    const progress = newProgress();
    const state = new State<D>(
      { data: kept, traits: traitsOf(kept), identity, progress, saved: unsaved },
      sinkFor(observer),
    );
    state.#emit("state.create", kept);
    return state;
  }

  /**
   * Restores a State from the result of {@link State.toJSON}, or from its text, exactly.
   *
   * @throws SerializationError that names what is missing, wrong or of a newer format.
   */
  static fromJSON<D extends object>(json: StateJSON | string): State<D> {
    const tree = treeOf("state", () => (typeof json === "string" ? json : JSON.stringify(json)));
    return new State<D>(decodeState(tree), undefined);
  }

  /** The user's data, deeply frozen. */
  get data(): Immutable<D> {
    return this.#record.data as Immutable<D>;
  }

  /** The id of the run. */
  get runId(): string {
    return this.#record.identity.runId;
  }

  /** When the run began, ISO 8601. */
  get startedAt(): string {
    return this.#record.identity.startedAt;
  }

  /** Metadata from the caller and the graph, for listing and filtering. */
  get metadata(): Metadata {
    return this.#record.identity.metadata;
  }

  /** The last node that completed; `""` before the first. */
  get checkpointNode(): string {
    return this.#record.progress.checkpointNode;
  }

  /** The phase of the last completed node; `""` if it has none. */
  get phase(): string {
    return this.#record.progress.phase;
  }

  /** Where a resume would continue, as known when this State was saved. */
  get nextNode(): string | undefined {
    return this.#record.progress.nextNode;
  }

  /** When the last node completed, or when the State was created, ISO 8601. */
  get timestamp(): string {
    return this.#record.progress.timestamp;
  }

  /** The number of nodes completed in this run, across all its resumes. */
  get step(): number {
    return this.#record.progress.step;
  }

  /** What the run is doing, or how it ended. */
  get status(): RunStatus {
    return this.#record.progress.status;
  }

  /** What made the run fail. */
  get error(): RunError | undefined {
    return this.#record.progress.error;
  }

  /**
   * Why this State was last saved: `start`, `interval`, `adaptive`, `complete`, `failure`, `abort`, `pause`, `input`,
   * `resume`, `breakpoint`, `once`, `submit`, `cancel`, `fork`, `rollback`, `recovery`, or the reason given by a trigger or
   * a milestone.
   */
  get reason(): string {
    return this.#record.progress.reason;
  }

  /** How often each node completed, over all resumes of the run. */
  get visits(): Visits {
    return this.#record.progress.counts.visits();
  }

  /**
   * The newest steps of the run, oldest first; 100 unless the graph's `record.maxSteps` says otherwise. None if the
   * graph saves nothing.
   */
  get steps(): readonly StepRecord[] {
    return this.#record.progress.steps.list();
  }

  /**
   * What each node did over the whole run, exact even if {@link State.steps} begins later. Only the visits are counted
   * if the graph saves nothing.
   */
  get totals(): Readonly<Record<string, NodeTotals>> {
    const { counts, ledger } = this.#record.progress;
    const visits = counts.visits();
    const totals: Record<string, NodeTotals> = {};
    for (const [node, work] of Object.entries(counts.work())) {
      const usage = ownOf(ledger.nodes, node);
      setKey(totals, node, { visits: visits[node] ?? 0, ...work, ...(usage && { usage }) });
    }
    return Object.freeze(totals);
  }

  /** How often the run was resumed, for whatever reason. */
  get resumes(): number {
    return this.#record.progress.resumes;
  }

  /** How often the run was resumed after its process had died. */
  get crashes(): number {
    return this.#record.progress.crashes;
  }

  /** What the run has used, decided and produced. */
  get ledger(): Ledger {
    return this.#record.progress.ledger;
  }

  /** What a paused run is waiting for. */
  get pauses(): readonly PauseRequest[] {
    return this.#record.progress.pauses;
  }

  /** The id of the checkpoint this State was saved as; `""` until saved. */
  get checkpointId(): string {
    return this.#record.saved.checkpointId;
  }

  /** The position of that checkpoint in the run's history, starting at 1; 0 until saved. */
  get sequence(): number {
    return this.#record.saved.sequence;
  }

  /** When that checkpoint was saved, ISO 8601; `""` until saved. */
  get savedAt(): string {
    return this.#record.saved.savedAt;
  }

  /** The size of that checkpoint in bytes, if the store knows it. */
  get bytes(): number | undefined {
    return this.#record.saved.bytes;
  }

  /** The graph that ran this State last. */
  get graph(): GraphIdentity | undefined {
    return this.#record.identity.graph;
  }

  /** The checkpoint that this run was forked from. */
  get parent(): ParentLink | undefined {
    return this.#record.identity.parent;
  }

  /**
   * The value of a key, `undefined` if there is none; {@link State.has} tells the two apart. Its type is the
   * declared one, for functions that take mutable arrays; the value is frozen all the same.
   */
  get<K extends keyof D>(key: K): D[K] {
    const { data } = this.#record;
    return (Object.hasOwn(data, key) ? Reflect.get(data, key) : undefined) as D[K];
  }

  /** Whether the data has a key, even if its value is `undefined`. */
  has(key: keyof D): boolean {
    return Object.hasOwn(this.#record.data, key);
  }

  /**
   * A State with one key set.
   *
   * @throws ConfigError if the key is not a string.
   */
  set<K extends keyof D & string>(key: K, value: D[K] | Immutable<D[K]>): State<D> {
    if (typeof key !== "string") throw new ConfigError("key", `must be a string; got ${show(key)}`);
    const { data, traits } = this.#record;
    // Not `Reflect.get`, and no computed key in the literal: both are measurably slower, at every step.
    const kept: unknown = freezeCopy(value, (data as Record<string, unknown>)[key]);
    const changed: object = { ...data };
    setKey(changed, key, kept);
    const next = this.#with(Object.freeze(changed), traits | traitsOf(kept));
    if (this.#sink?.listens("state.set"))
      this.#sink.emit("state.set", "state", this.runId, { key });
    return next;
  }

  /**
   * A State with several keys set. Of another State only the data is merged; the run stays this one.
   *
   * @throws ConfigError if it is given neither an object nor a State.
   */
  merge(changes: Patch<D> | State<D>): State<D> {
    const patch: object = changes instanceof State ? changes.#record.data : changes;
    checkData(patch);
    const before = this.#record.data;
    // Symbol keys are copied too, so that a save can reject them; checking here would slow every step by a
    // tenth.
    const data: object = { ...before, ...patch };
    let { traits } = this.#record;
    for (const key of Object.keys(patch)) {
      const given: unknown = Reflect.get(data, key);
      const kept: unknown = freezeCopy(given, Reflect.get(before, key));
      if (kept !== given) setKey(data, key, kept);
      traits |= traitsOf(kept);
    }
    const next = this.#with(Object.freeze(data), traits);
    next.#emit("state.merge", patch);
    return next;
  }

  /**
   * A State changed by an immer recipe, which may modify its draft freely.
   *
   * @throws ConfigError if the recipe is asynchronous, returns something that can't be data, or both returns
   *   data and changes its draft.
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
    const { data } = this.#record;
    const changed = produce(data, recipe as (draft: object) => unknown);
    if (changed === data) return this;
    checkData(changed);
    const kept: object = freezeCopy(changed);
    const next = this.#with(kept, traitsOf(kept));
    next.#emit("state.merge", kept);
    return next;
  }

  /** A new State object equal to this one. The data is shared, since it is immutable. */
  clone(): State<D> {
    const next = new State<D>(this.#record, this.#sink);
    next.#emit("state.clone", this.#record.data);
    return next;
  }

  /**
   * A State in which this node has just completed; its timestamp is later than before.
   *
   * @throws ConfigError if the node is not a string.
   */
  setCheckpointNode(node: string): State<D> {
    string("node", node);
    const { progress } = this.#record;
    const timestamp = new Date(Math.max(now(), Date.parse(progress.timestamp) + 1)).toISOString();
    return new State(
      { ...this.#record, progress: { ...progress, checkpointNode: node, timestamp } },
      this.#sink,
    );
  }

  /**
   * Saves this State. The returned State has its `checkpointId`; continue with that one.
   *
   * @throws CheckpointConflictError if another State of this run was saved since.
   * @throws ConfigError if it is given no store.
   */
  async checkpoint(store: { save(state: State<D>): Promise<State<D>> }): Promise<State<D>> {
    if (typeof store?.save !== "function") {
      throw new ConfigError("store", `must be a CheckpointStore; got ${show(store)}`);
    }
    return store.save(this);
  }

  /**
   * For stores: this State as the checkpoint it was just saved as, at this moment unless `savedAt` says
   * otherwise. The values passed must not change afterwards.
   */
  savedAs(saved: SavedNow | State<D>): State<D> {
    const { data, traits, identity, progress } = this.#record;
    const record = {
      data,
      traits,
      identity,
      progress,
      saved:
        saved instanceof State
          ? saved.#record.saved
          : isSaved(saved)
            ? saved
            : { ...saved, savedAt: isoNow() },
    };
    return new State(record, this.#sink);
  }

  /**
   * This State as plain JSON; {@link State.fromJSON} reverses it.
   *
   * @throws SerializationError that names the path of what can't be saved.
   */
  toJSON(): StateJSON {
    return encodeState(this.#record);
  }

  /** What `console.log` shows. */
  [Symbol.for("nodejs.util.inspect.custom")](): object {
    const { runId, status, step, checkpointNode, data } = this;
    return { runId, status, step, checkpointNode, data };
  }

  #with(data: object, traits: number): State<D> {
    const { identity, progress, saved } = this.#record;
    // The opaque value may have been replaced; the other traits follow from what came in.
    const known = traits & OPAQUE ? traitsOfValues(data) : traits;
    return new State({ data, traits: known, identity, progress, saved }, this.#sink);
  }

  #emit(type: "state.create" | "state.clone" | "state.merge", changed: object): void {
    if (this.#sink?.listens(type) !== true) return;
    this.#sink.emit(type, "state", this.runId, { keys: Object.keys(changed).length });
  }
}

/** Throws if the value is not a State. */
export function checkState(value: unknown): asserts value is State<object> {
  isState("state", value);
}

const isState = check("a State", (value) => value instanceof State);

function isSaved(saved: SavedNow): saved is Saved {
  return saved.savedAt !== undefined;
}

const optionChecks: Readonly<Record<keyof StateOptions, Check>> = {
  runId: (_name, value) => {
    checkRunId(value);
  },
  metadata: checkMetadata,
  observer: checkObserver,
};

/** The sink that passes a State's events to this observer. */
function sinkFor(observer: Observer | undefined): EventSink | undefined {
  if (observer === undefined) return undefined;
  const bus = new EventBus();
  observe(bus, observer);
  return bus;
}

/** Throws if the value can't be a State's data or a change of it. */
export function checkData(data: unknown): asserts data is object {
  // Written out because each merge calls it.
  if (!isPlainObject(data)) {
    throw new ConfigError("data", `must be a plain object; got ${show(data)}`);
  }
}
