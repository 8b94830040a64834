import { checkAt } from "../checkpoint/arguments.js";
import { forked, rolledBack } from "../checkpoint/fork.js";
import { migrate } from "../checkpoint/migration.js";
import {
  type CheckpointAt,
  type CheckpointStore,
  entryOf,
  type HistoryEntry,
  isAt,
  isNewest,
  type Retention,
  type StoreContext,
} from "../checkpoint/store.js";
import {
  CheckpointCorruptionError,
  CheckpointNotFoundError,
  ConfigError,
  GraphError,
  isWaymarkError,
  show,
} from "../errors.js";
import type { Audit } from "../event-map.js";
import { compareTopologies, shapeOf, type TopologyDifference } from "../graph/description.js";
import { END } from "../graph/node.js";
import { checkRunId } from "../options.js";
import { progressOf, withProgress, withRecord } from "../state/derive.js";
import { isProgressSave } from "../state/fields.js";
import { validated } from "../state/schema.js";
import { type Patch, recordOf, State } from "../state/state.js";
import { outsideRun } from "./loop/failure.js";
import type { SavedGraph } from "./saved-graph.js";
import { Saver } from "./saving/saver.js";

/** Reads and writes the checkpoints of a graph's runs while they are not running. */
export class Checkpoints<D extends object> {
  readonly #graph: SavedGraph<D>;

  constructor(graph: SavedGraph<D>) {
    this.#graph = graph;
  }

  /** The run that a checkpoint belongs to. */
  async runOf(checkpointId: string): Promise<string> {
    checkAt({ checkpointId });
    const store = await this.#graph.store();
    if (store.find === undefined) {
      throw new ConfigError("checkpointId", "needs a store that can find it: name the run too");
    }
    const runId = await store.find(checkpointId);
    if (runId !== undefined) return runId;
    throw new CheckpointNotFoundError("", { checkpointId });
  }

  /** The State of a checkpoint, ready to continue from: saves after an older one go to the end of the history. */
  async load(runId: string, at: CheckpointAt): Promise<State<D>> {
    const store = await this.#graph.store();
    const state = await this.#read(store, runId, at);
    if (at.step === undefined && at.checkpointId === undefined) return state;
    const { sequence } = await this.#fetch(store, runId, {});
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
    const store = await this.#graph.store();
    if (store.history !== undefined) return store.history(runId);
    try {
      const state = await this.#fetch(store, runId, {});
      return [entryOf(state, "", isProgressSave(progressOf(state)))];
    } catch (error) {
      if (isWaymarkError(error, "CHECKPOINT_NOT_FOUND")) return [];
      throw error;
    }
  }

  async fork(runId: string, at: CheckpointAt, changes: Patch<D>): Promise<State<D>> {
    const source = await this.#read(await this.#graph.store(), runId, at);
    this.#graph.position(withProgress(source, { reason: "fork" }));
    const next = forked(source, changes, this.#graph.identity);
    const { schema } = this.#graph.settings;
    if (schema !== undefined) await validated("data", next.data, schema);
    return this.#append(next, "fork");
  }

  async rollback(runId: string, at: CheckpointAt): Promise<State<D>> {
    checkRunId(runId);
    return this.#claimed(runId, async () => {
      const state = await this.load(runId, at);
      return this.#append(rolledBack(state), "rollback");
    });
  }

  async delete(runId: string, audit = this.#graph.settings.audit): Promise<void> {
    await this.#claimed(runId, (store) => store.delete(runId));
    this.#removed(runId, audit);
  }

  /**
   * Claims a run while the work lasts.
   *
   * @throws CheckpointConflictError, naming the holder, if a process works on it.
   */
  async #claimed<T>(runId: string, work: (store: CheckpointStore) => Promise<T>): Promise<T> {
    const store = await this.#graph.store();
    const claim = await this.#graph.settings.claim(store, runId);
    try {
      return await work(store);
    } finally {
      await claim?.release().catch(() => {});
    }
  }

  async prune(retention: Retention, audit = this.#graph.settings.audit): Promise<string[]> {
    const store = await this.#graph.store();
    if (store.prune === undefined) throw new ConfigError("store", "has no prune");
    const runIds = await store.prune(retention);
    if (retention.dryRun !== true) for (const runId of runIds) this.#removed(runId, audit);
    return runIds;
  }

  #removed(runId: string, audit: Audit | undefined): void {
    this.#graph.emit("checkpoint.delete", runId, { node: "", step: 0, ...audit });
  }

  async #append(given: State<D>, reason: string): Promise<State<D>> {
    const named = withProgress(given, { reason });
    const { state: stands, after, next: known } = this.#graph.position(named);
    // Without the progress of a removed node, unless the config has a replacement for it.
    const state = known === undefined ? stands : named;
    const next = this.#graph.next(state);
    // A completed run stays completed, unless the changes of a fork lead to another node.
    const isEnd = next === END && (after?.exit === true || state.status === "completed");
    const isFirst = state.checkpointNode === "";
    const status = isEnd ? "completed" : isFirst ? "pending" : "in_progress";
    const { pauses } = state;
    const { settings } = this.#graph.with({ onSaveError: "fail" });
    const saver = new Saver<D>(await this.#graph.store(), settings, state);
    try {
      return await saver.save(
        withProgress(state, {
          status: pauses.length > 0 ? "paused" : status,
          error: undefined,
          recovery: undefined,
          nextNode: next === END ? undefined : next,
        }),
      );
    } catch (error) {
      throw outsideRun(error);
    }
  }

  /** Loads, migrates and validates a checkpoint, and compares its graph with this one. */
  async #read(store: CheckpointStore, runId: string, at: CheckpointAt): Promise<State<D>> {
    checkRunId(runId);
    checkAt(at);
    const loaded = await this.#fetch(store, runId, at);
    const { checkpointNode: node, step, checkpointId } = loaded;
    this.#graph.emit("checkpoint.load", runId, {
      node,
      step,
      checkpointId,
      ...this.#graph.settings.audit,
    });
    const { version, migrations, schema } = this.#graph.settings;
    const state = migrate(loaded, version, migrations);
    if (schema !== undefined) await validated("data", state.data, schema);
    await this.#compare(store, state);
    const { identity, progress } = recordOf(state);
    const ledger = state.ledger.withLimits(this.#graph.settings.ledger);
    return withRecord(state, {
      identity: { ...identity, graph: this.#graph.identity, config: this.#graph.config },
      progress: { ...progress, ledger },
    });
  }

  /** Loads from the store, and checks that it returned the checkpoint that was asked for. */
  async #fetch(store: CheckpointStore, runId: string, at: CheckpointAt): Promise<State<D>> {
    const emit: StoreContext["emit"] = (type, data) => this.#graph.emit(type, runId, data);
    const loaded = await store.load<D>(runId, at, { emit }).catch((error: unknown) => {
      const isGone = isWaymarkError(error, "CHECKPOINT_NOT_FOUND") && isNewest(at);
      if (!isGone || this.#graph.settings.preserve) throw error;
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
    const { name, fingerprint } = this.#graph.identity;
    if (graph === undefined || (graph.name === name && graph.fingerprint === fingerprint)) return;
    const expected = `${name} ${fingerprint}`;
    const actual = `${graph.name} ${graph.fingerprint}`;
    const before = await store.topology?.(graph.fingerprint).catch(() => undefined);
    const changes = before && compareTopologies(before, shapeOf(this.#graph.topology));
    this.#graph.emit("graph.mismatch", runId, { expected, actual, ...changes });
    if (this.#graph.settings.onMismatch === "warn") return;
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
