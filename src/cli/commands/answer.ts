import type { CheckpointStore } from "../../checkpoint/store.js";
import { isAnswerable } from "../../state/pauses.js";
import { type Command, run } from "../command.js";
import { usage } from "../exit.js";
import { lookOf } from "../output/style.js";
import { findRun } from "../store/find.js";

/** `waymark answer`. */
export const command: Command = {
  name: "answer",
  summary: "Keep an answer for a pause of a run, without running anything",
  details:
    "The answer is saved; resume then needs no --input. It may come before its question: then it is kept until the " +
    "run asks, and the pause must be named.",
  arguments: [
    run,
    {
      name: "name",
      text: "the pause's name; it can be left out if the run waits for one answer",
      optional: true,
    },
    { name: "value", text: "the answer: JSON, text, @file, or -", optional: true },
  ],
  examples: ["waymark answer 019a2f yes", "waymark answer 019a2f approval '{\"approved\":true}'"],
  run: async (context, values) => {
    const [{ changeRun, toAnswer, withAnswer }, { checkFree }, { readValue }] = await Promise.all([
      import("../../run/pauses/pauses.js"),
      import("../execution/graph-run.js"),
      import("../data.js"),
    ]);
    const [given = "", ...rest] = values.arguments;
    const text = rest.at(-1);
    if (text === undefined) throw usage("answer needs a value", "waymark answer RUN [NAME] VALUE");
    const opened = await context.store("write");
    const { store } = opened;
    const { runId } = await findRun(opened, given);
    await checkFree(context, opened, runId);
    const name = rest.length > 1 ? (rest[0] ?? "") : await onlyPause(store, runId);
    const value = await readValue(context.io, text);
    const answer = toAnswer(name, value);
    const { status } = await changeRun(store, runId, (state) => withAnswer(state, answer));
    context.print.result({ runId, status, answered: name }, () =>
      context.print.facts([
        ["run", runId],
        ["status", status, lookOf(status)],
        ["answered", name],
        ["continue", context.command("resume", runId)],
      ]),
    );
    return undefined;
  },
};

/** The name of the one pause that a run waits for an answer to. */
async function onlyPause(store: CheckpointStore, runId: string): Promise<string> {
  const { pauses } = await store.load<object>(runId);
  const [first, ...others] = pauses.filter(isAnswerable);
  if (first === undefined) {
    throw usage(`run ${runId} is not waiting for an answer`, "name the pause to answer it early");
  }
  if (others.length === 0) return first.name;
  const names = [first, ...others].map(({ name }) => JSON.stringify(name)).join(", ");
  throw usage(`run ${runId} waits for several answers`, `name one of ${names}`);
}
