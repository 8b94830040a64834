import { listRuns } from "../../checkpoint/any-store.js";
import {
  type CheckpointStore,
  type RunFilter,
  type RunSummary,
  summarize,
} from "../../checkpoint/store.js";
import type { Metadata } from "../../state/metadata.js";
import { type RunStatus, statuses } from "../../state/record.js";
import type { Command } from "../command.js";
import type { Context } from "../context.js";
import { readChanges } from "../data.js";
import { usage } from "../exit.js";
import { LongestRuns } from "../longest-runs.js";
import { lookOf, statusText } from "../output/style.js";
import type { Column } from "../output/table.js";
import { plain } from "../output/text.js";
import { ago, count, dollars, duration, stepsText } from "../output/units.js";
import { seeState } from "../store/find.js";
import { isLive } from "../store/live.js";
import type { Values } from "../values.js";

/** A run, with what its newest State and its store add. */
interface Row extends Omit<RunSummary, "status"> {
  /** The run's status, or `unreadable` if the store knows only its id. */
  readonly status: RunSummary["status"] | "unreadable";
  /** From its start to its last save, in milliseconds. */
  readonly elapsedMs: number;
  /** `null` if its checkpoint can't be read. */
  readonly costUsd: number | null;
  /** Whether a process is working on it; `null` if the store can't tell. */
  readonly live: boolean | null;
  /** The length of the longest path through its graph; `null` if the graph has cycles or is unknown. */
  readonly maxSteps: number | null;
  /** Warnings about its newest checkpoint. */
  readonly warnings: readonly string[];
}

const LIMIT = 50;
/** How many runs have their warnings printed. */
const WARNED = 5;

/** The columns by name, in the order in which the help lists them. */
const columns: Readonly<Record<string, Column<Row>>> = {
  run: { head: "run", cell: ({ runId }) => runId, least: 12, keepEnd: true },
  graph: { head: "graph", cell: ({ graph }) => graph, least: 8, leave: 2 },
  status: {
    head: "status",
    cell: ({ status, live }) => statusText(status, live),
    look: ({ status }) => lookOf(status),
  },
  node: { head: "node", cell: ({ node }) => node, least: 8, leave: 4 },
  nextNode: { head: "next", cell: ({ nextNode }) => nextNode ?? "", least: 8 },
  phase: { head: "phase", cell: ({ phase }) => phase, least: 6 },
  step: { head: "steps", cell: ({ step, maxSteps }) => stepsText(step, maxSteps), right: true },
  startedAt: { head: "started", cell: ({ startedAt }) => ago(startedAt, Date.now()) },
  savedAt: { head: "updated", cell: ({ savedAt }) => ago(savedAt, Date.now()), leave: 3 },
  elapsed: { head: "elapsed", cell: ({ elapsedMs }) => duration(elapsedMs), right: true },
  cost: { head: "cost", cell: ({ costUsd }) => costText(costUsd), right: true, leave: 1 },
  error: { head: "error", cell: ({ error }) => error?.message ?? "", least: 12 },
};
const defaults = ["run", "graph", "status", "node", "step", "savedAt", "cost"];

/** `waymark list`. */
export const command: Command = {
  name: "list",
  summary: "List the runs of a store, most recently saved first",
  options: [
    { flags: "--status <status>", text: "only runs of this status", many: true, choices: statuses },
    { flags: "--graph <name>", text: "only runs of this graph" },
    {
      flags: "--where <key=value>",
      text: "only runs with this metadata; a number, true, false, or text",
      many: true,
    },
    {
      flags: "--columns <names>",
      text: `what to print, separated by commas: ${Object.keys(columns).join(", ")}, or a key of the metadata`,
    },
    { flags: "--limit <count>", text: `at most this many; ${LIMIT} by default` },
  ],
  examples: [
    "waymark list --status failed --status in_progress",
    "waymark list --where customer=acme --columns run,status,phase,nextNode,elapsed,commit",
  ],
  run: async (context, values) => {
    const { store, name } = await context.store();
    const limit = values.count("limit", 1) ?? LIMIT;
    const filter = await filterOf(context, values);
    const found = await listRuns(store, { ...filter, limit: limit + 1 });
    const rows: Row[] = [];
    // One at a time: all States together may not fit into memory.
    const longest = new LongestRuns(context, store);
    for (const run of found.slice(0, limit)) rows.push(await rowOf(store, run, longest));
    const damaged = (await store.unreadable?.()) ?? [];
    const isFiltered = Object.keys(filter).length > 0;
    if (!isFiltered) rows.push(...damaged.slice(0, limit).map(unreadable));
    const shown = columnsOf(values.text("columns"), rows);
    const { print } = context;
    const none = isFiltered ? "no such runs" : "no runs";
    print.result(rows, () =>
      rows.length === 0 ? plain(`${none} in ${name}`) : print.table(shown, rows),
    );
    if (rows.length === 0 && !(await context.isStoreGiven())) {
      print.note("--store, WAYMARK_STORE or waymark.config.ts names another store");
    }
    if (found.length > limit) print.note(`there are more: --limit ${limit * 2} shows them`);
    const warned = rows.filter(({ warnings }) => warnings.length > 0);
    for (const { runId, warnings } of warned.slice(0, WARNED)) {
      print.note(`run ${runId}: ${warnings.join("; ")}`);
    }
    if (warned.length > WARNED) {
      print.note(`${count(warned.length - WARNED, "more run")} with warnings: --json shows them`);
    }
    if (damaged.length > 0) {
      print.note(
        `${count(damaged.length, "run")} can't be read: ${context.command("validate")} says why`,
      );
    }
    return undefined;
  },
};

async function filterOf({ io }: Context, values: Values): Promise<RunFilter> {
  const status = values.texts("status") as RunStatus[];
  const graph = values.text("graph");
  const metadata = (await readChanges(io, "--where", values.texts("where"))) as Metadata;
  return {
    ...(status.length > 0 && { status }),
    ...(graph !== undefined && { graph }),
    ...(Object.keys(metadata).length > 0 && { metadata }),
  };
}

/** The columns of these names. An unknown name must be a metadata key of some run. */
function columnsOf(given: string | undefined, rows: readonly Row[]): readonly Column<Row>[] {
  const names = given?.split(",").map((name) => name.trim()) ?? defaults;
  return names.map((name) => {
    const known = Object.values(columns).find(({ head }) => head === name);
    const column = Object.hasOwn(columns, name) ? columns[name] : known;
    if (column !== undefined) return column;
    const keys = [...new Set(rows.flatMap(({ metadata }) => Object.keys(metadata)))];
    if (rows.length > 0 && !keys.includes(name)) {
      const all = [...Object.keys(columns), ...keys].join(", ");
      throw usage(`--columns must be some of ${all}; got "${name}"`);
    }
    const cell = ({ metadata }: Row): string =>
      Object.hasOwn(metadata, name) ? String(metadata[name]) : "";
    return { head: name, cell, least: 8 };
  });
}

const unknown = { costUsd: null, live: null, maxSteps: null, warnings: [] };

/** A run of which only the id is known. */
function unreadable(runId: string): Row {
  const place = { graph: "", node: "", nextNode: undefined, phase: "", step: 0, metadata: {} };
  const times = { startedAt: "", savedAt: "", timestamp: "", elapsedMs: 0 };
  return { runId, status: "unreadable", ...place, ...times, ...unknown };
}

/** Loads the run: the listing may not know yet that its newest checkpoint is corrupt. */
async function rowOf(
  store: CheckpointStore,
  listed: RunSummary,
  longest: LongestRuns,
): Promise<Row> {
  const elapsed = ({ startedAt, savedAt }: RunSummary): number =>
    Math.max(0, Date.parse(savedAt) - Date.parse(startedAt)) || 0;
  try {
    // Asked before the run is loaded: a run that ends in between has ended, and was not abandoned.
    const holds = listed.status === "in_progress" && (await isLive(store, listed.runId));
    const { state, warnings } = await seeState(store, listed.runId);
    const run = summarize(state);
    const live = run.status === "in_progress" && holds;
    const { costUsd } = state.ledger.usage;
    const maxSteps = (await longest.of(state.graph)) ?? null;
    return { ...run, elapsedMs: elapsed(run), costUsd, live, maxSteps, warnings };
  } catch {
    // It was removed in the meantime, or is corrupt; `validate` says which.
    return { ...listed, elapsedMs: elapsed(listed), ...unknown };
  }
}

function costText(costUsd: number | null): string {
  return costUsd === null ? "?" : dollars(costUsd);
}
