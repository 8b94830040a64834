import type { RunReport } from "../report/record.js";
import { isUnderWay } from "../state/record.js";
import type { State } from "../state/state.js";
import type { Context } from "./context.js";
import { waitsFor } from "./output/pauses.js";

/** How a run continues. */
export interface NextAction {
  /** Whether a process is working on it; `null` if the store can't tell. */
  readonly live: boolean | null;
  /** What it waits for. */
  readonly waitsFor: readonly string[];
  /** The node that runs next; `undefined` if there is none, or it is unknown. */
  readonly node: string | undefined;
  /** The command that continues or follows it; `undefined` if there is nothing to do. */
  readonly command: string | undefined;
}

const over: NextAction = { live: false, waitsFor: [], node: undefined, command: undefined };

/**
 * How a run continues.
 *
 * @param state - its newest State; `undefined` if its checkpoints are gone.
 * @param live - whether a process was working on it just before the State was loaded.
 */
export async function nextAction(
  context: Context,
  state: State<object> | undefined,
  live: boolean | null,
  { nextStep }: Pick<RunReport, "nextStep">,
): Promise<NextAction> {
  if (state === undefined || state.status === "completed") return over;
  const { runId, status, pauses } = state;
  const isAtWork = isUnderWay(status);
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

/** Where the config's graph would continue the run; `undefined` if there is no such graph. */
async function askGraph(context: Context, state: State<object>): Promise<string | undefined> {
  try {
    const { graphs } = await context.config();
    if (graphs === undefined || state.graph === undefined) return undefined;
    return (await context.graph(state.graph.name)).nextNode(state);
  } catch {
    // A command that only displays a run works without its graph.
    return undefined;
  }
}
