import type { CheckpointStore, RunFilter, RunSummary } from "../../checkpoint/store.js";
import type { Command } from "../command.js";
import { lookOf } from "../output/style.js";
import type { Column } from "../output/table.js";
import { ago, dollars } from "../output/units.js";
import type { Values } from "../values.js";

/** The status of a run, and whether a process works on it. */
interface Row extends RunSummary {
  /** `null` when its checkpoint can't be read. */
  readonly costUsd: number | null;
  /** `null` where that can't be seen. */
  readonly live: boolean | null;
}

const statuses = ["pending", "in_progress", "paused", "completed", "failed"];
const LIMIT = 50;

/** `waymark list`. */
export const command: Command = {
  name: "list",
  summary: "List the runs of a store, the most recent first",
  options: [
    { flags: "--status <status>", text: "only runs of this status", many: true, choices: statuses },
    { flags: "--graph <name>", text: "only runs of this graph" },
    { flags: "--limit <count>", text: `at most so many; ${LIMIT} by default` },
  ],
  examples: ["waymark list --status failed --status in_progress", "waymark list --json --limit 5"],
  run: async (context, values) => {
    const opened = await context.store();
    const limit = values.count("limit", 1) ?? LIMIT;
    const { livingIn } = await import("../store/living.js");
    const isLiving = await livingIn(opened);
    const found = await runsOf(opened.store, { ...filterOf(values), limit: limit + 1 });
    const rows = await Promise.all(
      found.slice(0, limit).map(async (run): Promise<Row> => {
        const live = run.status === "in_progress" ? (isLiving(run.runId) ?? null) : false;
        return { ...run, costUsd: await costOf(opened.store, run.runId), live };
      }),
    );
    const { print } = context;
    print.result(rows, () =>
      rows.length === 0 ? `no runs in ${opened.name}` : print.table(columns(Date.now()), rows),
    );
    if (found.length > limit) print.note(`there are more: --limit ${limit * 2} shows them`);
    return undefined;
  },
};

function filterOf(values: Values): RunFilter {
  const status = values.texts("status") as RunSummary["status"][];
  const graph = values.text("graph");
  return { ...(status.length > 0 && { status }), ...(graph !== undefined && { graph }) };
}

async function runsOf(store: CheckpointStore, filter: RunFilter): Promise<RunSummary[]> {
  if (store.runs !== undefined) return store.runs(filter);
  const [{ filterRuns }, { summarize }] = await Promise.all([
    import("../../checkpoint/retention.js"),
    import("../../checkpoint/store.js"),
  ]);
  const states = (await store.list()).map((runId) => store.load<object>(runId));
  return filterRuns((await Promise.all(states)).map(summarize), filter);
}

async function costOf(store: CheckpointStore, runId: string): Promise<number | null> {
  try {
    return (await store.load(runId)).ledger.usage.costUsd;
  } catch {
    // It is gone meanwhile, or corrupt: `validate` tells.
    return null;
  }
}

/** A run that is in progress may have been left behind. */
function statusText({ status, live }: Row): string {
  if (status !== "in_progress" || live === null) return status;
  return `${status}, ${live ? "live" : "stopped"}`;
}

function columns(now: number): readonly Column<Row>[] {
  return [
    { head: "run", cell: ({ runId }) => runId, least: 12 },
    { head: "graph", cell: ({ graph }) => graph, least: 8 },
    { head: "status", cell: statusText, look: ({ status }) => lookOf(status), least: 11 },
    { head: "node", cell: ({ node }) => node, least: 8 },
    { head: "steps", cell: ({ step }) => String(step), right: true },
    { head: "updated", cell: ({ timestamp }) => ago(timestamp, now) },
    { head: "cost", cell: ({ costUsd }) => costText(costUsd), right: true },
  ];
}

function costText(costUsd: number | null): string {
  return costUsd === null ? "?" : dollars(costUsd);
}
