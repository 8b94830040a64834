import type { HistoryEntry } from "../../checkpoint/store.js";
import { type Command, run } from "../command.js";
import { problem } from "../exit.js";
import { lookOf } from "../output/style.js";
import type { Column } from "../output/table.js";
import { bytes, seconds } from "../output/units.js";
import { findRun } from "../store/find.js";

const columns: readonly Column<HistoryEntry>[] = [
  { head: "seq", cell: ({ sequence }) => String(sequence), right: true },
  { head: "step", cell: ({ step }) => String(step), right: true },
  { head: "node", cell: ({ node }) => node, least: 8 },
  { head: "phase", cell: ({ phase }) => phase, least: 6, leave: 5 },
  { head: "status", cell: ({ status }) => status, look: ({ status }) => lookOf(status) },
  { head: "reason", cell: ({ reason }) => reason, least: 8, leave: 2 },
  { head: "saved", cell: ({ savedAt }) => seconds(savedAt), leave: 4 },
  {
    head: "size",
    cell: (entry) => (entry.bytes === undefined ? "" : bytes(entry.bytes)),
    right: true,
    leave: 1,
  },
  {
    head: "checkpoint",
    cell: ({ checkpointId }) => checkpointId,
    least: 10,
    keepEnd: true,
    look: () => "dim",
    leave: 3,
  },
];

/**
 * The commit that environment() recorded. Shown if it differs between checkpoints: another commit resumed the run.
 */
const commit: Column<HistoryEntry> = { head: "commit", cell: commitOf, least: 8 };

/** `waymark history`. */
export const command: Command = {
  name: "history",
  summary: "List the checkpoints of a run, newest first",
  details:
    "If checkpoints were made by different commits (with environment() of waymark/environment as the " +
    "graph's metadata), it shows the commit of each.",
  arguments: [run],
  options: [{ flags: "--limit <count>", text: "at most this many; all by default" }],
  examples: ["waymark history 019a2f --limit 3"],
  run: async (context, values) => {
    const opened = await context.store();
    const { runId } = await findRun(opened, values.argument(0));
    const { store, name } = opened;
    if (store.history === undefined) throw problem(`${name} keeps no history`);
    const entries = (await store.history(runId)).slice(0, values.count("limit", 1));
    const { print } = context;
    print.result(entries, () => print.table(columnsOf(entries), entries));
    return undefined;
  },
};

function columnsOf(entries: readonly HistoryEntry[]): readonly Column<HistoryEntry>[] {
  const hasPhases = entries.some(({ phase }) => phase !== "");
  const isOneCommit = new Set(entries.map(commitOf)).size < 2;
  const shown = columns.filter(({ head }) => head !== "phase" || hasPhases);
  return isOneCommit ? shown : [...shown.slice(0, -1), commit, ...shown.slice(-1)];
}

function commitOf({ metadata }: HistoryEntry): string {
  const { commit: hash, dirty } = metadata;
  return hash === undefined ? "" : `${String(hash).slice(0, 10)}${dirty === true ? " dirty" : ""}`;
}
