import { ConfigError, GraphError, show } from "../errors.js";
import type { NodeFunction, RetryPolicy } from "../graph/node.js";
import { callable, check, checkOptions, strings, text, timeLimit } from "../options.js";
import type { GraphConfig } from "../run/config.js";
import { checkRetry } from "../run/visit/attempts.js";
import { isPlainObject } from "../state/shape.js";
import { State } from "../state/state.js";
import type { ItemContext } from "./items.js";
import { isFactoryNode } from "./once-per-node.js";
import { Queue } from "./pool.js";

/** Produces the result of a task. The results of the tasks it depends on are in the data. */
export type TaskFunction<D extends object, R> = (
  state: State<D>,
  context: ItemContext<D>,
) => R | Promise<R>;

/** How a task of a {@link dag} runs. */
export interface TaskOptions {
  /** Tries the task again when it fails; the dag's `retry` by default. */
  readonly retry?: RetryPolicy;
  /** Milliseconds an attempt may take; the dag's `timeout` by default. */
  readonly timeout?: number;
  /** The phase the task belongs to: it is in the task's events, and is the layer's phase if its tasks have no other. */
  readonly phase?: string;
}

/** A task after its checks, with defaults filled in. */
export interface Task<D extends object> extends TaskOptions {
  readonly dependsOn: readonly string[];
  readonly run: TaskFunction<D, unknown>;
}

interface GivenTask<D extends object> extends Task<D> {
  readonly node: NodeFunction<D>;
}

/** Checks a given task; a node becomes a function that returns the task's result. */
export function toTask<D extends object>(
  name: string,
  given: unknown,
  { reducers }: GraphConfig<D>,
): Task<D> {
  const task = (typeof given === "function" ? { run: given } : (given ?? {})) as Partial<
    GivenTask<D>
  >;
  const { run, node, dependsOn = [], ...options } = task;
  if (typeof (node ?? run) !== "function") {
    const got: unknown = typeof given === "object" ? (node ?? run) : given;
    const problem = `task ${show(name)} must be a function, or have one as run or node; got ${show(got)}`;
    throw new GraphError("GRAPH_NODE_FUNCTION", problem);
  }
  checkOptions(`tasks.${name}`, task, {
    dependsOn: names,
    run: callable,
    node: callable,
    retry: checkRetry,
    timeout: timeLimit,
    phase: text,
  });
  if (run !== undefined && (node !== undefined || isFactoryNode(run))) {
    const problem = node === undefined ? "is a node: declare it as { node }" : "is not for a node";
    throw new ConfigError(`tasks.${name}.run`, problem);
  }
  const isReduced = Object.hasOwn(reducers ?? {}, name);
  const work =
    node === undefined ? (run as TaskFunction<D, unknown>) : taskOf(name, node, isReduced);
  return { ...options, run: work, dependsOn: [...new Set(dependsOn)] };
}

const names = check("an array of task names", (value) => strings.accepts(value));

/**
 * A node as the task of a dag: the task's result is the value that the node sets the task's key to.
 *
 * @param isReduced - whether the key has a reducer, which takes an update and not the whole value.
 */
function taskOf<D extends object>(
  key: string,
  node: NodeFunction<D>,
  isReduced: boolean,
): TaskFunction<D, unknown> {
  const refuse = (problem: string): never => {
    throw new ConfigError(`tasks.${key}.node`, problem);
  };
  return async (state, context) => {
    const returned: unknown = await node(state, context);
    if (returned instanceof State && isReduced) {
      refuse(
        `must return an object such as { ${show(key)}: … }, as its key has a reducer; got a State`,
      );
    }
    const change: unknown = returned instanceof State ? returned.data : returned;
    if (!isPlainObject(change)) {
      return refuse(`must return a State or a plain object to merge; got ${show(returned)}`);
    }
    const before: object = state.data;
    for (const other of Object.keys(change)) {
      if (other !== key && change[other] !== Reflect.get(before, other)) {
        refuse(`must change no key but ${show(key)}; it changed ${show(other)}`);
      }
    }
    return Object.hasOwn(change, key) ? change[key] : Reflect.get(before, key);
  };
}

/**
 * The tasks, by name with their dependencies, in layers: each layer depends only on those before it.
 *
 * @throws GraphError if tasks depend on each other in a cycle, which it shows, or on something that is not a task.
 */
export function layersOf(tasks: ReadonlyMap<string, readonly string[]>): string[][] {
  const names = [...tasks.keys()];
  const indexes = new Map(names.map((name, index) => [name, index]));
  const indexOf = (need: string, name: string): number => {
    const index = indexes.get(need);
    if (index !== undefined) return index;
    const known = names.map(show).join(", ");
    const problem = `task ${show(name)} depends on ${show(need)}, which is not a task; the tasks are: ${known}`;
    throw new GraphError("GRAPH_NODE_UNKNOWN", problem);
  };
  const needs = [...tasks].map(([name, dependsOn]) => dependsOn.map((need) => indexOf(need, name)));
  const queue = new Queue(
    needs.map(() => false),
    (index) => needs[index] ?? [],
  );
  const layers: string[][] = [];
  for (let layer = queue.takeAll(); layer.length > 0; layer = queue.takeAll()) {
    layers.push(layer.map((index) => names[index] as string));
    for (const index of layer) queue.done(index);
  }
  const done = new Set(layers.flat());
  if (done.size === names.length) return layers;
  const problem = `tasks depend on each other in a cycle: ${cycleIn(tasks, (name) => !done.has(name))}`;
  throw new GraphError("GRAPH_CYCLE", problem);
}

/** A cycle among the tasks that are in no layer, as `a → b → a`. */
function cycleIn(
  tasks: ReadonlyMap<string, readonly string[]>,
  isOpen: (name: string) => boolean,
): string {
  const path: string[] = [];
  let name = [...tasks.keys()].find(isOpen);
  while (name !== undefined && !path.includes(name)) {
    path.push(name);
    name = tasks.get(name)?.find(isOpen);
  }
  return [...path.slice(path.indexOf(name ?? "")), name].join(" → ");
}
