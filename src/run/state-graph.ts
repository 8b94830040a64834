import type {
  CheckpointAt,
  CheckpointStore,
  Claim,
  HistoryEntry,
  Retention,
} from "../checkpoint/store.js";
import { ConfigError, GraphError, show } from "../errors.js";
import type { Audit } from "../event-map.js";
import type { AnyEvent, EventBus, EventHandler, EventType } from "../events.js";
import { type GraphTopology, innerOf, setInner } from "../graph/description.js";
import { toMermaid } from "../graph/mermaid.js";
import type { AnyResult, CheckedResult, END, NodeFunction } from "../graph/node.js";
import { Topology } from "../graph/topology.js";
import {
  abortSignal,
  type Check,
  check,
  checkOptions,
  checkRunId,
  flag,
  text,
} from "../options.js";
import type { Predicate } from "../state/predicates.js";
import { type Patch, State } from "../state/state.js";
import { checkAudit, type GraphConfig, resolveConfig, type Settings } from "./config.js";
import type { RunHandle } from "./handles/handle.js";
import { Handles } from "./handles/handles.js";
import { streamEvents, type ValuesEvent, valuesListener } from "./handles/stream.js";
import type { RecoveryPolicy } from "./position/continuation.js";
import { type RecoveryAttempt, Runner } from "./runner.js";
import { SavedGraph } from "./saved-graph.js";
import { checkNodeOptions, type NodeOptions, withOptions } from "./visit/attempts.js";

/** Options of {@link StateGraph.execute}. */
export interface ExecuteOptions {
  /** Who makes this call, and why: replaces the config's `audit` in the checkpoint events of this call. */
  readonly audit?: Audit | undefined;
  /** Cancels the run: immediately between nodes, through `ctx.signal` inside one. It can be resumed. */
  readonly signal?: AbortSignal | undefined;
}

/** Options of {@link StateGraph.resume}. */
export interface ResumeOptions extends ExecuteOptions, CheckpointAt {
  /**
   * The answer to the pause of a run. For several pauses, an object with a value for each name; those without a value
   * are asked for again.
   */
  readonly input?: unknown;
}

/** Options of {@link StateGraph.stream}. */
export interface StreamOptions extends ResumeOptions {
  /** Also yields a {@link ValuesEvent} after each node; `false` by default. */
  readonly values?: boolean | undefined;
}

/**
 * A graph of nodes that a State passes through. Its type collects the node names, so that a misspelt one in an edge is
 * a compile error.
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
  #graph: SavedGraph<D>;
  #runner: Runner<D>;
  #handles: Handles<D>;

  /** @throws ConfigError if a field is invalid; the message names it. */
  constructor(config: GraphConfig<D> = {}) {
    this.#graph = new SavedGraph(resolveConfig(config), new Topology<D>());
    this.#runner = new Runner(this.#graph);
    this.#handles = new Handles(this.#graph, this.#runner);
  }

  /**
   * @internal The same graph, saving each step in another store and keeping it: how it runs inside a
   * node or a worker.
   *
   * @param longestWait - the longest time that a run may wait in this process, in milliseconds; it pauses for longer
   *   waits.
   * @param more - further differences; without `claim`, whoever runs the graph holds the run. `nest` derives the
   *   listeners of its events from those of the graph.
   */
  static inside<D extends object, N extends string>(
    graph: StateGraph<D, N>,
    store: CheckpointStore,
    draining: AbortSignal,
    longestWait = Number.POSITIVE_INFINITY,
    more: Partial<Pick<Settings, "claim" | "audit" | "isInner">> & {
      nest?(own: EventBus): EventBus;
    } = {},
  ): StateGraph<D, N> {
    const inner = new StateGraph<D, N>();
    const { interval, bus } = graph.#graph.settings;
    const { nest, ...settings } = more;
    inner.#graph = graph.#graph.with({
      store,
      interval: Number.isFinite(interval) ? interval : 1,
      ...{ preserve: true, onSaveError: "fail", longestWait },
      claim: async () => undefined,
      bus: nest?.(bus) ?? bus,
      ...settings,
    });
    inner.#runner = new Runner(inner.#graph, draining);
    inner.#handles = new Handles(inner.#graph, inner.#runner);
    return inner;
  }

  /** @internal Lets a graph of tasks determine where a State continues, whatever node it was saved after. */
  static locateBy<D extends object, N extends string>(
    graph: StateGraph<D, N>,
    tasks: ReadonlyMap<string, readonly string[]>,
    locate: (state: State<D>) => string | undefined,
  ): void {
    graph.#graph.topology.tasks = tasks;
    graph.#graph.topology.locate = locate;
  }

  /** The graph's name. */
  get name(): string {
    return this.#graph.settings.name;
  }

  /** The schema version of the data, as configured. */
  get version(): number {
    return this.#graph.settings.version;
  }

  /** The graph as data: nodes, edges, phases, and checkpoint settings. */
  get topology(): GraphTopology {
    return this.#graph.description;
  }

  /** A hash of the nodes and edges. It is saved with each checkpoint, so that a resume detects a changed graph. */
  get fingerprint(): string {
    return this.#graph.topology.fingerprint;
  }

  /**
   * Adds a node.
   *
   * @throws GraphError if the name is empty or taken, or the node is not a function.
   * @throws ConfigError if an option is invalid.
   */
  addNode<K extends string, R extends AnyResult<D>, E extends AnyResult<D> = never>(
    name: K,
    node: NodeFunction<D, CheckedResult<D, R>>,
    options?: NodeOptions<D, CheckedResult<D, E>>,
  ): StateGraph<D, N | K>;
  addNode(
    name: string,
    node: NodeFunction<D>,
    options: NodeOptions<D> = {},
  ): StateGraph<D, string> {
    checkNodeOptions(name, options);
    const run: NodeFunction<D> =
      typeof node === "function" ? withOptions<D>(name, node, options) : node;
    this.#graph.topology.addNode(name, run, options);
    const describe = innerOf(node);
    if (describe !== undefined) setInner(run, describe);
    return this as unknown as StateGraph<D, string>;
  }

  /**
   * Adds an edge from one node to another, or to {@link END}. The edges of a node are tried in the order they were
   * added; the first whose predicate returns `true`, or that has none, is taken.
   *
   * @throws GraphError if there is no such node.
   */
  addEdge(from: N, to: N | typeof END, predicate?: Predicate<D>, name?: string): this {
    this.#graph.topology.addEdge(from, to, predicate, name);
    return this;
  }

  /**
   * Sets the node where a run starts.
   *
   * @throws GraphError if there is no such node, or an entry point is already set.
   */
  setEntryPoint(node: N): this {
    this.#graph.topology.setEntryPoint(node);
    return this;
  }

  /**
   * Adds a node where a run may end; there may be several. A run ends at an exit point even if it has edges.
   *
   * @throws GraphError if there is no such node.
   */
  setExitPoint(node: N): this {
    this.#graph.topology.setExitPoint(node);
    return this;
  }

  /**
   * Checks that the graph is complete and has the nodes that its config names, as `execute` and `resume` do.
   *
   * @throws GraphError listing every problem; its code is that of the first.
   */
  validate(): this {
    this.#graph.validate();
    return this;
  }

  /** Calls a handler for each event of a type, or of all types with `"*"`. */
  on<T extends EventType | "*">(type: T, handler: EventHandler<T>): this {
    this.#graph.settings.bus.on(type, handler);
    return this;
  }

  /** Removes a handler. */
  off<T extends EventType | "*">(type: T, handler: EventHandler<T>): this {
    this.#graph.settings.bus.off(type, handler);
    return this;
  }

  /**
   * Runs a State from the entry point to an exit point.
   *
   * @throws ExecutionError if a node fails, no edge matches, or the run is cancelled or exceeds `maxIterations`.
   * @throws CheckpointConflictError if the run is already in the store, or another writer takes it over.
   * @throws GraphError if the graph is incomplete, or the argument is not a State.
   * @throws ConfigError if an option is invalid.
   */
  async execute(state: State<D>, options: ExecuteOptions = {}): Promise<State<D>> {
    checkStart(state);
    return this.#for(options, executeOptions).run(state, options).result;
  }

  /**
   * Continues a run after its newest checkpoint, or after an older one; a checkpoint's id alone is enough. Returns a
   * run that has ended as it is. A paused run takes its `input` first.
   *
   * @throws CheckpointNotFoundError if the store has no such run or checkpoint.
   * @throws MigrationError if the checkpoint's version can't be migrated to this graph's.
   * @throws CheckpointCorruptionError if no checkpoint of the run is intact.
   * @throws GraphError if this graph no longer has the node that the run is at.
   * @throws ConfigError if an option or the input is invalid.
   * @throws ExecutionError, CheckpointConflictError as `execute` does.
   */
  async resume(
    run: string | { readonly checkpointId: string },
    options: ResumeOptions = {},
  ): Promise<State<D>> {
    if (typeof run === "object") {
      runReference("run", run);
      checkOptions("run", run, { checkpointId: text });
    }
    const runner = this.#for(options, resumeOptions);
    if (typeof run !== "object") return runner.run(run, options).result;
    const { checkpointId } = run;
    const runId = await this.#graph.runOf(checkpointId);
    return runner.run(runId, { ...options, checkpointId }).result;
  }

  /**
   * Continues a State's run if the store has it, and starts it if not. If all of its checkpoints are corrupt it starts
   * over and emits a `checkpoint.warning`.
   *
   * @throws GraphError, ConfigError, MigrationError, ExecutionError, CheckpointConflictError as `execute`
   *   and `resume` do.
   */
  async resumeOrStart(state: State<D>, options: ExecuteOptions = {}): Promise<State<D>> {
    checkStart(state);
    return this.#for(options, executeOptions).resumeOrStart(state, options).result;
  }

  /**
   * Starts a State's run, or resumes the run with an id, in the background of this process. The handle's `result`
   * resolves to what `execute` or `resume` would return.
   *
   * @throws GraphError if the graph is incomplete, or the argument is not a State.
   * @throws ConfigError if an option is invalid.
   * @throws CheckpointNotFoundError, CheckpointCorruptionError, MigrationError, SchemaError from the handle's methods, as
   *   `execute` and `resume` do.
   *
   * @example
   * ```ts
   * import { State, StateGraph } from "waymark";
   *
   * const graph = new StateGraph<{ n: number }>()
   *   .addNode("one", () => ({ n: 1 }))
   *   .setEntryPoint("one")
   *   .setExitPoint("one");
   * const run = graph.start(State.create({ n: 0 }, { runId: "monday" }));
   * console.log(graph.attach("monday") === run, (await run.result()).data.n); // true 1
   * ```
   */
  start(run: State<D> | string, options: ResumeOptions = {}): RunHandle<D> {
    if (typeof run !== "string") checkStart(run);
    const session = this.#for(options, checksOf(run)).run(run, options);
    return this.#handles.add(session, run instanceof State ? "checkpoint.save" : "graph.start");
  }

  /**
   * Returns the handle of a run: the same one for a run of this process; for any other, one that follows the run
   * through the store and, if the graph has the `eventLog` that the run is written to, through that.
   *
   * @throws ConfigError if the run id is invalid.
   * @throws CheckpointNotFoundError, CheckpointCorruptionError, GraphError, MigrationError, SchemaError
   *   from the handle's methods, as `resume` does.
   */
  attach(runId: string): RunHandle<D> {
    return this.#handles.attach(checkRunId(runId));
  }

  /**
   * Answers a pause of a run by its name. An answer that arrives before its pause is kept for it, up to 100 per run;
   * the answer to an open pause is kept until the run is resumed. It is saved when the promise resolves.
   *
   * @throws CheckpointNotFoundError if the store has no such run.
   * @throws CheckpointConflictError if another process works on the run.
   * @throws PauseTimeoutError if the pause has timed out.
   * @throws SerializationError if a checkpoint can't hold the value.
   * @throws ConfigError if an argument is invalid, the run has completed, or it has too many unused answers.
   */
  async answer(runId: string, name: string, value: unknown): Promise<void> {
    await this.#runner.answer(runId, name, value);
  }

  /**
   * Starts a State's run, or continues the run with an id, and yields its events one by one. The run waits for a slow
   * reader, and is cancelled when the reader leaves; it can be resumed. The stream's return value is the State that
   * `execute` or `resume` would return. With `values: true` the keys that a node changed follow its `node.complete`.
   *
   * @throws GraphError, ConfigError immediately; while it is read, the errors of `execute` or `resume`.
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
    options: StreamOptions & { readonly values: true },
  ): AsyncGenerator<AnyEvent | ValuesEvent<D>, State<D>, undefined>;
  /** The same without the values. */
  stream(
    run: State<D> | string,
    options?: StreamOptions & { readonly values?: false | undefined },
  ): AsyncGenerator<AnyEvent, State<D>, undefined>;
  stream(
    run: State<D> | string,
    options: StreamOptions = {},
  ): AsyncGenerator<AnyEvent | ValuesEvent<D>, State<D>, undefined> {
    if (typeof run === "object") checkStart(run);
    const { values, ...rest } = options;
    const runner = this.#for(options, { ...checksOf(run), values: flag });
    const runId = run instanceof State ? run.runId : checkRunId(run);
    return streamEvents<State<D>, ValuesEvent<D>>(
      this.#graph.settings.bus,
      runId,
      options.signal,
      (signal, gate, add) => {
        const onValues = values ? valuesListener<D>(add) : undefined;
        return runner.run(run, { ...rest, signal, gate, onValues }).result;
      },
    );
  }

  /** What runs a graph that is complete, for a call whose options are valid. */
  #for(options: ExecuteOptions, checks: Checks): Runner<D> {
    checkOptions("options", options, checks);
    this.#graph.validate();
    return this.#runner.for(options.audit);
  }

  /**
   * Stops the graph's runs in this process so that they can be resumed: running nodes finish and are saved, and no
   * others start. Each run ends with an ExecutionError with the code `ABORTED`. Resolves when all have stopped.
   *
   * @throws ConfigError if a node of one of these runs awaits it, which would wait for itself. Browsers and Bun can't
   * tell: it waits.
   */
  drain(): Promise<void> {
    return this.#runner.drain();
  }

  /**
   * @internal Tries to continue a run that its process left behind.
   *
   * @param claim - the claim of the recovering process.
   */
  async recover(
    runId: string,
    policy: RecoveryPolicy,
    signal: AbortSignal,
    claim?: Claim,
  ): Promise<RecoveryAttempt<D>> {
    this.#graph.validate();
    return this.#runner.under(claim).recover(runId, policy, { signal });
  }

  /**
   * The checkpoints of a run, newest first.
   *
   * @throws ConfigError if the run id is invalid.
   */
  history(runId: string): Promise<HistoryEntry[]> {
    return this.#graph.history(runId);
  }

  /**
   * Creates a new run from a checkpoint, with changes merged in, and saves it. The original stays as it is. The new run
   * is not started: `resume` it.
   *
   * @param at - a step, a checkpointId, or an object with one of them.
   * @throws CheckpointNotFoundError if there is no such checkpoint.
   * @throws SchemaError if the changes do not fit the graph's schema.
   * @throws GraphError, MigrationError, CheckpointCorruptionError as `resume` does.
   * @throws ConfigError if an argument is invalid.
   */
  async fork(
    runId: string,
    at: number | string | CheckpointAt,
    changes: Patch<D> = {},
  ): Promise<State<D>> {
    return this.#runner.fork(runId, toCheckpointAt(at), changes);
  }

  /**
   * Sets a run back to a checkpoint, by a new checkpoint with its data; the history stays. The run is not started:
   * `resume` it.
   *
   * @param at - a step, a checkpointId, or an object with one of them.
   * @throws CheckpointNotFoundError if there is no such checkpoint.
   * @throws CheckpointConflictError if a process works on the run.
   * @throws GraphError, MigrationError, SchemaError, CheckpointCorruptionError as `resume` does.
   * @throws ConfigError if an argument is invalid.
   */
  async rollback(runId: string, at: number | string | CheckpointAt): Promise<State<D>> {
    return this.#runner.rollback(runId, toCheckpointAt(at));
  }

  /**
   * Removes a run and its history from the store. Does nothing if there is no such run. Emits `checkpoint.delete`.
   *
   * @throws CheckpointConflictError if a process works on the run.
   * @throws ConfigError if an argument is invalid.
   *
   * @example
   * ```ts
   * import { MemoryStore, State, StateGraph } from "waymark";
   *
   * const store = new MemoryStore();
   * const graph = new StateGraph<{ n: number }>({ checkpoint: { store, interval: 1, preserve: true } })
   *   .addNode("one", () => ({ n: 1 }))
   *   .setEntryPoint("one")
   *   .setExitPoint("one")
   *   .on("checkpoint.delete", ({ runId, data }) => console.log(runId, data.actor)); // monday ada
   * await graph.execute(State.create({ n: 0 }, { runId: "monday" }));
   * await graph.delete("monday", { audit: { actor: "ada" } });
   * ```
   */
  async delete(runId: string, options: Pick<ExecuteOptions, "audit"> = {}): Promise<void> {
    checkRunId(runId);
    checkOptions("options", options, auditOptions);
    await this.#runner.for(options.audit).delete(runId);
  }

  /**
   * Removes old runs from the store, including those of other graphs, as its `prune` does. Emits `checkpoint.delete`
   * for each.
   *
   * @returns the ids of the runs that were removed, or would be.
   * @throws ConfigError if an argument is invalid, or the store can't prune.
   */
  async prune(
    retention: Retention,
    options: Pick<ExecuteOptions, "audit"> = {},
  ): Promise<string[]> {
    checkOptions("options", options, auditOptions);
    return this.#runner.for(options.audit).prune(retention);
  }

  /**
   * The graph as a Mermaid flowchart; with a State, also what is done and what comes next.
   *
   * @throws ConfigError if an option is invalid.
   * @throws GraphError if the State is at a node that this graph does not have.
   */
  toMermaid(options: { readonly state?: State<D> | undefined } = {}): string {
    checkOptions("options", options, { state: givenState });
    const { state } = options;
    const progress = state && { visits: state.visits, next: this.nextNode(state) };
    return toMermaid(this.topology, progress);
  }

  /**
   * Where a resume of this State would continue; `undefined` at an exit point, if the run has ended, or if no edge
   * matches.
   *
   * @throws GraphError if the State is at a node that this graph does not have.
   * @throws ConfigError if the argument is not a State.
   */
  nextNode(state: State<D>): string | undefined {
    givenState("state", state);
    return state.status === "completed" ? undefined : this.#graph.nextNode(state);
  }
}

/** A graph of any data. */
// biome-ignore lint/suspicious/noExplicitAny: a graph of one kind of data is not one of another
export type AnyGraph = StateGraph<any, any>;

function checkStart(state: unknown): void {
  if (state instanceof State) return;
  const problem = `the run must start from a State; got ${show(state)}: make one with State.create(data)`;
  throw new GraphError("GRAPH_STATE", problem);
}

const givenState = check("a State", (value) => value instanceof State);
const runReference = check("a run id or { checkpointId }", (value) => value !== null);
type Checks = Readonly<Record<string, Check>>;
const auditOptions: Checks = { audit: checkAudit };
const executeOptions: Checks = { ...auditOptions, signal: abortSignal };
// `checkAt` looks at the first two.
const resumeOptions: Checks = {
  ...executeOptions,
  ...{ step: () => {}, checkpointId: () => {}, input: () => {} },
};
const checksOf = (run: unknown): Checks => (run instanceof State ? executeOptions : resumeOptions);

function toCheckpointAt(at: number | string | CheckpointAt): CheckpointAt {
  if (typeof at === "number") return { step: at };
  if (typeof at === "string") return { checkpointId: at };
  const { step, checkpointId } = Object(at) as CheckpointAt;
  if (step !== undefined || checkpointId !== undefined) return { step, checkpointId };
  const problem = `must be a step, a checkpointId, or an object with one of them; got ${show(at)}`;
  throw new ConfigError("at", problem);
}
