import {
  type CheckpointStore,
  type RunFilter,
  type RunSummary,
  summarize,
} from "../../checkpoint/store.js";
import type { Command } from "../command.js";
import { lookOf, statusText } from "../output/style.js";
import type { Column } from "../output/table.js";
import { ago, dollars } from "../output/units.js";
import type { Living } from "../store/living.js";
import type { OpenStore } from "../store/open.js";
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
    const found = await runsOf(opened.store, { ...filterOf(values), limit: limit + 1 });
    const isLiving = await livingOf(opened, found);
    const rows: Row[] = [];
    // One after the other: all States together may be more than there is room for.
    for (const run of found.slice(0, limit)) rows.push(await rowOf(opened.store, run, isLiving));
    const { print } = context;
    const none = Object.keys(filterOf(values)).length === 0 ? "no runs" : "no such runs";
    print.result(rows, () =>
      rows.length === 0 ? `${none} in ${opened.name}` : print.table(columns(Date.now()), rows),
    );
    if (rows.length === 0 && !(await context.isStoreGiven())) {
      print.note("another store is named by --store, WAYMARK_STORE or waymark.config.ts");
    }
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
  const { filterRuns } = await import("../../checkpoint/retention.js");
  const states = (await store.list()).map((runId) => store.load<object>(runId));
  return filterRuns((await Promise.all(states)).map(summarize), filter);
}

/** Only runs that are not over can have a process that works on them. */
async function livingOf(opened: OpenStore, runs: readonly RunSummary[]): Promise<Living> {
  if (runs.every(({ status }) => status !== "in_progress")) return () => false;
  const { livingIn } = await import("../store/living.js");
  return livingIn(opened);
}

/** A run as it loads: a store may not have noticed yet that its newest checkpoint is corrupt. */
async function rowOf(store: CheckpointStore, listed: RunSummary, isLiving: Living): Promise<Row> {
  try {
    const state = await store.load(listed.runId);
    const run = summarize(state);
    const live = run.status === "in_progress" ? (isLiving(run.runId) ?? null) : false;
    return { ...run, costUsd: state.ledger.usage.costUsd, live };
  } catch {
    // It is gone meanwhile, or corrupt: `validate` tells.
    return { ...listed, costUsd: null, live: null };
  }
}

function columns(now: number): readonly Column<Row>[] {
  return [
    { head: "run", cell: ({ runId }) => runId, least: 12 },
    { head: "graph", cell: ({ graph }) => graph, least: 8, leave: 2 },
    {
      head: "status",
      cell: ({ status, live }) => statusText(status, live),
      look: ({ status }) => lookOf(status),
      least: 11,
    },
    { head: "node", cell: ({ node }) => node, least: 8, leave: 4 },
    { head: "steps", cell: ({ step }) => String(step), right: true },
    { head: "updated", cell: ({ timestamp }) => ago(timestamp, now), leave: 3 },
    { head: "cost", cell: ({ costUsd }) => costText(costUsd), right: true, leave: 1 },
  ];
}

function costText(costUsd: number | null): string {
  return costUsd === null ? "?" : dollars(costUsd);
}
