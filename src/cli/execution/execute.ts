import { errorTable, isWaymarkError } from "../../errors.js";
import type { AnyEvent } from "../../events.js";
import { longestPath } from "../../graph/description.js";
import { progressBar } from "../../observers/progress-bar.js";
import type { Redaction } from "../../report/redaction.js";
import type { AnyGraph } from "../../run/state-graph.js";
import type { State } from "../../state/state.js";
import type { Context } from "../context.js";
import { CommandError, exit, problem, usage } from "../exit.js";
import { errorText } from "../output/error-text.js";
import { waitsFor } from "../output/pauses.js";
import { lookOf } from "../output/style.js";
import { stepsText, usageText } from "../output/units.js";
import { Interrupts } from "./interrupts.js";

/** Works on a run until it ends; the signal cancels it. */
export type Work = (signal: AbortSignal) => Promise<State<object>>;

/**
 * Runs a graph: prints its progress, stops it at Ctrl-C so that it can be resumed, and prints how it ended.
 *
 * @param isAnswered - whether the command was given the answer that a paused run waits for.
 */
export async function execute(
  context: Context,
  graph: AnyGraph,
  runId: string,
  work: Work,
  isAnswered = false,
): Promise<number> {
  const { io, print } = context;
  const bar = progressBar({ stream: io.stderr });
  let isSaved = false;
  const warned = new Set<string>();
  const onEvent = (event: AnyEvent): void => {
    bar.onEvent(event);
    if (event.type === "checkpoint.save" || event.type === "checkpoint.load") isSaved = true;
    if (event.type === "checkpoint.resume" && event.runId === runId) {
      const { node, resumeNode } = event.data;
      print.noteFacts([
        ["run", runId],
        ["graph", graph.name],
        ["last node", node || "none"],
        ["continues at", resumeNode],
      ]);
    }
    if (event.type === "checkpoint.quarantine") {
      print.note(`a corrupt checkpoint was set aside: ${event.data.file}`);
    }
    if (event.type === "checkpoint.warning" && !warned.has(event.data.kind)) {
      warned.add(event.data.kind);
      print.note(event.data.message);
    }
    if (event.type === "graph.mismatch") {
      print.note("the graph has changed since this run was saved");
    }
  };
  graph.on("*", onEvent);
  const interrupts = new Interrupts(io, () => {
    print.noteBelow(`stopping run ${runId} … (Ctrl-C again ends it at once)`);
  });
  const resume = context.command("resume", runId);
  const redaction = await context.redaction();
  try {
    ended(context, redaction, await work(interrupts.signal), longestPath(graph.topology));
    return exit.ok;
  } catch (error) {
    if (interrupts.happened && isWaymarkError(error, "ABORTED")) {
      const how = isSaved ? `continue: ${resume}` : "it saves no checkpoints";
      throw new CommandError(exit.interrupted, `run ${runId} was stopped`, how);
    }
    const isAsked = isWaymarkError(error, "CONFIG") && error.option === "input";
    if (isAsked && !isAnswered) {
      const see = context.command("show", runId);
      const answer = context.command("resume", runId, "--input", "JSON");
      throw usage(`run ${runId} is waiting for an answer`, `see: ${see}; answer: ${answer}`);
    }
    throw failed(error, runId, redaction, isSaved ? `try again: ${resume}` : "");
  } finally {
    interrupts.end();
    graph.off("*", onEvent);
  }
}

function failed(error: unknown, runId: string, redaction: Redaction, hint: string): unknown {
  if (!isWaymarkError(error) || errorTable[error.code]?.class !== "ExecutionError") return error;
  const text = errorText(error, redaction);
  // The message and the stack of the error itself contain the redacted text, too.
  return problem(`run ${runId}: ${text}`, hint, text === error.message ? error : undefined);
}

/**
 * Prints how a run ended, or what it waits for.
 *
 * @param most - the most steps it can have, if known.
 */
function ended(
  context: Context,
  redaction: Redaction,
  state: State<object>,
  most: number | undefined,
): void {
  const { print } = context;
  const json = redaction.state(state);
  const { runId, status, step, ledger } = state;
  const waits = waitsFor(json);
  print.result(json, () =>
    print.facts([
      ["run", runId],
      ["status", status, lookOf(status)],
      ["steps", stepsText(step, most)],
      ["last", state.checkpointNode],
      ["usage", usageText(ledger.usage)],
      ...waits.map((text) => ["waits for", text, "yellow"] as const),
      [
        "continue",
        waits.length > 0 ? context.command("resume", runId, "--input", "JSON") : undefined,
      ],
    ]),
  );
}
