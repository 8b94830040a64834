import type { CheckpointAt, HistoryEntry } from "../checkpoint/store.js";
import { ConfigError, GraphError, isWaymarkError, show } from "../errors.js";
import type { EventHandler, EventType } from "../events.js";
import { toMermaid } from "../graph/mermaid.js";
import type { GraphNode, NodeFunction } from "../graph/node.js";
import { Topology } from "../graph/topology.js";
import { check, checkOptions } from "../options.js";
import type { Predicate } from "../state/predicates.js";
import { type Patch, State } from "../state/state.js";
import { Checkpoints } from "./checkpoints.js";
import { type GraphConfig, resolveConfig, type Settings } from "./config.js";
import { Failure } from "./failure.js";
import { nextNode } from "./next.js";
import { Run } from "./run.js";
import { Saver } from "./saver.js";

/** Options of {@link StateGraph.execute}. */
export interface ExecuteOptions {
  /** Cancels the run: between nodes at once, inside a node through `ctx.signal`. It can be resumed. */
  readonly signal?: AbortSignal | undefined;
}

/** Options of {@link StateGraph.resume}. */
export interface ResumeOptions extends ExecuteOptions, CheckpointAt {}

/**
 * A graph of nodes that a State is walked through. Node names gather in its type, so that a misspelt
 * one in an edge is a compile error.
 *
 * @example
 * ```ts
 * import { State, StateGraph } from "waymark";
 *
 * const graph = new StateGraph<{ words: number }>({ name: "article" })
 *   .addNode("draft", (state) => ({ words: state.data.words + 100 }))
 *   .addNode("publish", (state) => state)
 *   .addEdge("draft", "draft", (state) => state.data.words < 300)
 *   .addEdge("draft", "publish")
 *   .setEntryPoint("draft")
 *   .setExitPoint("publish");
 *
 * const final = await graph.execute(State.create({ words: 0 }));
 * console.log(final.data.words, final.step); // 300 4
 * ```
 */
export class StateGraph<D extends object, N extends string = never> {
  readonly #settings: Settings;
  readonly #topology = new Topology<D>();
  readonly #checkpoints: Checkpoints<D>;

  /** @throws ConfigError that names the field, what it got and what it wants. */
  constructor(config: GraphConfig = {}) {
    this.#settings = resolveConfig(config);
    this.#checkpoints = new Checkpoints(this.#settings, this.#topology);
  }

  /** The graph's name. */
  get name(): string {
    return this.#settings.name;
  }

  /** A hash of the nodes and edges. It is saved with each checkpoint, so that a resume sees a changed graph. */
  get fingerprint(): string {
    return this.#topology.fingerprint;
  }

  /**
   * Adds a node.
   *
   * @throws GraphError when the name is empty or taken, or the node is no function.
   */
  addNode<K extends string>(name: K, node: NodeFunction<D>): StateGraph<D, N | K> {
    this.#topology.addNode(name, node);
    return this as unknown as StateGraph<D, N | K>;
  }

  /**
   * Adds a way from one node to another. The edges of a node are tried in the order they were
   * added; the first whose predicate says `true`, or that has none, is taken.
   *
   * @throws GraphError when there is no such node.
   */
  addEdge(from: N, to: N, predicate?: Predicate<D>, name?: string): this {
    this.#topology.addEdge(from, to, predicate, name);
    return this;
  }

  /**
   * Says where a run starts.
   *
   * @throws GraphError when there is no such node, or there is an entry point already.
   */
  setEntryPoint(node: N): this {
    this.#topology.setEntryPoint(node);
    return this;
  }

  /**
   * Says where a run may end; there may be several. A run ends at an exit point even if it has edges.
   *
   * @throws GraphError when there is no such node.
   */
  setExitPoint(node: N): this {
    this.#topology.setExitPoint(node);
    return this;
  }

  /**
   * Checks that the graph is whole; `execute` and `resume` do so too.
   *
   * @throws GraphError that lists all that is wrong; its code is that of the first.
   */
  validate(): this {
    this.#topology.validate();
    return this;
  }

  /** Calls a handler for each event of a type, or of all types with `"*"`. */
  on<T extends EventType | "*">(type: T, handler: EventHandler<T>): this {
    this.#settings.bus.on(type, handler);
    return this;
  }

  /** Takes a handler away. */
  off<T extends EventType | "*">(type: T, handler: EventHandler<T>): this {
    this.#settings.bus.off(type, handler);
    return this;
  }

  /**
   * Walks a State from the entry point to an exit point.
   *
   * @throws ExecutionError when a node fails, no edge matches, the run is cancelled or too long.
   * @throws CheckpointConflictError when the run is in the store already, or another writer takes it.
   */
  async execute(state: State<D>, options: ExecuteOptions = {}): Promise<State<D>> {
    checkState(state);
    checkRunOptions(options);
    this.#topology.validate();
    const first = State.restarted(state, this.#checkpoints.identity);
    const store = await this.#checkpoints.storeIfAny();
    const saver = store && new Saver<D>(store, this.#settings, state.runId);
    return this.#run(first, saver, undefined).go(first, false, options.signal);
  }

  /**
   * Goes on with a run after its newest checkpoint, or after an older one. A run that is at an exit
   * point is returned as it is.
   *
   * @throws CheckpointNotFoundError when the store has no such run or checkpoint.
   * @throws MigrationError when the checkpoint's version can't be brought to this graph's.
   * @throws GraphError when this graph has no node of that name any more.
   */
  async resume(runId: string, options: ResumeOptions = {}): Promise<State<D>> {
    checkRunOptions(options);
    this.#topology.validate();
    return this.#goOn(await this.#checkpoints.load(runId, toAt(options)), options.signal);
  }

  /**
   * Goes on with a State's run if the store has it, and starts it if not. When all of its checkpoints
   * are corrupt it starts afresh and tells so by a `checkpoint.error` event.
   */
  async resumeOrStart(state: State<D>, options: ExecuteOptions = {}): Promise<State<D>> {
    checkState(state);
    checkRunOptions(options);
    this.#topology.validate();
    let loaded: State<D>;
    try {
      loaded = await this.#checkpoints.load(state.runId, {});
    } catch (error) {
      if (isWaymarkError(error, "CHECKPOINT_CORRUPT")) {
        const data = { action: "load", node: "", error: error.message } as const;
        this.#checkpoints.emit("checkpoint.error", state.runId, data);
      } else if (!isWaymarkError(error, "CHECKPOINT_NOT_FOUND")) {
        throw error;
      }
      return this.execute(state, options);
    }
    return this.#goOn(loaded, options.signal);
  }

  /** The checkpoints of a run, newest first. */
  history(runId: string): Promise<HistoryEntry[]> {
    return this.#checkpoints.history(runId);
  }

  /**
   * Makes a new run out of a checkpoint, with changes merged in, and saves it. The original stays as
   * it is. Runs nothing: `resume` the new run.
   *
   * @param at - a step, a checkpointId, or an object with one of them.
   * @throws CheckpointNotFoundError when there is no such checkpoint.
   */
  async fork(
    runId: string,
    at: number | string | CheckpointAt,
    changes: Patch<D> = {},
  ): Promise<State<D>> {
    return this.#checkpoints.fork(runId, wantAt(at), changes);
  }

  /**
   * Sets a run back to a checkpoint, by a new checkpoint with its data; the history stays. Runs
   * nothing: `resume` the run.
   *
   * @param at - a step, a checkpointId, or an object with one of them.
   * @throws CheckpointNotFoundError when there is no such checkpoint.
   */
  async rollback(runId: string, at: number | string | CheckpointAt): Promise<State<D>> {
    return this.#checkpoints.rollback(runId, wantAt(at));
  }

  /** The graph as a Mermaid flowchart; with a State also what is done and what comes next. */
  toMermaid(options: { readonly state?: State<D> | undefined } = {}): string {
    checkOptions("options", options, {
      state: check("a State", (value) => value instanceof State),
    });
    const { nodes, entry } = this.#topology;
    const { state } = options;
    return toMermaid(nodes, entry, state && { visits: state.visits, next: this.#nextName(state) });
  }

  #nextName(state: State<D>): string | undefined {
    const node = this.#checkpoints.nodeAfter(state);
    if (node === undefined) return this.#topology.entry?.name;
    if (node.exit) return undefined;
    try {
      return nextNode(state, node, this.name).name;
    } catch (error) {
      if (error instanceof Failure) return undefined;
      throw error;
    }
  }

  async #goOn(loaded: State<D>, signal: AbortSignal | undefined): Promise<State<D>> {
    const after = this.#checkpoints.nodeAfter(loaded);
    if (after?.exit) return State.progressed(loaded, { status: "completed" });
    const store = await this.#checkpoints.store();
    const saver = new Saver<D>(store, this.#settings, loaded.runId, loaded);
    return this.#run(loaded, saver, after).go(loaded, true, signal);
  }

  #run(state: State<D>, saver: Saver<D> | undefined, after: GraphNode<D> | undefined): Run<D> {
    const { nodes } = this.#topology;
    const entry = this.#topology.validate();
    return new Run({ settings: this.#settings, nodes, entry, after, saver }, state);
  }
}

function checkState(state: unknown): void {
  if (state instanceof State) return;
  const problem = `wants a State, got ${show(state)}: make one with State.create(data)`;
  throw new GraphError("GRAPH_STATE", problem);
}

const isSignal = check("an AbortSignal", (value) => value instanceof AbortSignal);

function checkRunOptions(options: ExecuteOptions): void {
  checkOptions("options", options, { signal: isSignal, step: () => {}, checkpointId: () => {} });
}

function toAt({ step, checkpointId }: CheckpointAt): CheckpointAt {
  return { step, checkpointId };
}

function wantAt(at: number | string | CheckpointAt): CheckpointAt {
  if (typeof at === "number") return { step: at };
  if (typeof at === "string") return { checkpointId: at };
  if (at?.step !== undefined || at?.checkpointId !== undefined) return toAt(at);
  const problem = `wants a step, a checkpointId, or an object with one of them, got ${show(at)}`;
  throw new ConfigError("at", problem);
}
