import type { StateJSON } from "../../state/json.js";
import type { Command } from "../command.js";
import type { Context } from "../context.js";
import type { PathChange } from "../diff/changes.js";
import { usage } from "../exit.js";
import type { Printer } from "../output/printer.js";
import type { Look } from "../output/style.js";
import { cut, plain, toJson } from "../output/text.js";
import { findAt, findRun } from "../store/find.js";
import type { OpenStore } from "../store/open.js";

/** `waymark diff`. */
export const command: Command = {
  name: "diff",
  summary: "Compare two checkpoints of a run, or two runs, by path",
  details: "Without --all it compares what nodes make: data, ledger, status, error, step and node.",
  arguments: [
    { name: "run", text: "the run's id, or its beginning", completes: "run" },
    { name: "from", text: "a step or a checkpoint's id; or, without <to>, the other run" },
    { name: "to", text: "a step or a checkpoint's id", optional: true },
  ],
  options: [{ flags: "--all", text: "ids, times and what else differs anyway, too" }],
  examples: ["waymark diff 019a2f 2 3", "waymark diff 019a2f 019a30"],
  run: async (context, values) => {
    const opened = await context.store();
    const runId = await findRun(opened, values.argument(0));
    const [, from = "", to] = values.arguments;
    const isStep = to === undefined && /^\d+$/.test(from) && !(await isRun(opened, from));
    if (isStep) throw usage("diff wants two steps of a run, or two runs", "as in 2 3");
    const [before, after] = await Promise.all(
      to === undefined
        ? [stateOf(context, opened, runId), stateOf(context, opened, await findRun(opened, from))]
        : [stateOf(context, opened, runId, from), stateOf(context, opened, runId, to)],
    );
    const { changesBetween } = await import("../diff/changes.js");
    const isAll = values.flag("all");
    const changes = changesBetween(kept(before, isAll), kept(after, isAll));
    const { print } = context;
    print.result(changes, () =>
      changes.length === 0 ? "no difference" : changes.map((one) => lineOf(one, print)).join("\n"),
    );
    return undefined;
  },
};

async function isRun({ store }: OpenStore, runId: string): Promise<boolean> {
  return (await store.list()).includes(runId);
}

async function stateOf(
  context: Context,
  { store }: OpenStore,
  runId: string,
  at?: string,
): Promise<StateJSON> {
  const state = await store.load<object>(
    runId,
    at === undefined ? {} : await findAt(store, runId, at),
  );
  return (await context.redaction()).state(state);
}

function kept(json: StateJSON, isAll: boolean): unknown {
  if (isAll) return json;
  const { step, checkpointNode, status, error, pauses, ledger, data } = json;
  return { step, checkpointNode, status, ...defined({ error, pauses, ledger }), data };
}

function defined(fields: Readonly<Record<string, unknown>>): object {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
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
