import { readFile } from "node:fs/promises";
import { CheckpointNotFoundError } from "../errors.js";
import type { Audit } from "../event-map.js";
import { type LogLine, type LogPosition, LogReader } from "../observers/log/reader.js";
import { changesBetween } from "../report/changes.js";
import type { StateJSON } from "../state/json.js";
import type { State } from "../state/state.js";
import type {
  CheckpointName,
  RunHistory,
  RunLog,
  StateDifference,
  StateMatches,
  StateView,
  StudioAction,
  StudioSession,
  ValueView,
} from "./api.js";
import type { Studio } from "./context.js";
import { badRequest, noHistory } from "./http.js";
import { newest } from "./inbox.js";
import { countOf } from "./runs.js";
import { bounded, matchesIn, viewOf } from "./values.js";

/** How many runs are searched for names of graphs. */
const LISTED = 1000;
const CHANGES = 1000;
/** The maximum length of a value in a difference, as JSON; longer ones are sent as `$large`. */
const VALUE = 4096;
const CHECKPOINTS = 1000;
const MOST_CHECKPOINTS = 10_000;
const PROBLEMS = 100;
const LOG_LIMIT = 200;
const MOST_LINES = 1000;

/** What a studio shows, and what it can do. */
export async function sessionOf(studio: Studio): Promise<StudioSession> {
  const { name, graphs, client, readOnly, log, redaction } = studio.settings;
  const seen = (await newest(studio, {}, LISTED)).map(({ graph }) => graph);
  const names = [...new Set([...seen, ...[...graphs.values()].map((graph) => graph.name)])].sort();
  const running: StudioAction[] = ["resume", "retry", "answer", "replay", "cancel"];
  const isRunning = client !== undefined || graphs.size > 0;
  const saving: StudioAction[] = ["fork", "rollback", "delete"];
  return {
    store: name,
    version: await version(),
    readOnly,
    graphs: names.map((graph) => ({ name: graph, runnable: studio.canRun(graph) })),
    log: log !== undefined,
    redacted: redaction.isOn,
    actions: readOnly ? [] : [...(isRunning ? running : []), ...saving],
  };
}

async function version(): Promise<string> {
  // This file is two levels below the package, both in src/ and in dist/.
  const manifest = await readFile(new URL("../../package.json", import.meta.url), "utf8");
  return (JSON.parse(manifest) as { version: string }).version;
}

/** The checkpoints of a run. */
export async function historyOf(
  studio: Studio,
  runId: string,
  query: URLSearchParams,
): Promise<RunHistory> {
  const { store, redaction } = studio.settings;
  if (store.history === undefined) {
    // A missing run is a 404 in any store.
    await store.load(runId);
    throw noHistory();
  }
  const before = countOf(query, "before", Number.MAX_SAFE_INTEGER, 1, Number.MAX_SAFE_INTEGER);
  const limit = countOf(query, "limit", CHECKPOINTS, 1, MOST_CHECKPOINTS);
  const history = await store.history(runId);
  const problems: RunHistory["problems"][number][] = [];
  if (!(await isWhole(studio, runId))) {
    for await (const { sequence, problem, expected, actual } of store.verify?.(runId) ?? []) {
      problems.push({ sequence, problem, expected, actual });
      if (problems.length === PROBLEMS) break;
    }
  }
  if (history.length === 0 && problems.length === 0) throw new CheckpointNotFoundError(runId);
  const selected = history.filter(({ sequence }) => sequence < before).slice(0, limit);
  const checkpoints = selected.map((entry) => redaction.summary(entry));
  return { checkpoints, total: history.length, problems };
}

/** Whether the newest checkpoint loads without a warning. Verifying all of them would take long. */
async function isWhole({ settings: { store } }: Studio, runId: string): Promise<boolean> {
  let isFine = true;
  const emit = (): void => {
    isFine = false;
  };
  await store.load(runId, {}, { emit }).catch(emit);
  return isFine;
}

/** The State of a checkpoint, one of its values, or the matches of a search. */
export async function stateOf(
  studio: Studio,
  runId: string,
  query: URLSearchParams,
  audit: Audit,
): Promise<StateView | ValueView | StateMatches> {
  const tree = await loaded(studio, runId, query.get("at"), audit);
  const search = query.get("q");
  if (search !== null && search !== "") return matchesIn(tree.data, search);
  const path = query.get("path");
  if (path !== null) {
    const from = countOf(query, "from", 0, 0, Number.MAX_SAFE_INTEGER);
    const found = viewOf(tree, keysOf(path), from);
    if (found === undefined) throw badRequest("path does not exist in this State");
    return found;
  }
  const fields = Object.entries(tree).map(([key, value]) => [key, bounded(value)]);
  return Object.fromEntries(fields) as StateView;
}

function keysOf(text: string): readonly (string | number)[] {
  const isKey = (key: unknown): boolean => typeof key === "string" || typeof key === "number";
  try {
    const keys: unknown = JSON.parse(text);
    if (Array.isArray(keys) && keys.every(isKey)) return keys;
  } catch {
    // Invalid JSON is an invalid path.
  }
  throw badRequest('path must be a JSON array of keys, such as ["data","pages",0]');
}

async function loaded(
  studio: Studio,
  runId: string,
  at: string | null,
  audit: Audit,
): Promise<StateJSON> {
  const place = await studio.placeOf(runId, at);
  const state = await studio.storeFor(audit).load<object>(runId, place);
  return studio.settings.redaction.state(state as State<object>);
}

/** The difference of two checkpoints. */
export async function differenceOf(
  studio: Studio,
  runId: string,
  query: URLSearchParams,
  audit: Audit,
): Promise<StateDifference> {
  const other = query.get("run") ?? runId;
  const from = query.get("from");
  if (from === null && other === runId) throw badRequest("from must name a checkpoint");
  const before = await loaded(studio, runId, from, audit);
  const after = await loaded(studio, other, query.get("to"), audit);
  const isAll = query.get("all") === "true";
  const changes = changesBetween(compared(before, isAll), compared(after, isAll));
  return {
    from: checkpointName(before),
    to: checkpointName(after),
    changes: changes.slice(0, CHANGES).map(({ op, path, ...values }) => ({
      ...{ op, path },
      ...("before" in values && { before: bounded(values.before, VALUE) }),
      ...("after" in values && { after: bounded(values.after, VALUE) }),
    })),
    more: changes.length > CHANGES,
  };
}

/** What nodes change; the rest changes with every save. */
function compared(json: StateJSON, isAll: boolean): object {
  if (isAll) return json;
  const { step, checkpointNode, status, error, pauses, ledger, data } = json;
  return {
    ...{ step, checkpointNode, status },
    ...(error !== undefined && { error }),
    ...(pauses !== undefined && { pauses }),
    ...(ledger !== undefined && { ledger }),
    data,
  };
}

function checkpointName({
  runId,
  checkpointId,
  sequence,
  step,
  checkpointNode,
}: StateJSON): CheckpointName {
  return { runId, checkpointId, sequence, step, node: checkpointNode };
}

/** A page of a run's log. */
export async function logOf(
  studio: Studio,
  runId: string,
  query: URLSearchParams,
): Promise<RunLog> {
  const { log, redaction } = studio.settings;
  if (log === undefined) return { lines: [] };
  const reader = new LogReader(log, runId, positionOf(query.get("after") ?? "0.0"));
  const limit = countOf(query, "limit", LOG_LIMIT, 1, MOST_LINES);
  const isNewest = query.get("newest") === "true";
  const lines: LogLine[] = [];
  for await (const line of reader.read()) {
    lines.push(line);
    if (!isNewest && lines.length === limit) break;
    if (lines.length === 2 * limit) lines.splice(0, limit);
  }
  const found = isNewest ? lines.slice(-limit) : lines;
  const { file, byte } = reader.position;
  return { lines: found.map((line) => redaction.line(line)), next: `${file}.${byte}` };
}

function positionOf(text: string): LogPosition {
  const [, file, byte] = /^(\d{1,9})\.(\d{1,15})$/.exec(text) ?? [];
  if (file === undefined) throw badRequest("after must be the next of another page");
  return { file: Number(file), byte: Number(byte) };
}
