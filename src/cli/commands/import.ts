import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { text as readAll } from "node:stream/consumers";
import { type Command, yes } from "../command.js";
import type { Context } from "../context.js";
import { missing, problem } from "../exit.js";
import { plain } from "../output/text.js";
import { count } from "../output/units.js";

/** `waymark import`. */
export const command: Command = {
  name: "import",
  summary: "Read a run that waymark export wrote",
  arguments: [{ name: "file", text: "the file, or - for a pipe", completes: "file" }],
  options: [{ flags: "--force", text: "replace the run if it exists" }, yes],
  examples: [
    "waymark import monday.jsonl",
    "gunzip < monday.gz | waymark import - --store sqlite:runs.db",
  ],
  run: async (context, values) => {
    const { name, text } = await read(context, values.argument(0));
    const [{ importRun }, { fromArchive }, { checkFree }] = await Promise.all([
      import("../transfer/copy.js"),
      import("../transfer/archive.js"),
      import("../execution/graph-run.js"),
    ]);
    const { runId, checkpoints } = fromArchive(text, name);
    const opened = await context.store("write");
    if ((await opened.store.list()).includes(runId)) {
      if (!values.flag("force")) {
        throw problem(`run ${runId} is already in ${opened.name}`, "--force replaces it");
      }
      await checkFree(context, opened, runId);
      await context.confirm(`Replace run ${runId} in ${opened.name}?`);
      await opened.store.delete(runId);
    }
    await importRun(
      opened,
      (async function* () {
        yield* checkpoints;
      })(),
    );
    context.print.result({ runId, checkpoints: checkpoints.length }, () =>
      plain(`${runId}: ${count(checkpoints.length, "checkpoint")} in ${opened.name}`),
    );
    return undefined;
  },
};

async function read({ io }: Context, given: string): Promise<{ name: string; text: string }> {
  if (given === "-") return { name: "the piped input", text: await readAll(io.stdin) };
  const name = resolve(io.cwd, given);
  try {
    return { name, text: await readFile(name, "utf8") };
  } catch (error) {
    throw missing(`${name} can't be read: ${(error as Error).message}`);
  }
}
