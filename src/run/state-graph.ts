import type { CheckpointAt, CheckpointStore, HistoryEntry } from "../checkpoint/store.js";
import { ConfigError, GraphError, show } from "../errors.js";
import type { AnyEvent, EventHandler, EventType } from "../events.js";
import { toMermaid } from "../graph/mermaid.js";
import type { NodeFunction } from "../graph/node.js";
import { Topology } from "../graph/topology.js";
import { type Check, check, checkOptions } from "../options.js";
import type { Predicate } from "../state/predicates.js";
import { checkRunId } from "../state/run-id.js";
import { type Patch, State } from "../state/state.js";
import { checkNodeOptions, type NodeOptions, withOptions } from "./attempts.js";
import { Checkpoints } from "./checkpoints.js";
import { type GraphConfig, resolveConfig, type Settings } from "./config.js";
import { Failure } from "./failure.js";
import { nextNode } from "./next.js";
import type { InputSchemas } from "./pauses.js";
import { type Prepare, Runner } from "./runner.js";
import { streamEvents } from "./stream.js";

/** Options of {@link StateGraph.execute}. */
export interface ExecuteOptions {
  /** Cancels the run: between nodes at once, inside a node through `ctx.signal`. It can be resumed. */
  readonly signal?: AbortSignal | undefined;
}

/** Options of {@link StateGraph.resume}. */
export interface ResumeOptions extends ExecuteOptions, CheckpointAt {
  /**
   * The answer to what a paused run waits for. For several pauses, an object with a value for each name;
   * those without one are asked for again.
   */
  readonly input?: unknown;
}

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
  #settings: Settings;
  #topology = new Topology<D>();
  #checkpoints: Checkpoints<D>;
  #runner: Runner<D>;
  /** What checks the input of each node's pauses. */
  #inputs = new Map<string, InputSchemas>();

  /** @throws ConfigError that names the field, what it got and what it wants. */
  constructor(config: GraphConfig = {}) {
    this.#settings = resolveConfig(config);
    this.#checkpoints = new Checkpoints(this.#settings, this.#topology);
    this.#runner = this.#newRunner();
  }

  #newRunner(draining?: AbortSignal): Runner<D> {
    return new Runner(this.#settings, this.#topology, this.#checkpoints, this.#inputs, draining);
  }

  /**
   * @internal The same graph, saving each step in another store and keeping it: how it runs inside a
   * node or a worker.
   *
   * @param longestWait - how many milliseconds a run may wait in this process; it pauses for longer waits.
   */
  static inside<D extends object, N extends string>(
    graph: StateGraph<D, N>,
    store: CheckpointStore,
    draining: AbortSignal,
    longestWait = Number.POSITIVE_INFINITY,
  ): StateGraph<D, N> {
    const inner = new StateGraph<D, N>();
    const { interval } = graph.#settings;
    inner.#settings = {
      ...graph.#settings,
      store,
      interval: Number.isFinite(interval) ? interval : 1,
      preserve: true,
      onSaveError: "fail",
      longestWait,
    };
    inner.#topology = graph.#topology;
    inner.#inputs = graph.#inputs;
    inner.#checkpoints = new Checkpoints(inner.#settings, inner.#topology);
    inner.#runner = inner.#newRunner(draining);
    return inner;
  }

  /** The graph's name. */
  get name(): string {
    return this.#settings.name;
  }

  /** The schema version of the data, as the config says. */
  get version(): number {
    return this.#settings.version;
  }

  /** A hash of the nodes and edges. It is saved with each checkpoint, so that a resume sees a changed graph. */
  get fingerprint(): string {
    return this.#topology.fingerprint;
  }

  /**
   * Adds a node.
   *
   * @throws GraphError when the name is empty or taken, or the node is no function.
   * @throws ConfigError when an option is not what it must be.
   */
  addNode<K extends string>(
    name: K,
    node: NodeFunction<D>,
    options: NodeOptions<D> = {},
  ): StateGraph<D, N | K> {
    checkNodeOptions(name, options);
    this.#topology.addNode(name, typeof node === "function" ? withOptions(node, options) : node);
    if (options.input !== undefined) this.#inputs.set(name, options.input);
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
   * @throws GraphError when the graph is not built right, or it is given no State.
   * @throws ConfigError when an option is not what it must be.
   */
  async execute(state: State<D>, options: ExecuteOptions = {}): Promise<State<D>> {
    checkState(state);
    checkOptions("options", options, executeOptions);
    this.#topology.validate();
    return this.#runner.start(state, options);
  }

  /**
   * Goes on with a run after its newest checkpoint, or after an older one. A run that is at an exit
   * point is returned as it is. A paused run takes its `input` first.
   *
   * @throws CheckpointNotFoundError when the store has no such run or checkpoint.
   * @throws MigrationError when the checkpoint's version can't be brought to this graph's.
   * @throws CheckpointCorruptionError when no checkpoint of the run is as it was saved.
   * @throws GraphError when this graph has no node of that name any more.
   * @throws ConfigError when an option, or the input, is not what it must be.
   * @throws ExecutionError, CheckpointConflictError as `execute` does.
   */
  async resume(runId: string, options: ResumeOptions = {}): Promise<State<D>> {
    checkOptions("options", options, resumeOptions);
    this.#topology.validate();
    return this.#runner.resume(runId, options);
  }

  /**
   * Goes on with a State's run if the store has it, and starts it if not. When all of its checkpoints
   * are corrupt it starts afresh and tells so by a `checkpoint.error` event.
   *
   * @throws GraphError, ConfigError, MigrationError, ExecutionError, CheckpointConflictError as `execute`
   *   and `resume` do.
   */
  async resumeOrStart(state: State<D>, options: ExecuteOptions = {}): Promise<State<D>> {
    checkState(state);
    checkOptions("options", options, executeOptions);
    this.#topology.validate();
    return this.#runner.resumeOrStart(state, options);
  }

  /**
   * Starts a State's run, or goes on with the run of an id, and hands out its events one by one. The
   * run waits for a reader who is slow, and a reader who leaves cancels it; it can be resumed. What
   * the stream returns at its end is the State that `execute` or `resume` would have returned.
   *
   * @throws GraphError, ConfigError at once; while it is read, what `execute` or `resume` would.
   * @example
   * ```ts
   * import { State, StateGraph } from "waymark";
   *
   * const graph = new StateGraph<{ n: number }>()
   *   .addNode("one", () => ({ n: 1 }))
   *   .setEntryPoint("one")
   *   .setExitPoint("one");
   * const types: string[] = [];
   * for await (const event of graph.stream(State.create({ n: 0 }))) types.push(event.type);
   * console.log(types.join(" ")); // graph.start node.start state.merge node.complete graph.complete
   * ```
   */
  stream(
    run: State<D> | string,
    options: ResumeOptions = {},
  ): AsyncGenerator<AnyEvent, State<D>, undefined> {
    const isNew = run instanceof State;
    checkOptions("options", options, isNew ? executeOptions : resumeOptions);
    this.#topology.validate();
    const runId = isNew ? run.runId : checkRunId(run);
    return streamEvents(this.#settings.bus, runId, options.signal, (signal, gate) =>
      isNew
        ? this.#runner.start(run, { signal, gate })
        : this.#runner.resume(runId, { ...options, signal, gate }),
    );
  }

  /**
   * Stops the graph's runs in this process so that they can be resumed: the nodes that are running
   * finish and are saved, no other starts. Each run ends with an ExecutionError of the code
   * `ABORTED`. Resolves when all have stopped.
   */
  drain(): Promise<void> {
    return this.#runner.drain();
  }

  /** @internal Goes on with a run from what `prepare` makes of it; `undefined` when it was left alone. */
  async recover(
    runId: string,
    signal: AbortSignal,
    prepare: Prepare,
  ): Promise<State<D> | undefined> {
    this.#topology.validate();
    return this.#runner.recover(runId, { signal }, prepare);
  }

  /**
   * The checkpoints of a run, newest first.
   *
   * @throws ConfigError when the run id is not what it must be.
   */
  history(runId: string): Promise<HistoryEntry[]> {
    return this.#checkpoints.history(runId);
  }

  /**
   * Makes a new run out of a checkpoint, with changes merged in, and saves it. The original stays as
   * it is. Runs nothing: `resume` the new run.
   *
   * @param at - a step, a checkpointId, or an object with one of them.
   * @throws CheckpointNotFoundError when there is no such checkpoint.
   * @throws GraphError, MigrationError, CheckpointCorruptionError as `resume` does.
   * @throws ConfigError when an argument is not what it must be.
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
   * @throws GraphError, MigrationError, CheckpointCorruptionError as `resume` does.
   * @throws ConfigError when an argument is not what it must be.
   */
  async rollback(runId: string, at: number | string | CheckpointAt): Promise<State<D>> {
    return this.#checkpoints.rollback(runId, wantAt(at));
  }

  /**
   * The graph as a Mermaid flowchart; with a State also what is done and what comes next.
   *
   * @throws ConfigError when an option is not what it must be.
   * @throws GraphError when the State is at a node that this graph does not have.
   */
  toMermaid(options: { readonly state?: State<D> | undefined } = {}): string {
    checkOptions("options", options, {
      state: check("a State", (value) => value instanceof State),
    });
    const { nodes, entry } = this.#topology;
    const { state } = options;
    return toMermaid(nodes, entry, state && { visits: state.visits, next: this.#nextName(state) });
  }

  #nextName(state: State<D>): string | undefined {
    if (state.unfinished !== undefined) return state.unfinished.node;
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
}

function checkState(state: unknown): void {
  if (state instanceof State) return;
  const problem = `wants a State, got ${show(state)}: make one with State.create(data)`;
  throw new GraphError("GRAPH_STATE", problem);
}

const executeOptions: Readonly<Record<string, Check>> = {
  signal: check("an AbortSignal", (value) => value instanceof AbortSignal),
};
// `checkAt` looks at these two.
const resumeOptions = {
  ...executeOptions,
  step: () => {},
  checkpointId: () => {},
  input: () => {},
};

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
