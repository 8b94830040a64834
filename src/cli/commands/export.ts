import { writeFile } from "node:fs/promises";
import { resolve } from "node:path";
import { exportOf } from "../../checkpoint/any-store.js";
import { type Command, run } from "../command.js";
import { problem, usage } from "../exit.js";
import { plain } from "../output/text.js";
import { count } from "../output/units.js";
import { findRun } from "../store/find.js";

/** `waymark export`. */
export const command: Command = {
  name: "export",
  summary: "Write a run with all its checkpoints to a file, for waymark import",
  details:
    "The file holds the run's data in plaintext, even if the store encrypts it. With --redact the file can " +
    "be shared: what the config redacts is not in it, so the run may not be resumable from it. A run " +
    "with a damaged checkpoint is not exported.",
  arguments: [run],
  options: [
    { flags: "--out <file>", text: "the file, which must not exist; stdout by default" },
    { flags: "--redact", text: "leave out what the config redacts" },
  ],
  examples: [
    "waymark export 019a2f --out monday.jsonl",
    "waymark export 019a2f | gzip > monday.gz",
  ],
  run: async (context, values) => {
    const opened = await context.store();
    const { runId } = await findRun(opened, values.argument(0));
    const [{ damageOf }, { toArchive }] = await Promise.all([
      import("../transfer/copy.js"),
      import("../transfer/archive.js"),
    ]);
    const out = values.text("out");
    const { print } = context;
    if (out === undefined && context.io.stdout.isTTY === true) {
      throw usage("an export must go to a file or a pipe", "--out FILE");
    }
    const redaction = await context.redaction();
    const isRedacted = values.flag("redact");
    if (isRedacted && !redaction.isOn) {
      throw usage("the config redacts nothing", 'as in redact: ["*.token"]');
    }
    const damage = await damageOf(opened, runId);
    if (damage !== undefined) {
      const repair = context.command("repair", runId);
      throw problem(`run ${runId} is damaged: ${damage}`, `${repair} sets it aside`);
    }
    const { text, count: checkpoints } = await toArchive(
      runId,
      exportOf(opened.store, runId),
      isRedacted ? (state) => redaction.state(state) : (state) => state.toJSON(),
    );
    if (out === undefined) {
      context.io.stdout.write(text);
      return undefined;
    }
    const file = resolve(context.io.cwd, out);
    try {
      await writeFile(file, text, { flag: "wx", mode: 0o600 });
    } catch (error) {
      throw usage(`${file} can't be written: ${(error as Error).message}`);
    }
    print.result({ runId, file, checkpoints }, () =>
      plain(`${count(checkpoints, "checkpoint")} in ${file}`),
    );
    return undefined;
  },
};
