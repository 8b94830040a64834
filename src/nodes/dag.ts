import type { Immutable } from "immer";
import { GraphError, show } from "../errors.js";
import { check } from "../options.js";
import type { RetryPolicy } from "../run/attempts.js";
import type { GraphConfig } from "../run/config.js";
import { StateGraph } from "../run/state-graph.js";
import type { Patch, State } from "../state/state.js";
import { shortened } from "./names.js";
import { parallel } from "./parallel.js";
import type { ItemContext } from "./scope.js";

/** A task of a {@link dag}. */
export interface DagTask<D extends object, R> {
  /** The tasks whose results must be there first. */
  readonly dependsOn?: readonly (keyof D & string)[];
  /** Makes the task's result. The results of the tasks it depends on are in the data. */
  readonly run: (state: State<D>, context: ItemContext<D>) => R | Promise<R>;
}

/** Tasks by the key of the data that their result becomes. */
export type DagTasks<D extends object> = {
  readonly [K in keyof D & string]?: DagTask<D, D[K] | Immutable<D[K]>>;
};

/** Options of {@link dag}: those of a graph, and how each layer runs. */
export interface DagOptions extends GraphConfig {
  /** How many tasks to run at once; see {@link ParallelOptions.concurrency}. */
  readonly concurrency?: number;
  /** Milliseconds one task may take; no limit by default. */
  readonly timeout?: number;
  /** Tries a layer again whose tasks failed; those that are done stay. */
  readonly retry?: RetryPolicy;
}

const isObject = check(
  "an object",
  (value) => typeof value === "object" && value !== null && !Array.isArray(value),
);

const names = check(
  "an array of names of tasks",
  (value) => Array.isArray(value) && value.every((name) => typeof name === "string"),
);

/** How long the name of a layer may be. */
const MAX_NAME = 80;

/**
 * A graph out of tasks and what they depend on. Tasks that wait for nothing more are a layer: a node
 * that runs them in parallel, and one checkpoint. Within a layer too, a task that is done stays done.
 * The result of each task is in the data under its name.
 *
 * @throws GraphError when tasks depend on each other in a loop, which it shows, or on what is no task.
 * @throws ConfigError when an option is not what it must be.
 *
 * @example
 * ```ts
 * import { dag, State } from "waymark";
 *
 * const graph = dag<{ a: number; b: number; sum: number }>({
 *   a: { run: () => 1 },
 *   b: { run: async () => 2 },
 *   sum: { dependsOn: ["a", "b"], run: ({ data }) => data.a + data.b },
 * });
 *
 * const final = await graph.execute(State.create({ a: 0, b: 0, sum: 0 }));
 * console.log(final.data.sum, final.checkpointNode); // 3 2: sum
 * ```
 */
export function dag<D extends object>(
  tasks: DagTasks<D>,
  options: DagOptions = {},
): StateGraph<D, string> {
  isObject("tasks", tasks);
  isObject("options", options);
  const { concurrency, timeout, retry, ...config } = options;
  const byName = new Map<string, DagTask<D, unknown>>(Object.entries(tasks));
  const layers = layersOf(byName);
  const maxIterations = Math.max(1000, layers.length);
  const graph = new StateGraph<D, string>({ maxIterations, ...config });
  let previous: string | undefined;
  for (const [index, layer] of layers.entries()) {
    const name = shortened(`${index + 1}: ${layer.join(", ")}`, MAX_NAME);
    const node = parallel<D, string, unknown>(
      layer,
      (state, task, context) => byName.get(task)?.run(state, context),
      {
        concurrency,
        timeout,
        merge: (_state, results) =>
          Object.fromEntries(layer.map((task, at) => [task, results[at]])) as Patch<D>,
      },
    );
    graph.addNode(name, node, retry === undefined ? {} : { retry });
    if (previous === undefined) graph.setEntryPoint(name);
    else graph.addEdge(previous, name);
    previous = name;
  }
  if (previous !== undefined) graph.setExitPoint(previous);
  return graph.validate();
}

/** The tasks in layers: each layer waits for nothing but those before it. */
function layersOf<D extends object>(tasks: ReadonlyMap<string, DagTask<D, unknown>>): string[][] {
  const needs = new Map<string, Set<string>>();
  const neededBy = new Map<string, string[]>([...tasks.keys()].map((name) => [name, []]));
  for (const [name, task] of tasks) {
    if (typeof task?.run !== "function") {
      const problem = `task ${show(name)} wants a function, run, got ${show(task?.run)}`;
      throw new GraphError("GRAPH_NODE_FUNCTION", problem);
    }
    if (task.dependsOn !== undefined) names(`tasks.${name}.dependsOn`, task.dependsOn);
    needs.set(name, new Set(task.dependsOn));
    for (const need of new Set(task.dependsOn)) {
      const dependents = neededBy.get(need);
      if (dependents === undefined) {
        const known = [...tasks.keys()].map(show).join(", ");
        const problem = `task ${show(name)} depends on ${show(need)}, which is no task; the tasks are: ${known}`;
        throw new GraphError("GRAPH_NODE_UNKNOWN", problem);
      }
      dependents.push(name);
    }
  }
  const layers: string[][] = [];
  let layer = [...tasks.keys()].filter((name) => needs.get(name)?.size === 0);
  while (layer.length > 0) {
    layers.push(layer);
    const next: string[] = [];
    for (const done of layer) {
      for (const name of neededBy.get(done) ?? []) {
        const open = needs.get(name);
        open?.delete(done);
        if (open?.size === 0) next.push(name);
      }
      needs.delete(done);
    }
    layer = next;
  }
  if (needs.size > 0)
    throw new GraphError("GRAPH_CYCLE", `tasks wait for each other: ${loop(needs)}`);
  return layers;
}

/** Tasks that wait for each other, as `a → b → a`. */
function loop(needs: ReadonlyMap<string, ReadonlySet<string>>): string {
  const path: string[] = [];
  let [name] = needs.keys();
  while (name !== undefined && !path.includes(name)) {
    path.push(name);
    [name] = needs.get(name) ?? [];
  }
  return [...path.slice(path.indexOf(name ?? "")), name].join(" → ");
}
