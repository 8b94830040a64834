import { listRuns } from "../checkpoint/any-store.js";
import type { RunFilter, RunSummary } from "../checkpoint/store.js";
import { isAnswerable } from "../state/pauses.js";
import type { Inbox, InboxPause } from "./api.js";
import type { Studio } from "./context.js";
import { pausesOf } from "./view.js";

/** How many paused runs are searched for the oldest pauses. */
const SCANNED = 5000;
const PAGE = 200;
const MOST = 500;

/** All open pauses that a person can answer or resume, oldest first. */
export async function inboxOf(studio: Studio): Promise<Inbox> {
  const { store, redaction } = studio.settings;
  const runs = await newest(studio, { status: "paused" }, SCANNED);
  const pauses: InboxPause[] = [];
  for (const { runId } of runs.reverse()) {
    if (pauses.length > MOST) break;
    // Skips a run that has been deleted or damaged in the meantime.
    const state = await redaction
      .store(store)
      .load<object>(runId)
      .catch(() => undefined);
    if (state?.status !== "paused") continue;
    const graph = state.graph?.name ?? "";
    const { metadata } = state;
    for (const pause of pausesOf(state).filter(({ until }) => until === undefined)) {
      const isAsked = isAnswerable(pause);
      const command = studio.command("resume", runId, ...(isAsked ? ["--input", "JSON"] : []));
      const answerable = isAsked && studio.canRun(graph);
      pauses.push({ ...pause, runId, graph, metadata, answerable, command });
    }
  }
  return { pauses: pauses.slice(0, MOST), more: pauses.length > MOST };
}

/** The newest runs that match a filter, newest first. */
export async function newest(
  { settings: { store } }: Studio,
  filter: RunFilter,
  most: number,
): Promise<RunSummary[]> {
  const runs: RunSummary[] = [];
  let cursor: RunSummary | undefined;
  do {
    const page = await listRuns(store, { ...filter, cursor, limit: PAGE });
    runs.push(...page);
    cursor = page.length < PAGE ? undefined : page.at(-1);
  } while (cursor !== undefined && runs.length < most);
  return runs.slice(0, most);
}
