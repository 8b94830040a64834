import { GraphError, show } from "../errors.js";

/** The dependencies of each task, in the order in which the tasks were given. */
export type Dependencies = ReadonlyMap<string, readonly string[]>;

/**
 * The tasks in layers: each layer depends only on those before it.
 *
 * @throws GraphError if tasks depend on each other in a cycle, which it shows, or on something that is not a task.
 */
export function layersOf(tasks: Dependencies): string[][] {
  const needs = new Map<string, Set<string>>();
  const neededBy = new Map<string, string[]>([...tasks.keys()].map((name) => [name, []]));
  for (const [name, dependsOn] of tasks) {
    needs.set(name, new Set(dependsOn));
    for (const need of new Set(dependsOn)) {
      const dependents = neededBy.get(need);
      if (dependents === undefined) {
        const known = [...tasks.keys()].map(show).join(", ");
        const problem = `task ${show(name)} depends on ${show(need)}, which is not a task; the tasks are: ${known}`;
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
    throw new GraphError("GRAPH_CYCLE", `tasks depend on each other in a cycle: ${loop(needs)}`);
  return layers;
}

/** A cycle among these tasks, as `a → b → a`. */
function loop(needs: ReadonlyMap<string, ReadonlySet<string>>): string {
  const path: string[] = [];
  let [name] = needs.keys();
  while (name !== undefined && !path.includes(name)) {
    path.push(name);
    [name] = needs.get(name) ?? [];
  }
  return [...path.slice(path.indexOf(name ?? "")), name].join(" → ");
}
