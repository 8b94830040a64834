import { isWaymarkError } from "../../errors.js";
import type { AnyEvent } from "../../events.js";
import { progressBar } from "../../observers/progress-bar.js";
import type { State } from "../../state/state.js";
import type { AnyGraph } from "../config/graphs.js";
import type { Context } from "../context.js";
import { CommandError, exit, problem, usage } from "../exit.js";
import { waitsFor } from "../output/pauses.js";
import { lookOf } from "../output/style.js";
import { usageText } from "../output/units.js";
import type { Redaction } from "../redaction.js";
import { quarantineText } from "./graph-run.js";
import { Interrupts } from "./interrupts.js";

/** Works on a run until it ends; the signal cancels it. */
export type Work = (signal: AbortSignal) => Promise<State<object>>;

/**
 * Lets a graph work on a run: shows how far it is, stops it at Ctrl-C so that it can be resumed, and
 * says how it ended.
 *
 * @param isAnswered - whether it brings the answer that a paused run waits for.
 */
export async function go(
  context: Context,
  graph: AnyGraph,
  runId: string,
  work: Work,
  isAnswered = false,
): Promise<number> {
  const { io, print } = context;
  const bar = progressBar({ stream: io.stderr });
  let isSaved = false;
  const onEvent = (event: AnyEvent): void => {
    bar.onEvent(event);
    if (event.type === "checkpoint.save" || event.type === "checkpoint.load") isSaved = true;
    if (event.type === "checkpoint.quarantine") print.note(quarantineText(event.data));
    if (event.type === "graph.mismatch")
      print.note("the graph has changed since this run was saved");
  };
  graph.on("*", onEvent);
  const interrupts = new Interrupts(io, () => {
    print.noteBelow(`stopping run ${runId} … (Ctrl-C again ends it at once)`);
  });
  const goOn = context.command("resume", runId);
  const redaction = await context.redaction();
  try {
    ended(context, redaction, await work(interrupts.signal));
    return exit.ok;
  } catch (error) {
    if (interrupts.happened && isWaymarkError(error, "ABORTED")) {
      const how = isSaved ? `go on: ${goOn}` : "it saves no checkpoints";
      throw new CommandError(exit.interrupted, `run ${runId} was stopped`, how);
    }
    const isAsked = isWaymarkError(error, "CONFIG") && error.option === "input";
    if (isAsked && !isAnswered) {
      const see = context.command("show", runId);
      const answer = context.command("resume", runId, "--input", "JSON");
      throw usage(`run ${runId} waits for an answer`, `see: ${see}; answer: ${answer}`);
    }
    throw failed(error, runId, redaction, isSaved ? `try again: ${goOn}` : "");
  } finally {
    interrupts.end();
    graph.off("*", onEvent);
  }
}

const codes = ["NODE_FAILED", "NODE_RESULT", "PREDICATE_FAILED", "NO_MATCHING_EDGE", "ABORTED"];

function failed(error: unknown, runId: string, redaction: Redaction, hint: string): unknown {
  if (!isWaymarkError(error) || !codes.includes(error.code)) return error;
  const { cause, message } = error;
  if (!(cause instanceof Error)) return problem(`run ${runId}: ${message}`, hint, error);
  const shown = redaction.message(cause.message);
  // Also its stack tells what is not to be printed.
  const known = shown === cause.message ? error : undefined;
  return problem(`run ${runId}: ${message.replace(cause.message, shown)}`, hint, known);
}

/** Says how a run has ended, or what it waits for. */
function ended(context: Context, redaction: Redaction, state: State<object>): void {
  const { print } = context;
  const json = redaction.state(state);
  const { runId, status, step, ledger } = state;
  const waits = waitsFor(json);
  print.result(json, () =>
    print.facts([
      ["run", runId],
      ["status", status, lookOf(status)],
      ["steps", String(step)],
      ["last", state.checkpointNode],
      ["usage", usageText(ledger.usage)],
      ...waits.map((text) => ["waits for", text, "yellow"] as const),
      ["go on", waits.length > 0 ? context.command("resume", runId, "--input", "JSON") : undefined],
    ]),
  );
}
