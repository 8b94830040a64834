import type { CheckpointStore, Retention } from "../../checkpoint/store.js";
import { removeRunFiles } from "../../observers/remove-run-files.js";
import { type Command, yes } from "../command.js";
import { usage } from "../exit.js";
import { plain } from "../output/text.js";
import { count } from "../output/units.js";

/** How many runs the question names. */
const SHOWN = 10;

/** `waymark prune`. */
export const command: Command = {
  name: "prune",
  summary: "Remove old runs that are finished, with their logs and progress files",
  details:
    "The age of a run is the time since its last save. A run that a process is working on stays.",
  options: [
    { flags: "--max-age <age>", text: "remove runs that are older: 30d, 12h, 90m, 2w" },
    { flags: "--max-runs <count>", text: "keep this many finished runs, the most recent" },
    {
      flags: "--include-abandoned",
      text: "apply --max-age to runs that never finished, too: in progress, paused, pending",
    },
    { flags: "--dry-run", text: "only print what would be removed" },
    yes,
  ],
  examples: [
    "waymark prune --max-age 30d --max-runs 50 --dry-run",
    "waymark prune --max-age 2w --yes",
  ],
  run: async (context, values) => {
    const age = values.text("maxAge");
    const maxRuns = values.count("maxRuns", 0);
    if (age === undefined && maxRuns === undefined) {
      throw usage("prune needs --max-age, --max-runs, or both");
    }
    const retention: Retention = {
      ...(age !== undefined && { maxAgeDays: daysOf(age) }),
      ...(maxRuns !== undefined && { maxRuns }),
      ...(values.flag("includeAbandoned") && { includeAbandoned: true }),
    };
    const { print } = context;
    const seen = await context.store("read");
    const old = await prune(seen.store, { ...retention, dryRun: true });
    const isDry = values.flag("dryRun");
    if (!isDry && old.length > 0) {
      const more = old.length > SHOWN ? ` and ${old.length - SHOWN} more` : "";
      const which = `${old.slice(0, SHOWN).join(", ")}${more}`;
      await context.confirm(`Remove ${count(old.length, "run")} from ${seen.name}?`, which);
    }
    const isNone = isDry || old.length === 0;
    const removed = isNone ? old : await prune((await context.store("write")).store, retention);
    const log = await context.log(seen);
    if (!isNone) for (const runId of removed) await removeRunFiles(log, runId);
    print.result({ removed, dryRun: isDry }, () => {
      const end = `${count(removed.length, "run")} ${isDry ? "would be" : removed.length === 1 ? "was" : "were"} removed`;
      return [...removed.map(plain), end].join("\n");
    });
    return undefined;
  },
};

async function prune(store: CheckpointStore, retention: Retention): Promise<readonly string[]> {
  if (store.prune !== undefined) return store.prune(retention);
  throw usage("this store can't prune runs");
}

const units: Readonly<Record<string, number>> = { w: 7, d: 1, h: 1 / 24, m: 1 / 24 / 60 };

function daysOf(text: string): number {
  const [, number = "", unit = ""] = /^(\d+(?:\.\d+)?)([wdhm])$/.exec(text) ?? [];
  if (number === "") throw usage(`--max-age must be like 30d, 12h, 90m or 2w; got "${text}"`);
  return Number(number) * (units[unit] ?? 1);
}
