import type { CheckpointStore } from "../../checkpoint/store.js";
import type { EventMap } from "../../event-map.js";
import type { EventType } from "../../events.js";
import { type Command, run, yes } from "../command.js";
import { exit } from "../exit.js";
import { plain } from "../output/text.js";
import { count } from "../output/units.js";
import { findRun } from "../store/find.js";
import { inspectionText } from "./validate.js";

/** The outcome for one run. */
interface Repair {
  readonly runId: string;
  /** Where its corrupt checkpoints are now. */
  readonly quarantined: readonly string[];
  /** The step that the run continues from; `null` if it has no checkpoint left. */
  readonly step: number | null;
  /** Why it was left alone; `""` if it was not. */
  readonly skipped: string;
}

/** `waymark repair`. */
export const command: Command = {
  name: "repair",
  summary: "Set corrupt checkpoints aside, so that runs continue from the newest intact one",
  details:
    "Corrupt checkpoints go to the run's quarantine; none is deleted. Files left behind by a dead process " +
    "are removed. A run that a live process is working on is left alone.",
  arguments: [{ ...run, text: `${run.text}; all runs by default`, optional: true }],
  options: [yes],
  examples: ["waymark repair 019a2f", "waymark repair --yes"],
  run: async (context, values) => {
    const { print } = context;
    const seen = await context.store("read");
    const given = values.arguments[0];
    const runs =
      given === undefined ? await seen.store.list() : [(await findRun(seen, given)).runId];
    const { inspect } = await import("../inspect.js");
    const found = await inspect(seen, given === undefined ? undefined : runs[0]);
    const broken = new Set(
      found.findings
        .filter(({ level, problem }) => level === "problem" || problem === "leftover")
        .map(({ runId }) => runId),
    );
    if (broken.size === 0) {
      print.result([], () => "nothing to repair");
      return exit.ok;
    }
    if (!print.json) print.text(inspectionText(found, print));
    const which = runs.filter((runId) => broken.has(runId) || broken.has(""));
    await context.confirm(`Repair ${count(which.length, "run")} in ${seen.name}?`);
    const { store } = await context.store("write");
    const repairs: Repair[] = [];
    for (const runId of which) repairs.push(await repair(store, runId));
    print.result(repairs, () => repairs.map(repairText).join("\n"));
    return repairs.every(({ step, skipped }) => step !== null && skipped === "")
      ? exit.ok
      : exit.problems;
  },
};

/** Loads every checkpoint; the store quarantines those it finds corrupt. */
async function repair(store: CheckpointStore, runId: string): Promise<Repair> {
  const claim = await store.claim?.(runId);
  if (store.claim !== undefined && claim === undefined) {
    return { runId, quarantined: [], step: null, skipped: "a process is working on it" };
  }
  const quarantined: string[] = [];
  const emit = <T extends EventType>(type: T, data: EventMap[T]): void => {
    if (type !== "checkpoint.quarantine") return;
    quarantined.push((data as EventMap["checkpoint.quarantine"]).file);
  };
  const load = (checkpointId?: string): Promise<{ readonly step: number } | undefined> =>
    store
      .load(runId, checkpointId === undefined ? {} : { checkpointId }, { emit })
      .catch(() => undefined);
  try {
    for (const { checkpointId } of (await store.history?.(runId)) ?? []) await load(checkpointId);
    // Looking for an unknown id also reads checkpoints whose own id is unreadable.
    await load("none");
    const newest = await load();
    return { runId, quarantined, step: newest?.step ?? null, skipped: "" };
  } finally {
    await claim?.release();
  }
}

function repairText({ runId: id, quarantined, step, skipped }: Repair): string {
  const runId = plain(id);
  if (skipped !== "") return `${runId}: left alone, ${skipped}`;
  const moved = quarantined.map((file) => `\n  ${plain(file)}`).join("");
  const end = step === null ? "has no checkpoint left" : `continues from step ${step}`;
  return `${runId}: ${end}; ${count(quarantined.length, "checkpoint")} set aside${moved}`;
}
