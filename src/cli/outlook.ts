import type { RunReport } from "../report/record.js";
import type { State } from "../state/state.js";
import type { Context } from "./context.js";
import { waitsFor } from "./output/pauses.js";
import { newestOf } from "./store/find.js";
import type { Living } from "./store/living.js";
import type { OpenStore } from "./store/open.js";

/** What can be said of how a run goes on. */
export interface Outlook {
  /** Whether a process works on it; `null` where that can't be seen. */
  readonly live: boolean | null;
  /** What it waits for. */
  readonly waitsFor: readonly string[];
  /** The node that is next, as far as the graph can tell. */
  readonly next: string | undefined;
  /** The command that goes on with it; `undefined` when there is nothing to do. */
  readonly goOn: string | undefined;
}

/** How a run goes on. */
export async function outlook(
  context: Context,
  opened: OpenStore,
  { runId, status, graph, nextStep }: RunReport,
  isLiving: Living,
): Promise<Outlook> {
  const state = await newestOf(opened, runId);
  const isOver = state === undefined || status === "completed";
  if (isOver) return { live: false, waitsFor: [], next: undefined, goOn: undefined };
  const isAtWork = status === "in_progress" || status === "pending";
  const live = isAtWork ? (isLiving(runId) ?? null) : false;
  const waits = waitsFor((await context.redaction()).state(state));
  const isKnown = nextStep !== undefined || !isAtWork;
  const input = state.pauses.some(({ ask }) => ask !== undefined) ? ["--input", "JSON"] : [];
  return {
    live,
    waitsFor: waits,
    next: isKnown ? undefined : await nextNode(context, graph, state),
    goOn:
      live === true ? context.command("watch", runId) : context.command("resume", runId, ...input),
  };
}

/** The node that a graph of the config would go on with; `undefined` where it can't be asked. */
async function nextNode(
  context: Context,
  name: string,
  state: State<object>,
): Promise<string | undefined> {
  const { graphs } = await context.config();
  if (graphs === undefined) return undefined;
  try {
    const { readDiagram } = await import("./draw/diagram.js");
    const graph = await context.graph(name);
    return readDiagram(graph.toMermaid({ state })).nodes.find(({ mark }) => mark === "next")?.name;
  } catch {
    // What only looks at a run does without its graph.
    return undefined;
  }
}
