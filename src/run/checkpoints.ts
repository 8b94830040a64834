import { checkAt } from "../checkpoint/arguments.js";
import { DeferredStore } from "../checkpoint/deferred.js";
import { forked } from "../checkpoint/fork.js";
import { migrate } from "../checkpoint/migration.js";
import {
  type CheckpointAt,
  type CheckpointStore,
  entryOf,
  type HistoryEntry,
  isAt,
  notFound,
  type StoreContext,
} from "../checkpoint/store.js";
import {
  CheckpointCorruptionError,
  ConfigError,
  GraphError,
  isWaymarkError,
  show,
} from "../errors.js";
import type { EventMap } from "../event-map.js";
import type { EventType } from "../events.js";
import type { GraphNode } from "../graph/node.js";
import type { Topology } from "../graph/topology.js";
import type { GraphIdentity } from "../state/record.js";
import { checkRunId } from "../state/run-id.js";
import { type Patch, State } from "../state/state.js";
import type { Settings } from "./config.js";
import { outsideRun } from "./failure.js";
import { Saver } from "./saver.js";

/** The checkpoints of a graph's runs: what is read and written between runs, never during one. */
export class Checkpoints<D extends object> {
  readonly #settings: Settings;
  readonly #topology: Topology<D>;

  constructor(settings: Settings, topology: Topology<D>) {
    this.#settings = settings;
    this.#topology = topology;
  }

  /** The graph as its checkpoints name it. */
  get identity(): GraphIdentity {
    const { name, version } = this.#settings;
    return Object.freeze({ name, version, fingerprint: this.#topology.fingerprint });
  }

  /** The graph's store, its module loaded; `undefined` when nothing is saved. */
  async storeIfAny(): Promise<CheckpointStore | undefined> {
    const { store } = this.#settings;
    return store instanceof DeferredStore ? store.ready() : store;
  }

  async store(): Promise<CheckpointStore> {
    const store = await this.storeIfAny();
    if (store !== undefined) return store;
    throw new ConfigError(
      "config.checkpoint.interval",
      "is 0, so this graph saves nothing: set it to 1 or more",
    );
  }

  /** The State of a checkpoint, ready to be built on: what comes after an older one goes to the end of the history. */
  async load(runId: string, at: CheckpointAt): Promise<State<D>> {
    const store = await this.store();
    const state = await this.#read(store, runId, at);
    if (at.step === undefined && at.checkpointId === undefined) return state;
    const { sequence } = await this.#fetch(store, runId, {});
    return state.savedAs({ checkpointId: state.checkpointId, sequence });
  }

  /** The node that a State says has completed; `undefined` before the first. */
  nodeAfter({ checkpointNode, runId }: State<D>): GraphNode<D> | undefined {
    return checkpointNode === ""
      ? undefined
      : this.#topology.node(checkpointNode, `run ${show(runId)}`);
  }

  async history(runId: string): Promise<HistoryEntry[]> {
    checkRunId(runId);
    const store = await this.store();
    if (store.history !== undefined) return store.history(runId);
    try {
      return [entryOf(await this.#fetch(store, runId, {}), "")];
    } catch (error) {
      if (isWaymarkError(error, "CHECKPOINT_NOT_FOUND")) return [];
      throw error;
    }
  }

  async fork(runId: string, at: CheckpointAt, changes: Patch<D>): Promise<State<D>> {
    const source = await this.#read(await this.store(), runId, at);
    this.nodeAfter(source);
    return this.#append(forked(source, changes, this.identity), "fork");
  }

  async rollback(runId: string, at: CheckpointAt): Promise<State<D>> {
    return this.#append(await this.load(runId, at), "rollback");
  }

  async #append(state: State<D>, reason: string): Promise<State<D>> {
    const node = this.nodeAfter(state);
    const status = node === undefined ? "pending" : node.exit ? "completed" : "in_progress";
    const { pauses } = state;
    const settings: Settings = { ...this.#settings, onSaveError: "fail" };
    const saver = new Saver<D>(await this.store(), settings, state.runId);
    try {
      return await saver.save(
        State.progressed(state, {
          status: pauses.length > 0 ? "paused" : status,
          error: undefined,
          reason,
          recovery: undefined,
        }),
      );
    } catch (error) {
      throw outsideRun(error);
    }
  }

  /** Loads, then migrates, then looks whether the graph is still the same. */
  async #read(store: CheckpointStore, runId: string, at: CheckpointAt): Promise<State<D>> {
    checkRunId(runId);
    checkAt(at);
    const loaded = await this.#fetch(store, runId, at);
    const { checkpointNode: node, step, checkpointId } = loaded;
    this.emit("checkpoint.load", runId, { node, step, checkpointId, ...this.#settings.audit });
    const state = migrate(loaded, this.#settings.version, this.#settings.migrations);
    this.#compare(state);
    const known = State.identified(state, {
      ...State.fields(state).identity,
      graph: this.identity,
    });
    return State.progressed(known, { ledger: state.ledger.withLimits(this.#settings.ledger) });
  }

  /** What the store gives, if it is what it was asked for. */
  async #fetch(store: CheckpointStore, runId: string, at: CheckpointAt): Promise<State<D>> {
    const emit: StoreContext["emit"] = (type, data) => this.emit(type, runId, data);
    const loaded = await store.load<D>(runId, at, { emit });
    if (!(loaded instanceof State)) {
      throw new TypeError(`load wants to return a State, got ${show(loaded)}`);
    }
    if (loaded.runId !== runId) {
      throw new CheckpointCorruptionError(
        `the store gave a checkpoint of run ${show(loaded.runId)} for run ${show(runId)}`,
        { expected: runId, actual: loaded.runId },
      );
    }
    if (!isAt(at, loaded)) throw notFound(runId, at);
    return loaded;
  }

  #compare({ graph, runId }: State<D>): void {
    const { name, fingerprint } = this.identity;
    if (graph === undefined || (graph.name === name && graph.fingerprint === fingerprint)) return;
    const expected = `${name} ${fingerprint}`;
    const actual = `${graph.name} ${graph.fingerprint}`;
    this.emit("graph.mismatch", runId, { expected, actual });
    if (this.#settings.onMismatch === "warn") return;
    const problem = `run ${show(runId)} was made by graph ${actual}, this one is ${expected}`;
    throw new GraphError(
      "GRAPH_MISMATCH",
      `${problem}: use that graph, or set config.onMismatch to "warn"`,
    );
  }

  emit<T extends EventType>(type: T, runId: string, data: EventMap[T]): void {
    this.#settings.bus.emit(type, this.#settings.name, runId, data);
  }
}
