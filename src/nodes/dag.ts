import type { NodeFunction, RetryPolicy, Saves } from "../graph/node.js";
import { checkOptions, integer, object, oneOf, timeLimit } from "../options.js";
import type { GraphConfig } from "../run/config.js";
import { ASKED, askersOf, PauseRequested } from "../run/pauses/pauses.js";
import { StateGraph } from "../run/state-graph.js";
import { checkRetry } from "../run/visit/attempts.js";
import type { RunContext } from "../run/visit/context.js";
import { progressOf } from "../state/derive.js";
import { freezeCopy } from "../state/freeze-copy.js";
import type { Immutable } from "../state/immutable.js";
import type { PauseRequest } from "../state/pauses.js";
import { setKey } from "../state/shape.js";
import { type Patch, recordOf, type State, sinkOf, stateOf } from "../state/state.js";
import { checkSaves } from "./items.js";
import { oncePerNode } from "./once-per-node.js";
import { Pool, type PoolOptions } from "./pool.js";
import { layersOf, type Task, type TaskFunction, type TaskOptions, toTask } from "./task.js";

/** A task of a {@link dag}. */
export interface DagTask<D extends object, R, Needs = keyof D & string> extends TaskOptions {
  /** The tasks that must be done first. */
  readonly dependsOn?: readonly Needs[];
  /** Produces the task's result: a function, or {@link map}. */
  readonly run: TaskFunction<D, R>;
  /** Only for a task that is a node. */
  readonly node?: undefined;
}

/**
 * A task of a {@link dag} that is a node, such as a {@link subgraph}; its result is the value it sets its own
 * key to.
 */
export interface DagNodeTask<D extends object, Needs = keyof D & string> extends TaskOptions {
  /** The tasks that must be done first. */
  readonly dependsOn?: readonly Needs[];
  /** The node. It may change only the key that is the task's name: any other is an error when it runs. */
  readonly node: NodeFunction<D>;
  /** Only for a task that is not a node. */
  readonly run?: undefined;
}

/** Tasks by the key of the data that holds their result; a function is a task without dependencies. */
export type DagTasks<D extends object> = {
  readonly [K in keyof D & string]?:
    | DagTask<D, D[K] | Immutable<D[K]>>
    | DagNodeTask<D>
    | TaskFunction<D, D[K] | Immutable<D[K]>>;
};

/** The data that a task sees: keys that no task sets, and the results of the tasks it depends on. */
type VisibleTo<D extends object, Tasks, Needs> = Omit<D, Tasks & PropertyKey> &
  Required<Pick<D, (unknown extends Needs ? never : Needs) & keyof D>>;

/**
 * Tasks that see only what they depend on: `T` has, by task, the names it depends on. A task that is a node also sees
 * its own key, the only one that it may change.
 */
export type CheckedTasks<D extends object, T> = {
  readonly [K in keyof T]: K extends keyof D
    ?
        | DagTask<VisibleTo<D, keyof T, T[K]>, D[K] | Immutable<D[K]>, T[K] & keyof T>
        | DagNodeTask<VisibleTo<D, keyof T, T[K]> & Pick<D, K>, T[K] & keyof T>
        | TaskFunction<VisibleTo<D, keyof T, T[K]>, D[K] | Immutable<D[K]>>
    : `"${K & string}" is not a key of the data`;
};

/** Makes a {@link dag} of tasks that see only what they depend on. */
export type CheckedDag<D extends object> = <const T>(
  tasks: CheckedTasks<D, T>,
  options?: DagOptions<D>,
) => StateGraph<D, string>;

/** Options of {@link dag}: those of a graph, and how its tasks run. */
export interface DagOptions<D extends object = object> extends GraphConfig<D> {
  /** How many tasks to run at once; see {@link parallel}. */
  readonly concurrency?: number;
  /** Milliseconds one attempt at a task may take; no limit by default. A task's own setting takes precedence. */
  readonly timeout?: number;
  /** Retries a failed task; no retries by default. A task's own setting takes precedence. */
  readonly retry?: RetryPolicy;
  /**
   * When results are saved: `"layer"`, the default, once per layer; `"item"` as they come in, the default with
   * `schedule: "eager"`; a number *n*, after every *n* results. A layer that fails keeps its results in any
   * case.
   */
  readonly saves?: Saves;
  /**
   * When a task starts: `"layers"`, the default, once all tasks of the layers before it are done; `"eager"` as soon
   * as those it depends on are.
   */
  readonly schedule?: "layers" | "eager";
}

/** The node of a dag that starts each task as soon as it can. */
const EAGER = "tasks";

/**
 * Builds a graph from tasks and their dependencies. Tasks whose dependencies are done form a layer: a node,
 * `layer 1` and so on, that runs them in parallel. The result of each task is in the data under its name.
 *
 * A task whose result is saved is done, however the dag changes: on a resume, added tasks run, removed tasks
 * don't, and the others wait for their current dependencies.
 *
 * A task may be a node: `{ node: subgraph(…) }`. Its result is the value that the node sets the task's key to.
 *
 * Called with only a type argument, `dag<D>()`, it checks that a task reads only what it depends on.
 *
 * @throws GraphError if tasks depend on each other in a cycle, which it shows, or on something that is not a
 * task.
 * @throws ConfigError if an option is invalid.
 *
 * @example
 * ```ts
 * import { dag, State } from "waymark";
 *
 * const graph = dag<{ a: number; b: number; sum: number }>()({
 *   a: () => 1,
 *   b: { run: async () => 2, retry: { maxAttempts: 3 } },
 *   sum: { dependsOn: ["a", "b"], run: ({ data }) => data.a + data.b },
 * });
 *
 * const final = await graph.execute(State.create({ a: 0, b: 0, sum: 0 }));
 * console.log(final.data.sum, final.checkpointNode); // 3 layer 2
 * ```
 */
export function dag<D extends object>(): CheckedDag<D>;
/**
 * The same in a single call; its tasks see all of the data.
 *
 * @throws GraphError if tasks depend on each other in a cycle, which it shows, or on something that is not a
 * task.
 * @throws ConfigError if an option is invalid.
 */
export function dag<D extends object>(
  tasks: DagTasks<D>,
  options?: DagOptions<D>,
): StateGraph<D, string>;
/**
 * Implements both overloads.
 *
 * @throws GraphError, ConfigError as above.
 */
export function dag<D extends object>(
  ...given: readonly (DagTasks<D> | DagOptions<D> | undefined)[]
): StateGraph<D, string> | CheckedDag<D> {
  const [tasks, options] = given as [DagTasks<D>, DagOptions<D>?];
  return given.length > 0
    ? build<D>(tasks, options)
    : (checked, more) => build<D>(checked as unknown as DagTasks<D>, more);
}

function build<D extends object>(
  tasks: DagTasks<D>,
  options: DagOptions<D> = {},
): StateGraph<D, string> {
  object("tasks", tasks);
  object("options", options);
  const { concurrency, timeout, retry, saves, schedule = "layers", ...config } = options;
  checkOptions("options", { concurrency, timeout, retry, saves, schedule }, optionChecks);
  const byName = new Map(
    Object.entries(tasks).map(([name, task]) => [name, toTask(name, task, config)]),
  );
  const dependencies = new Map([...byName].map(([name, { dependsOn }]) => [name, dependsOn]));
  const layers = layersOf(dependencies);
  const isEager = schedule === "eager" && layers.length > 0;
  const how: TaskPool<D> = {
    concurrency,
    saves: saves ?? (isEager ? "item" : "layer"),
    options: (task) => ({ timeout, retry, ...byName.get(task) }),
  };
  // A dag can't loop, and one that was changed may run some of its layers again.
  const graph = new StateGraph<D, string>({ maxIterations: Number.POSITIVE_INFINITY, ...config });
  const nodes = isEager
    ? [{ name: EAGER, tasks: layers.flat() }]
    : layers.map((layer, index) => ({ name: `layer ${index + 1}`, tasks: layer }));
  for (const [index, { name, tasks: layer }] of nodes.entries()) {
    // The phase of its tasks or, if they differ, all of them.
    const phases = new Set(layer.flatMap((task) => byName.get(task)?.phase ?? []));
    const phase = phases.size === 0 ? {} : { phase: [...phases].join(", ") };
    graph.addNode(name, layerNode(layer, byName, how), phase);
    const before = nodes[index - 1];
    if (before === undefined) graph.setEntryPoint(name);
    else graph.addEdge(before.name, name);
  }
  const last = nodes.at(-1);
  if (last !== undefined) graph.setExitPoint(last.name);
  StateGraph.locateBy(graph, dependencies, (state) => {
    // A result that was saved in the middle of a layer is not in the data yet, so its task is not among these.
    const done = new Set(progressOf(state).tasks);
    return nodes.find(({ tasks: layer }) => layer.some((task) => !done.has(task)))?.name;
  });
  return graph.validate();
}

const optionChecks = {
  concurrency: integer(1, true),
  timeout: timeLimit,
  retry: checkRetry,
  saves: checkSaves,
  schedule: oneOf("layers", "eager"),
};

/** How the tasks of a dag run. */
type TaskPool<D extends object> = Pick<
  PoolOptions<D, string, unknown>,
  "concurrency" | "saves" | "options"
>;

/** A node that runs its unfinished tasks, each after those it depends on. */
function layerNode<D extends object>(
  layer: readonly string[],
  tasks: ReadonlyMap<string, Task<D>>,
  how: TaskPool<D>,
): NodeFunction<D> {
  return oncePerNode<D>("dag", async (state, context) => {
    const done = new Set(context.tasks);
    const list = layer.filter((task) => !done.has(task));
    const at = new Map(list.map((task, index) => [task, index]));
    const results: Record<string, unknown> = {};
    const pool = new Pool<D, string, unknown>(context, list, {
      ...how,
      worker: async (task, scope) => {
        const seen = pickAncestors(task, tasks, results);
        try {
          const result = await tasks.get(task)?.run(withResults(state, seen, context), scope);
          // Other tasks see it, so it must not change any more.
          const kept: unknown = freezeCopy(result);
          setKey(results, task, kept);
          return kept;
        } catch (error) {
          if (error instanceof PauseRequested) noteAsker(context, task, error.requests);
          throw error;
        }
      },
      names: list,
      needs: (task) => (tasks.get(task)?.dependsOn ?? []).flatMap((need) => at.get(need) ?? []),
    });
    // Saved in the middle of a layer; the task may have been in a different layer then.
    for (const [task, result] of pool.before) if (tasks.has(task)) setKey(results, task, result);
    await pool.run();
    context.completeTasks(Object.keys(results));
    return results as Patch<D>;
  });
}

/** Remembers which task asked for a pause: once the task is removed, nothing waits for the answer. */
function noteAsker<D extends object>(
  context: RunContext<D>,
  task: string,
  requests: readonly PauseRequest[],
): void {
  const asked = askersOf(context.recall(ASKED));
  // The other requests are from earlier tasks.
  for (const { name } of requests) if (!asked.has(name)) asked.set(name, task);
  context.keep(ASKED, asked);
}

/** The results of the tasks that a task depends on, directly or not. */
function pickAncestors<D extends object>(
  task: string,
  tasks: ReadonlyMap<string, Task<D>>,
  results: Readonly<Record<string, unknown>>,
): Record<string, unknown> {
  const picked: Record<string, unknown> = {};
  const seen = new Set([task]);
  for (const name of seen) {
    for (const need of tasks.get(name)?.dependsOn ?? []) seen.add(need);
    if (Object.hasOwn(results, name)) setKey(picked, name, results[name]);
  }
  return picked;
}

/**
 * A State with the results of tasks merged in, as the node does when it is done. It emits nothing: listeners would
 * get each event twice.
 */
function withResults<D extends object>(
  state: State<D>,
  results: Readonly<Record<string, unknown>>,
  context: RunContext<D>,
): State<D> {
  if (Object.keys(results).length === 0) return state;
  const silent = stateOf<D>(recordOf(state));
  return stateOf(recordOf(context.change(silent, results as Patch<D>)), sinkOf(state));
}
