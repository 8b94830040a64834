import { type CheckpointStore, opened } from "../checkpoint/store.js";
import { ConfigError, messageOf } from "../errors.js";
import type { EventMap } from "../event-map.js";
import type { EventType } from "../events.js";
import { type GraphTopology, shapeOf } from "../graph/description.js";
import { END, type End, type GraphNode } from "../graph/node.js";
import type { Topology } from "../graph/topology.js";
import type { GraphIdentity, RunConfig } from "../state/record.js";
import { jsonSchemaOf } from "../state/schema.js";
import type { State } from "../state/state.js";
import type { Settings } from "./config.js";
import { chooseEdge } from "./loop/advance.js";
import { positionOf, type RunPosition, replacement } from "./position/position.js";

/** A graph as its checkpoints identify it, and the store they are in. */
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

  /**
   * The entry point of a graph that is complete and has every node that its config names.
   *
   * @throws GraphError if it is not.
   */
  validate(): GraphNode<D> {
    const { onMissingNode, triggers } = this.settings;
    const entry = this.topology.validate();
    for (const name of Object.keys(onMissingNode)) replacement(name, onMissingNode, this.topology);
    for (const { nodes = [] } of triggers) {
      for (const node of nodes) this.topology.node(node, "config.checkpoint.triggers");
    }
    return entry;
  }

  /** The entry point of a graph that was validated. */
  get entry(): GraphNode<D> {
    return this.topology.entry ?? this.validate();
  }

  /** The identity of the graph in its checkpoints. */
  get identity(): GraphIdentity {
    const { name, version } = this.settings;
    return Object.freeze({ name, version, fingerprint: this.topology.fingerprint });
  }

  /** The settings that a run of this graph is saved and guarded by, for readers of its checkpoints. */
  get config(): RunConfig {
    return describeSettings(this.settings);
  }

  /** The graph as data. */
  get description(): GraphTopology {
    const schema = this.settings.schema && jsonSchemaOf(this.settings.schema);
    return { ...this.identity, ...shapeOf(this.topology), ...(schema && { schema }) };
  }

  /** Saves the topology of the graph; emits an event if the store fails to keep it. */
  async describe(store: CheckpointStore, runId: string): Promise<void> {
    try {
      await store.saveTopology?.(this.description);
    } catch (error) {
      const data = { action: "save", node: "", error: messageOf(error) } as const;
      this.emit("checkpoint.error", runId, data);
    }
  }

  /** The graph's store, opened; `undefined` if nothing is saved. */
  async storeIfAny(): Promise<CheckpointStore | undefined> {
    return opened(this.settings.store);
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
    const { after, next: known } = this.position(state);
    if (known !== undefined) return known.name;
    if (after === undefined) return this.topology.entry?.name;
    if (after.exit) return END;
    const way = chooseEdge(state, after);
    if (way.to === undefined) return undefined;
    return way.to === END ? END : way.to.name;
  }

  emit<T extends EventType>(type: T, runId: string, data: EventMap[T]): void {
    this.settings.bus.emit(type, this.settings.name, runId, data);
  }
}

function describeSettings(settings: Settings): RunConfig {
  const { interval, mode, adaptive, keep, keepPerPhase, preserve, maxIterations } = settings;
  return Object.freeze({
    interval: adaptive === undefined ? (Number.isFinite(interval) ? interval : 0) : "adaptive",
    mode,
    preserve,
    onSaveError: settings.onSaveError,
    ...(keep !== undefined && { keep: Number.isFinite(keep) ? keep : "all" }),
    ...(keepPerPhase !== undefined && { keepPerPhase }),
    ...(Number.isFinite(maxIterations) && { maxIterations }),
  });
}
