import { StateGraph } from "../../run/state-graph.js";
import type { AnyGraph } from "../config/graphs.js";
import type { Context } from "../context.js";
import { CommandError, exit, missing, problem } from "../exit.js";
import { findRun, newestOf } from "../store/find.js";
import { livingIn } from "../store/living.js";
import type { OpenStore } from "../store/open.js";

/** A run and the graph that works on it. */
export interface GraphRun {
  readonly graph: AnyGraph;
  readonly runId: string;
}

/** The graph, saving in the store that was asked for; in its own where none was. */
export async function inStore(context: Context, graph: AnyGraph): Promise<AnyGraph> {
  if (!(await context.isStoreGiven())) return graph;
  const { store } = await context.store("write");
  return StateGraph.inside(graph, store, new AbortController().signal);
}

/**
 * A run, and the graph that its checkpoints name or that was asked for.
 *
 * @throws CommandError when one of them is not there, or a living process works on the run.
 */
export async function findGraphRun(
  context: Context,
  given: string,
  graphName: string | undefined,
): Promise<GraphRun> {
  const isGiven = await context.isStoreGiven();
  const opened = await context.store(isGiven ? "write" : "read");
  try {
    const runId = await findRun(opened, given);
    await checkFree(context, opened, runId);
    const emit = (type: string, data: object): void => {
      if (type === "checkpoint.quarantine") context.print.note(quarantineText(data));
    };
    const named = graphName ?? (await newestOf(opened, runId, emit))?.graph?.name ?? "";
    if (named === "") throw missing(`run ${runId} has no graph`, "name it: --graph NAME");
    return { runId, graph: await inStore(context, await context.graph(named)) };
  } catch (error) {
    const isMissing = error instanceof CommandError && error.exitCode === exit.notFound;
    if (!isMissing || isGiven) throw error;
    // The graph may have a store of its own, which only it knows.
    const graph = await onlyGraph(context, graphName);
    const history = await graph?.history(given).catch(() => []);
    if (graph === undefined || history === undefined || history.length === 0) throw error;
    return { graph, runId: given };
  }
}

/** Tells where a corrupt checkpoint is now. */
export function quarantineText(data: object): string {
  return `a corrupt checkpoint was moved to ${String(Reflect.get(data, "file"))}`;
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
 * Refuses a run that a living process works on: of two that go on with it one would lose.
 *
 * @throws CommandError
 */
export async function checkFree(context: Context, opened: OpenStore, runId: string): Promise<void> {
  const { store, address } = opened;
  const isByFiles = address !== undefined && "root" in address;
  const isBusy = isByFiles
    ? (await livingIn(opened))(runId) === true
    : await isClaimed(store, runId);
  if (!isBusy) return;
  // A database can't see that a process has died.
  const wait = isByFiles ? "" : "; the claim of one that died ends by itself, within 30 s";
  throw problem(
    `a living process works on run ${runId}`,
    `see it: ${context.command("watch", runId)}; stop it first${wait}`,
  );
}

async function isClaimed(store: OpenStore["store"], runId: string): Promise<boolean> {
  if (store.claim === undefined) return false;
  const claim = await store.claim(runId);
  await claim?.release();
  return claim === undefined;
}
