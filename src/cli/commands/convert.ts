import { exportOf } from "../../checkpoint/any-store.js";
import type { Command } from "../command.js";
import { exit, usage } from "../exit.js";
import { plain } from "../output/text.js";
import { count } from "../output/units.js";
import { findRun } from "../store/find.js";

/** The outcome for one run. */
interface Converted {
  readonly runId: string;
  readonly checkpoints: number;
  /** Why it was not copied; `""` when it was. */
  readonly problem: string;
}

/** `waymark convert`. */
export const command: Command = {
  name: "convert",
  summary: "Copy runs from one store to another, each checkpoint with its id",
  details:
    "The runs stay in the original store, too. A run that the other store already has is not " +
    "overwritten, and one with a damaged checkpoint is not copied; both make the exit code 1. Ctrl-C " +
    "stops after the run that is being copied. A partial copy, left by a killed command, is replaced.",
  arguments: [
    { name: "run", text: "the runs; all by default", optional: true, many: true, completes: "run" },
  ],
  options: [
    { flags: "--from <store>", text: "the store to copy from; as --store by default" },
    { flags: "--to <store>", text: "the store to copy to" },
  ],
  examples: ["waymark convert --from file:.waymark --to sqlite:.waymark/waymark.db"],
  run: async (context, values) => {
    const to = values.text("to");
    if (to === undefined)
      throw usage("convert needs --to", "as in --to sqlite:.waymark/waymark.db");
    const from = values.text("from");
    const { print } = context;
    const source =
      from === undefined ? await context.store("read") : await context.storeOf(from, "read");
    const target = await context.storeOf(to, "write");
    if (source.store === target.store || source.name === target.name) {
      throw usage("both stores are the same");
    }
    const [{ damageOf, importRun, removePart, Counter }, { Interrupts }] = await Promise.all([
      import("../transfer/copy.js"),
      import("../execution/interrupts.js"),
    ]);
    const given = values.arguments;
    const runIds =
      given.length === 0
        ? await source.store.list()
        : await Promise.all(given.map(async (run) => (await findRun(source, run)).runId));
    const converted: Converted[] = [];
    // A partial run in the other store would look complete.
    const interrupts = new Interrupts(context.io, () =>
      print.noteBelow("stopping after this run …"),
    );
    for (const runId of runIds) {
      if (interrupts.happened) break;
      const damage = await damageOf(source, runId);
      if (damage !== undefined) {
        const problem = `not copied, ${damage}; waymark repair sets it aside`;
        converted.push({ runId, checkpoints: 0, problem });
        continue;
      }
      const counter = new Counter();
      try {
        await removePart(target.store, source.store, runId);
        await importRun(target, counter.through(exportOf(source.store, runId)));
        converted.push({ runId, checkpoints: counter.count, problem: "" });
      } catch (error) {
        if (!(error instanceof Error) || error.name === "CommandError") throw error;
        converted.push({ runId, checkpoints: 0, problem: error.message });
      }
    }
    interrupts.end();
    const isGood = converted.every(({ problem }) => problem === "");
    print.result(converted, () => {
      const lines = converted.map(({ runId, checkpoints, problem }) =>
        plain(
          problem === "" ? `${runId}: ${count(checkpoints, "checkpoint")}` : `${runId}: ${problem}`,
        ),
      );
      const copied = converted.filter(({ problem }) => problem === "").length;
      return [...lines, plain(`${count(copied, "run")} copied to ${target.name}`)].join("\n");
    });
    if (converted.length < runIds.length) return exit.interrupted;
    return isGood ? exit.ok : exit.problems;
  },
};
