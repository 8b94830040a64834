import { isWaymarkError } from "../../errors.js";
import type { AnyEvent } from "../../events.js";
import { progressBar } from "../../observers/progress-bar.js";
import type { State } from "../../state/state.js";
import type { AnyGraph } from "../config/graphs.js";
import type { Context } from "../context.js";
import { CommandError, exit, problem } from "../exit.js";
import { stateJson } from "../output/state-json.js";
import { lookOf } from "../output/style.js";
import { toJson } from "../output/text.js";
import { Interrupts } from "./interrupts.js";

/** Works on a run until it ends; the signal cancels it. */
export type Work = (signal: AbortSignal) => Promise<State<object>>;

/**
 * Lets a graph work on a run: shows how far it is, stops it at Ctrl-C so that it can be resumed, and
 * says how it ended.
 */
export async function go(
  context: Context,
  graph: AnyGraph,
  runId: string,
  work: Work,
): Promise<number> {
  const { io, print } = context;
  const bar = progressBar({ stream: io.stderr });
  let isSaved = false;
  const onEvent = (event: AnyEvent): void => {
    bar.onEvent(event);
    if (event.type === "checkpoint.save" || event.type === "checkpoint.load") isSaved = true;
    if (event.type === "checkpoint.quarantine")
      print.note(`a corrupt checkpoint was moved to ${event.data.file}`);
    if (event.type === "graph.mismatch")
      print.note("the graph has changed since this run was saved");
  };
  graph.on("*", onEvent);
  const interrupts = new Interrupts(io, () => print.note(`\nstopping run ${runId} …`));
  try {
    const state = await work(interrupts.signal);
    await ended(context, state);
    return exit.ok;
  } catch (error) {
    if (interrupts.happened && isWaymarkError(error, "ABORTED")) {
      const how = isSaved ? `go on: waymark resume ${runId}` : "it saves no checkpoints";
      throw new CommandError(exit.interrupted, `run ${runId} was stopped`, how);
    }
    throw failed(error, runId, isSaved);
  } finally {
    interrupts.end();
    graph.off("*", onEvent);
  }
}

function failed(error: unknown, runId: string, isSaved: boolean): unknown {
  const codes = ["NODE_FAILED", "NODE_RESULT", "PREDICATE_FAILED", "NO_MATCHING_EDGE", "ABORTED"];
  if (!isWaymarkError(error) || !codes.includes(error.code)) return error;
  const hint = isSaved ? `try again: waymark resume ${runId}` : "";
  return problem(`run ${runId}: ${error.message}`, hint, error);
}

async function ended(context: Context, state: State<object>): Promise<void> {
  const { print } = context;
  const json = await stateJson(state, (await context.config()).redact);
  const { runId, status, step, pauses } = state;
  print.result(json, () =>
    print.facts([
      ["run", runId],
      ["status", status, lookOf(status)],
      ["steps", String(step)],
      ["last", state.checkpointNode],
      ...pauses.map(({ name, reason }, at) => {
        const asked = (json.pauses?.[at] as { ask?: unknown } | undefined)?.ask;
        const ask = asked === undefined ? "" : `: ${toJson(asked)}`;
        return ["waits for", `${name}${name === "" ? "" : ", "}${reason}${ask}`] as const;
      }),
      ["go on", pauses.length > 0 ? `waymark resume ${runId} --input JSON` : undefined],
    ]),
  );
}
