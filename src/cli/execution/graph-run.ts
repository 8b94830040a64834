import type { RunSummary } from "../../checkpoint/store.js";
import { claimOf } from "../../run/loop/control.js";
import type { AnyGraph } from "../../run/state-graph.js";
import { StateGraph } from "../../run/state-graph.js";
import type { Context } from "../context.js";
import { CommandError, exit, missing, problem } from "../exit.js";
import { findRun, type NamedRun } from "../store/find.js";
import type { OpenStore } from "../store/open.js";

/** A run and the graph that works on it. */
export interface GraphRun extends NamedRun {
  readonly graph: AnyGraph;
}

/** The graph, saving in the store that was named; in its own if none was. */
export async function inStore(context: Context, graph: AnyGraph): Promise<AnyGraph> {
  if (!(await context.isStoreGiven())) return graph;
  const { store } = await context.store("write");
  const never = new AbortController().signal;
  return StateGraph.inside(graph, store, never, Number.POSITIVE_INFINITY, { claim: claimOf });
}

/**
 * A run, with the graph that --graph or its checkpoints name.
 *
 * @throws CommandError if either is missing.
 */
export async function findGraphRun(
  context: Context,
  given: string,
  graphName: string | undefined,
): Promise<GraphRun> {
  const isGiven = await context.isStoreGiven();
  const opened = await context.store(isGiven ? "write" : "read");
  try {
    const named = await findRun(opened, given);
    const name = graphName ?? (await graphOf(opened, named.runId));
    if (name === "") throw missing(`run ${named.runId} names no graph`, "--graph NAME does");
    return { ...named, graph: await inStore(context, await context.graph(name)) };
  } catch (error) {
    const isMissing = error instanceof CommandError && error.exitCode === exit.notFound;
    if (!isMissing || isGiven) throw error;
    // The graph may have a store of its own, which only it knows.
    const graph = await onlyGraph(context, graphName);
    const history = await graph?.history(given).catch(() => []);
    if (graph === undefined || history === undefined || history.length === 0) throw error;
    return { graph, runId: given, at: {} };
  }
}

/** The name of a run's graph, from the listing if the store has one; `""` for none. */
async function graphOf({ store }: OpenStore, runId: string): Promise<string> {
  const isOne = (run: RunSummary): boolean => run.runId === runId;
  const listed = (await store.runs?.({ runId }))?.find(isOne)?.graph;
  return listed ?? (await store.load(runId)).graph?.name ?? "";
}

async function onlyGraph(
  context: Context,
  name: string | undefined,
): Promise<AnyGraph | undefined> {
  const names = Object.keys((await context.config()).graphs ?? {});
  const only = name ?? (names.length === 1 ? names[0] : undefined);
  return only === undefined ? undefined : context.graph(only);
}

/**
 * Rejects a run that a process is working on.
 *
 * @throws CommandError that names the process.
 */
export async function checkFree(context: Context, opened: OpenStore, runId: string): Promise<void> {
  const holder = await opened.store.holder?.(runId);
  if (holder === undefined) return;
  const { host, pid } = holder;
  throw problem(
    `process ${pid}${host && ` on ${host}`} is working on run ${runId}`,
    `${context.command("watch", runId)} follows it; stop it first`,
  );
}
