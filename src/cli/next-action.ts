import type { RunReport } from "../report/record.js";
import type { State } from "../state/state.js";
import type { Context } from "./context.js";
import { waitsFor } from "./output/pauses.js";

/** How a run continues. */
export interface NextAction {
  /** Whether a process works on it; `null` if the store can't say. */
  readonly live: boolean | null;
  /** What it waits for. */
  readonly waitsFor: readonly string[];
  /** The node that runs next; `undefined` if none does, or nobody knows. */
  readonly node: string | undefined;
  /** The command that continues or follows it; `undefined` when there is nothing to do. */
  readonly command: string | undefined;
}

const over: NextAction = { live: false, waitsFor: [], node: undefined, command: undefined };

/**
 * How a run continues.
 *
 * @param state - its newest State; `undefined` if its checkpoints are gone.
 * @param live - whether a process worked on it before that was loaded.
 */
export async function nextAction(
  context: Context,
  state: State<object> | undefined,
  live: boolean | null,
  { nextStep }: Pick<RunReport, "nextStep">,
): Promise<NextAction> {
  if (state === undefined || state.status === "completed") return over;
  const { runId, status, pauses } = state;
  const isAtWork = status === "in_progress" || status === "pending";
  const input = pauses.some(({ ask }) => ask !== undefined) ? ["--input", "JSON"] : [];
  return {
    live: isAtWork && live,
    waitsFor: waitsFor((await context.redaction()).state(state)),
    node: state.nextNode ?? nextStep ?? (await askGraph(context, state)),
    command:
      isAtWork && live === true
        ? context.command("watch", runId)
        : context.command("resume", runId, ...input),
  };
}

/** Where a graph of the config would continue; `undefined` if it can't be asked. */
async function askGraph(context: Context, state: State<object>): Promise<string | undefined> {
  try {
    const { graphs } = await context.config();
    if (graphs === undefined || state.graph === undefined) return undefined;
    return (await context.graph(state.graph.name)).nextNode(state);
  } catch {
    // A command that only looks at a run works without its graph.
    return undefined;
  }
}
