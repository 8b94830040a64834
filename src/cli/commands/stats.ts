import { listRuns } from "../../checkpoint/any-store.js";
import { statuses } from "../../state/record.js";
import type { Command } from "../command.js";
import { lookOf } from "../output/style.js";
import type { Column } from "../output/table.js";
import { bytes } from "../output/units.js";

/** Counts and sizes of the runs of one graph, or of all graphs. */
interface Stats {
  readonly graph: string;
  runs: number;
  /** How many runs have each status. */
  readonly status: Record<string, number>;
  checkpoints: number;
  bytes: number;
}

const columns: readonly Column<Stats>[] = [
  { head: "graph", cell: ({ graph }) => graph, least: 8 },
  { head: "runs", cell: ({ runs }) => String(runs), right: true },
  ...statuses.map(
    (status): Column<Stats> => ({
      head: status,
      cell: ({ status: counts }) => String(counts[status] || ""),
      look: () => lookOf(status),
      right: true,
    }),
  ),
  { head: "checkpoints", cell: ({ checkpoints }) => String(checkpoints), right: true },
  { head: "size", cell: (stats) => bytes(stats.bytes), right: true },
];

/** `waymark stats`. */
export const command: Command = {
  name: "stats",
  summary: "Show how many runs and checkpoints a store holds, and how large they are",
  examples: ["waymark stats", "waymark stats --store sqlite:runs.db --json"],
  run: async (context) => {
    const { store } = await context.store();
    const graphs = new Map<string, Stats>();
    const total = empty("all");
    for (const { runId, graph, status } of await listRuns(store)) {
      const name = graph || "(none)";
      const stats = graphs.get(name) ?? empty(name);
      graphs.set(name, stats);
      const history = (await store.history?.(runId)) ?? [];
      for (const one of [stats, total]) {
        one.runs++;
        one.status[status] = (one.status[status] ?? 0) + 1;
        one.checkpoints += history.length;
        one.bytes += history.reduce((sum, entry) => sum + (entry.bytes ?? 0), 0);
      }
    }
    const { graph: _all, ...all } = total;
    const rows = [...graphs.values()].sort((a, b) => b.bytes - a.bytes);
    const { print } = context;
    print.result({ ...all, graphs: rows }, () => print.table(columns, [...rows, total]));
    return undefined;
  },
};

function empty(graph: string): Stats {
  return { graph, runs: 0, status: {}, checkpoints: 0, bytes: 0 };
}
