import { historyOf } from "../checkpoint/any-store.js";
import { checkAt } from "../checkpoint/arguments.js";
import { migrate } from "../checkpoint/migration.js";
import {
  type CheckpointAt,
  type CheckpointStore,
  type HistoryEntry,
  isAt,
  isNewest,
  opened,
  type StoreContext,
} from "../checkpoint/store.js";
import { isoNow } from "../clock.js";
import {
  CheckpointCorruptionError,
  CheckpointNotFoundError,
  ConfigError,
  GraphError,
  isWaymarkError,
  messageOf,
  show,
} from "../errors.js";
import type { EventMap } from "../event-map.js";
import type { EventType } from "../events.js";
import {
  compareTopologies,
  type GraphTopology,
  shapeOf,
  type TopologyDifference,
} from "../graph/description.js";
import { END, type End } from "../graph/node.js";
import type { Topology } from "../graph/topology.js";
import { checkRunId } from "../options.js";
import { mergedMetadata, withRecord } from "../state/derive.js";
import { newProgress, unsaved } from "../state/fields.js";
import { freezeCopy } from "../state/freeze-copy.js";
import { traitsOf } from "../state/json-traits.js";
import type { GraphIdentity, RunConfig } from "../state/record.js";
import { jsonSchemaOf, validated } from "../state/schema.js";
import { checkData, recordOf, State } from "../state/state.js";
import type { Settings } from "./config.js";
import { chooseEdge } from "./loop/advance.js";
import { positionOf, type RunPosition, replacement } from "./position/position.js";

/** A graph as its checkpoints identify it, and its runs as its store has them. */
export class SavedGraph<D extends object> {
  readonly settings: Settings;
  readonly topology: Topology<D>;

  constructor(settings: Settings, topology: Topology<D>) {
    this.settings = settings;
    this.topology = topology;
  }

  /** The same graph, some of whose settings differ. */
  with(settings: Partial<Settings>): SavedGraph<D> {
    return new SavedGraph({ ...this.settings, ...settings }, this.topology);
  }

  /** @throws GraphError if the graph is not complete, or lacks a node that its config names. */
  validate(): void {
    const { onMissingNode, triggers } = this.settings;
    this.topology.validate();
    for (const name of Object.keys(onMissingNode)) replacement(name, onMissingNode, this.topology);
    for (const { nodes = [] } of triggers) {
      for (const node of nodes) this.topology.node(node, "config.checkpoint.triggers");
    }
  }

  /** The identity of the graph in its checkpoints. */
  get identity(): GraphIdentity {
    const { name, version } = this.settings;
    return Object.freeze({ name, version, fingerprint: this.topology.fingerprint });
  }

  /** The settings that a run of this graph is saved and guarded by, for readers of its checkpoints. */
  get config(): RunConfig {
    const { interval, mode, adaptive, keep, keepPerPhase } = this.settings;
    const { preserve, onSaveError, maxIterations } = this.settings;
    return Object.freeze({
      interval: adaptive === undefined ? (Number.isFinite(interval) ? interval : 0) : "adaptive",
      ...{ mode, preserve, onSaveError },
      ...(keep !== undefined && { keep: Number.isFinite(keep) ? keep : "all" }),
      ...(keepPerPhase !== undefined && { keepPerPhase }),
      ...(Number.isFinite(maxIterations) && { maxIterations }),
    });
  }

  /** The graph as data. */
  get description(): GraphTopology {
    const schema = this.settings.schema && jsonSchemaOf(this.settings.schema);
    return { ...this.identity, ...shapeOf(this.topology), ...(schema && { schema }) };
  }

  /** Saves the topology of the graph; emits an event if the store fails to keep it. */
  async describe(runId: string): Promise<void> {
    const store = await this.storeIfAny();
    try {
      await store?.saveTopology?.(this.description);
    } catch (error) {
      this.saveFailed(runId, error);
    }
  }

  /** Emits an event about a save that failed before the first node. */
  saveFailed(runId: string, error: unknown): void {
    const data = { action: "save", node: "", error: messageOf(error) } as const;
    this.emit("checkpoint.error", runId, data);
  }

  /** The graph's store, opened; `undefined` if nothing is saved. */
  async storeIfAny(): Promise<CheckpointStore | undefined> {
    const { store } = this.settings;
    return store && opened(store);
  }

  async store(): Promise<CheckpointStore> {
    const store = await this.storeIfAny();
    if (store !== undefined) return store;
    throw new ConfigError(
      "config.checkpoint.interval",
      "is 0, so this graph saves nothing: set it to 1 or more",
    );
  }

  /**
   * The position of a State in the graph as it is now.
   *
   * @throws GraphError if it is at a node that the graph no longer has.
   */
  position(state: State<D>): RunPosition<D> {
    return positionOf(state, this.topology, this.settings);
  }

  /** Where a resume of a State would continue; `undefined` at the end, or if no edge matches. */
  nextNode(state: State<D>): string | undefined {
    const next = this.next(state);
    return next === END ? undefined : next;
  }

  /** The same, with {@link END} for the end. */
  next(state: State<D>): string | End | undefined {
    const { after, next } = this.position(state);
    if (next !== undefined || after === undefined) return (next ?? this.topology.entry)?.name;
    if (after.exit) return END;
    const { to } = chooseEdge(state, after);
    return to === END ? END : to?.name;
  }

  emit<T extends EventType>(type: T, runId: string, data: EventMap[T]): void {
    this.settings.bus.emit(type, this.settings.name, runId, data);
  }

  /** A State at the beginning of a run, with its data as the schema returns it; one that has run before starts over. */
  async first(state: State<D>): Promise<State<D>> {
    const { identity: graph, config, settings } = this;
    const record = recordOf(state);
    const isFresh = state.status === "pending" && state.step === 0;
    const progress = isFresh ? record.progress : newProgress();
    const startedAt = isFresh ? state.startedAt : isoNow();
    const first = withRecord(state, {
      identity: {
        ...record.identity,
        ...mergedMetadata(record.identity, settings.metadata),
        ...{ graph, config, startedAt },
      },
      progress: { ...progress, ledger: progress.ledger.withLimits(settings.ledger) },
      saved: isFresh ? record.saved : unsaved,
    });
    if (settings.schema === undefined) return first;
    const data = await validated("data", state.data, settings.schema);
    if (data === state.data) return first;
    checkData(data);
    const kept: object = freezeCopy(data);
    return withRecord(first, { data: kept, traits: traitsOf(kept) });
  }

  /** The run that a checkpoint belongs to. */
  async runOf(checkpointId: string): Promise<string> {
    const store = await this.store();
    if (store.find === undefined) {
      throw new ConfigError("checkpointId", "needs a store that can find it: name the run too");
    }
    const runId = await store.find(checkpointId);
    if (runId !== undefined) return runId;
    throw new CheckpointNotFoundError("", { checkpointId });
  }

  /** The State of a checkpoint, ready to continue from: saves after an older one go to the end of the history. */
  async load(runId: string, at: CheckpointAt = {}): Promise<State<D>> {
    const state = await this.read(runId, at);
    if (isNewest(at)) return state;
    const { sequence } = await this.#fetch(await this.store(), runId);
    const { checkpointId, savedAt } = state;
    return state.savedAs({ checkpointId, sequence, savedAt });
  }

  /**
   * The newest State of an earlier step whose checkpoint can be read; `undefined` if there is none. Progress saves of
   * the current step are skipped; those of the earlier one are kept, so that nothing is done or asked twice.
   */
  async previous({ runId, step }: State<D>): Promise<State<D> | undefined> {
    for (const entry of await this.history(runId)) {
      if (entry.step >= step || entry.status === "paused") continue;
      try {
        return await this.load(runId, { checkpointId: entry.checkpointId });
      } catch (error) {
        if (!isWaymarkError(error, "CHECKPOINT_CORRUPT")) throw error;
      }
    }
    return undefined;
  }

  async history(runId: string): Promise<HistoryEntry[]> {
    checkRunId(runId);
    return historyOf(await this.store(), runId, (store) => this.#fetch(store, runId));
  }

  /** Loads, migrates and validates a checkpoint, and compares its graph with this one. */
  async read(runId: string, at: CheckpointAt): Promise<State<D>> {
    const store = await this.store();
    checkRunId(runId);
    checkAt(at);
    const loaded = await this.#fetch(store, runId, at);
    const { checkpointNode: node, step, checkpointId } = loaded;
    const { audit, version, migrations, schema, ledger: limits } = this.settings;
    this.emit("checkpoint.load", runId, { node, step, checkpointId, ...audit });
    const state = migrate(loaded, version, migrations);
    if (schema !== undefined) await validated("data", state.data, schema);
    await this.#compare(store, state);
    const { identity, progress } = recordOf(state);
    const ledger = state.ledger.withLimits(limits);
    return withRecord(state, {
      identity: { ...identity, graph: this.identity, config: this.config },
      progress: { ...progress, ledger },
    });
  }

  /** Loads from the store, and checks that it returned the checkpoint that was asked for. */
  async #fetch(store: CheckpointStore, runId: string, at: CheckpointAt = {}): Promise<State<D>> {
    const emit: StoreContext["emit"] = (type, data) => this.emit(type, runId, data);
    const loaded = await store.load<D>(runId, at, { emit }).catch((error: unknown) => {
      const isGone = isWaymarkError(error, "CHECKPOINT_NOT_FOUND") && isNewest(at);
      if (!isGone || this.settings.preserve) throw error;
      const hint = "a run that completed is removed unless checkpoint.preserve is true";
      throw new CheckpointNotFoundError(runId, at, hint);
    });
    if (!(loaded instanceof State)) {
      throw new TypeError(`store.load() must return a State; got ${show(loaded)}`);
    }
    if (loaded.runId !== runId) {
      throw new CheckpointCorruptionError(
        `the store returned a checkpoint of run ${show(loaded.runId)} for run ${show(runId)}`,
        { expected: runId, actual: loaded.runId },
      );
    }
    if (!isAt(at, loaded)) throw new CheckpointNotFoundError(runId, at);
    return loaded;
  }

  /** Reports what has changed in the graph since a State was saved. */
  async #compare(store: CheckpointStore, { graph, runId }: State<D>): Promise<void> {
    const { name, fingerprint } = this.identity;
    if (graph === undefined || (graph.name === name && graph.fingerprint === fingerprint)) return;
    const expected = `${name} ${fingerprint}`;
    const actual = `${graph.name} ${graph.fingerprint}`;
    const before = await store.topology?.(graph.fingerprint).catch(() => undefined);
    const changes = before && compareTopologies(before, shapeOf(this.topology));
    this.emit("graph.mismatch", runId, { expected, actual, ...changes });
    if (this.settings.onMismatch === "warn") return;
    const problem = `run ${show(runId)} was made by another graph: ${actual}; this one is ${expected}`;
    throw new GraphError(
      "GRAPH_MISMATCH",
      `${problem}${inWords(changes)}: use that graph, or set config.onMismatch to "warn"`,
    );
  }
}

/** What has changed in a graph, for a message. */
function inWords(changes: TopologyDifference | undefined): string {
  const parts = Object.entries(changes ?? {}).flatMap(
    ([what, nodes]: [string, readonly string[]]) =>
      nodes.length === 0 ? [] : [`${what} ${nodes.map(show).join(", ")}`],
  );
  return parts.length === 0 ? "" : ` (${parts.join("; ")})`;
}
