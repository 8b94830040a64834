import { isNewest } from "../../checkpoint/store.js";
import type { PathChange } from "../../report/changes.js";
import type { StateJSON } from "../../state/json.js";
import { defined } from "../../state/shape.js";
import { at, CHECKPOINT, type Command, run } from "../command.js";
import type { Context } from "../context.js";
import { usage } from "../exit.js";
import type { Printer } from "../output/printer.js";
import type { Look } from "../output/style.js";
import { cut, plain, toJson } from "../output/text.js";
import { findAt, findRun, type NamedRun } from "../store/find.js";
import type { OpenStore } from "../store/open.js";

/** `waymark diff`. */
export const command: Command = {
  name: "diff",
  summary: "Compare two checkpoints of a run, or two runs, by path",
  details:
    "Given one checkpoint, or just its id, it compares that one with the newest of its run. " +
    "Without --all it compares what nodes produce: data, ledger, status, error, step and node.",
  arguments: [
    run,
    { name: "from", text: `${CHECKPOINT}; or, without <to>, another run`, optional: true },
    { name: "to", text: CHECKPOINT, optional: true },
  ],
  options: [
    { ...at, text: `${CHECKPOINT} to compare with the newest` },
    { flags: "--all", text: "compare ids and times, too" },
  ],
  examples: ["waymark diff 019a2f 2 3", "waymark diff 019a2f draft", "waymark diff 019a2f 019a30"],
  run: async (context, values) => {
    const opened = await context.store();
    const named = await findRun(opened, values.argument(0));
    const [, from = values.text("at"), to] = values.arguments;
    const [one, other] = await placesOf(opened, named, from, to);
    const [before, after] = await Promise.all([
      stateOf(context, opened, one),
      stateOf(context, opened, other),
    ]);
    const { changesBetween } = await import("../../report/changes.js");
    const isAll = values.flag("all");
    const changes = changesBetween(kept(before, isAll), kept(after, isAll));
    const { print } = context;
    print.result(changes, () =>
      changes.length === 0 ? "no difference" : changes.map((one) => lineOf(one, print)).join("\n"),
    );
    return undefined;
  },
};

/** The two checkpoints to compare. An argument that names no checkpoint of the run may name another run. */
async function placesOf(
  opened: OpenStore,
  named: NamedRun,
  from: string | undefined,
  to: string | undefined,
): Promise<readonly [NamedRun, NamedRun]> {
  const { store } = opened;
  const { runId } = named;
  const here = async (given: string): Promise<NamedRun> => {
    return { runId, at: await findAt(store, named, given) };
  };
  const newest = { runId, at: {} };
  const isRunOnly = isNewest(named.at);
  if (from === undefined) {
    if (!isRunOnly) return [named, newest];
    throw usage("diff needs a checkpoint or another run", "as in 2 3, or --at 2");
  }
  if (to !== undefined) return [await here(from), await here(to)];
  const isOther = !/^\d+$/.test(from) || (await store.list()).includes(from);
  const other = isOther ? await findRun(opened, from).catch(() => undefined) : undefined;
  if (other !== undefined && other.runId !== runId) return [named, other];
  const place = other ?? (await here(from));
  return isRunOnly ? [place, newest] : [named, place];
}

async function stateOf(
  context: Context,
  { store }: OpenStore,
  { runId, at: place }: NamedRun,
): Promise<StateJSON> {
  return (await context.redaction()).state(await store.load<object>(runId, place));
}

function kept(json: StateJSON, isAll: boolean): unknown {
  if (isAll) return json;
  const { step, checkpointNode, status, error, pauses, ledger, data } = json;
  return { step, checkpointNode, status, ...defined({ error, pauses, ledger }), data };
}

const signs: Readonly<Record<PathChange["op"], readonly [sign: string, look: Look]>> = {
  add: ["+", "green"],
  remove: ["-", "red"],
  change: ["~", "yellow"],
};

const VALUE = 200;

function lineOf({ op, path, before, after }: PathChange, print: Printer): string {
  const [sign, look] = signs[op];
  const shown = (value: unknown): string => cut(toJson(value), VALUE);
  const values = {
    add: shown(after),
    remove: shown(before),
    change: `${print.paint("red", shown(before))} → ${print.paint("green", shown(after))}`,
  };
  return `${print.paint(look, `${sign} ${plain(path)}`)}  ${values[op]}`;
}
