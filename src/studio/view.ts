import type { CheckpointStore, ClaimHolder } from "../checkpoint/store.js";
import { CheckpointNotFoundError, isWaymarkError } from "../errors.js";
import { innerPathOf } from "../nodes/child-store.js";
import { report } from "../report/index.js";
import type { RunReport } from "../report/record.js";
import { progressOf } from "../state/derive.js";
import { encode } from "../state/encode.js";
import { Ledger } from "../state/ledger.js";
import { isAnswerable, type PauseRequest } from "../state/pauses.js";
import { isUnderWay } from "../state/record.js";
import type { State } from "../state/state.js";
import type {
  AgentView,
  OutputView,
  PossibleAction,
  RunPause,
  RunRow,
  RunStep,
  RunView,
  StudioAction,
} from "./api.js";
import type { Studio } from "./context.js";
import { problemOf, type Runs, warningsOf } from "./runs.js";
import { bounded } from "./values.js";

/** A view has at most this many steps, the newest: a run may take any number of them. */
const MAX_STEPS = 500;

/** All about a run but its data. */
export async function viewOf(
  studio: Studio,
  runs: Runs,
  store: CheckpointStore,
  runId: string,
): Promise<RunView> {
  const { redaction, log } = studio.settings;
  const warnings: string[] = [];
  const emit = (type: string, data: object): void => {
    if (type === "checkpoint.warning") warnings.push(String(Reflect.get(data, "message")));
  };
  // Before the State: a run that ends in between must not look abandoned.
  const holder = await store.holder?.(runId);
  const listed = await runs.find(runId);
  try {
    const state = await newest(redaction.store(store), runId, { emit });
    if (state === undefined && log === undefined) throw new CheckpointNotFoundError(runId);
    const found = redaction.report(await reported(studio, runId, state));
    const run = listed ?? rowOf(found);
    if (state !== undefined) warnings.push(...warningsOf(state));
    return { ...(await describe(studio, run, state, found, holder)), warnings };
  } catch (error) {
    if (listed === undefined || isWaymarkError(error, "CHECKPOINT_NOT_FOUND")) throw error;
    const problem = problemOf(studio, runId, error);
    const actions = studio.settings.readOnly ? [] : possible(studio, ["delete"], runId);
    return { ...nothing(listed), problem, warnings, actions };
  }
}

async function newest(
  store: CheckpointStore,
  runId: string,
  context: { readonly emit: (type: string, data: object) => void },
): Promise<State<object> | undefined> {
  try {
    return await store.load<object>(runId, {}, context);
  } catch (error) {
    if (isWaymarkError(error, "CHECKPOINT_NOT_FOUND")) return undefined;
    throw error;
  }
}

/** The report of a State that is already loaded. */
function reported(
  { settings: { log } }: Studio,
  runId: string,
  state: State<object> | undefined,
): Promise<RunReport> {
  const load = async (): Promise<never> => {
    if (state === undefined) throw new CheckpointNotFoundError(runId);
    return state as never;
  };
  const loaded = { save: load, delete: load, list: load, load };
  return report(runId, { store: loaded, ...(log !== undefined && { log }) });
}

async function describe(
  studio: Studio,
  run: RunRow,
  state: State<object> | undefined,
  found: RunReport,
  holder: ClaimHolder | undefined,
): Promise<Omit<RunView, "warnings">> {
  const { steps, nextStep, totals, nodes, decisions, agents, confidence, repeated } = found;
  const progress = state && progressOf(state);
  const topology = await studio.topologyOf(state?.graph);
  const holding = isUnderWay(run.status) ? (holder ?? null) : null;
  return {
    run,
    checkpointId: state?.checkpointId ?? null,
    sequence: state?.sequence ?? 0,
    updatedAt: found.updatedAt,
    reason: state?.reason ?? "",
    parent: state?.parent ?? null,
    topology: topology ?? null,
    config: found.config,
    visits: state?.visits ?? {},
    tasks: progress?.tasks ?? [],
    steps: steps.slice(-MAX_STEPS).map((step) => stepOf(step, state)),
    unfinished: unfinishedOf(state),
    next: {
      node: nextNode(studio, state, nextStep) ?? null,
      holder: holding,
      command: nextCommand(studio, run, state, holding),
    },
    pauses: state === undefined ? [] : pausesOf(state),
    ledger: {
      usage: totals.usage,
      nodes,
      decisions,
      agents: mapValues(agents, ({ state: kept, ...agent }): AgentView => {
        return kept === undefined ? agent : { ...agent, state: bounded(encode(kept, "agent")) };
      }),
      outputs: mapValues(state?.ledger.outputs ?? {}, ({ ref, ...output }): OutputView => {
        return { ...output, ref: bounded(encode(ref, "output")) };
      }),
      confidence: confidence ?? null,
    },
    workedMs: totals.durationMs,
    resumes: found.resumes,
    crashes: found.crashes,
    repeated,
    error: found.error ?? null,
    actions: possible(studio, actionsOf(studio, run, state, holding), run.runId),
  };
}

/** The open pauses of a run, with the node that asks. */
export function pausesOf(state: State<object>): RunPause[] {
  const node = progressOf(state).unfinished?.node ?? state.checkpointNode;
  return state.pauses.map((pause) => pauseOf(pause, node, state.savedAt));
}

function pauseOf(
  { ask, onTimeout, ...pause }: PauseRequest,
  node: string,
  since: string,
): RunPause {
  return {
    ...pause,
    node,
    since,
    ...(ask !== undefined && { ask: bounded(encode(ask, "ask")) }),
    ...(onTimeout !== undefined && { onTimeout: bounded(encode(onTimeout, "onTimeout")) }),
  };
}

function stepOf(
  { outputs, ...step }: RunReport["steps"][number],
  state: State<object> | undefined,
): RunStep {
  const record = state?.steps.find((one) => one.step === step.step && one.node === step.node);
  const { items = [], failedAttempts = [], restarts = 0 } = record ?? {};
  return { ...step, items, failedAttempts, restarts, outputs: Object.keys(outputs) };
}

function unfinishedOf(state: State<object> | undefined): RunView["unfinished"] {
  const begun = state && state.status !== "completed" ? progressOf(state).begun : undefined;
  if (state === undefined || begun === undefined) return null;
  const { node, startedAt, durationMs, attempts, failedAttempts, items } = begun;
  const inner = innerPathOf(state);
  return { node, startedAt, durationMs, attempts, failedAttempts, items: items.list(), inner };
}

function nextNode(
  { settings: { graphs } }: Studio,
  state: State<object> | undefined,
  reported: string | undefined,
): string | undefined {
  if (state === undefined || state.status === "completed") return undefined;
  const known = state.nextNode ?? reported;
  if (known !== undefined) return known;
  try {
    return graphs.get(state.graph?.name ?? "")?.nextNode(state);
  } catch {
    // The graph has changed since; the run can be shown without the next node.
    return undefined;
  }
}

function nextCommand(
  studio: Studio,
  { runId, status }: RunRow,
  state: State<object> | undefined,
  holder: ClaimHolder | null,
): string | null {
  if (state === undefined || status === "completed") return null;
  if (holder !== null) return studio.command("watch", runId);
  const asks = state.pauses.some(({ ask }) => ask !== undefined);
  return studio.command("resume", runId, ...(asks ? ["--input", "JSON"] : []));
}

/** The actions that are possible now. */
function actionsOf(
  studio: Studio,
  { status, graph }: RunRow,
  state: State<object> | undefined,
  holder: ClaimHolder | null,
): StudioAction[] {
  const { readOnly, client, store } = studio.settings;
  if (readOnly) return [];
  if (state === undefined) return ["delete"];
  const canRun = studio.canRun(graph);
  const hasHistory = store.history !== undefined;
  const fork: StudioAction[] = hasHistory ? ["fork", ...(canRun ? (["replay"] as const) : [])] : [];
  if (holder !== null) {
    const isOurs = holder.pid === process.pid || client !== undefined;
    return [...(canRun && isOurs ? (["cancel"] as const) : []), ...fork];
  }
  const rest: StudioAction[] = [...fork, ...(hasHistory ? (["rollback"] as const) : []), "delete"];
  if (!canRun || status === "completed") return rest;
  if (status === "failed") return ["retry", ...rest];
  const isAsked = state.pauses.some((pause) => isAnswerable(pause));
  return [isAsked ? "answer" : "resume", ...rest];
}

/** The command of each action; there is none that cancels a run of another process. */
const verbs: Readonly<
  Record<Exclude<StudioAction, "cancel">, readonly [verb: string, ...options: string[]]>
> = {
  resume: ["resume"],
  retry: ["resume"],
  answer: ["resume", "--input", "JSON"],
  fork: ["fork", "--at", "CHECKPOINT", "--data", "JSON"],
  replay: ["replay", "--at", "CHECKPOINT"],
  rollback: ["rollback", "--at", "CHECKPOINT"],
  delete: ["delete"],
};

function possible(
  studio: Studio,
  actions: readonly StudioAction[],
  runId: string,
): PossibleAction[] {
  return actions.map((action) => {
    if (action === "cancel") return { action, command: "" };
    const [verb, ...options] = verbs[action];
    return { action, command: studio.command(verb, runId, ...options) };
  });
}

/** A run that only the log has. */
function rowOf(found: RunReport): RunRow {
  const { runId, graph, status, lastStep = "", phase, completedSteps, metadata, error } = found;
  const startedAt = found.startedAt ?? found.updatedAt;
  return {
    ...{ runId, graph, status, node: lastStep, nextNode: undefined, phase, metadata, startedAt },
    step: completedSteps,
    savedAt: found.updatedAt,
    timestamp: found.updatedAt,
    ...(error && { error }),
    elapsedMs: found.elapsedMs ?? 0,
    costUsd: found.totals.usage.costUsd,
    maxSteps: null,
    live: null,
    waitsFor: [],
    warnings: [],
  };
}

/** The view of a run that can't be read. */
function nothing(run: RunRow): Omit<RunView, "warnings" | "actions"> {
  const { usage, nodes, decisions } = Ledger.empty;
  return {
    ...{ run, checkpointId: null, sequence: 0, updatedAt: run.savedAt, reason: "", parent: null },
    ...{
      topology: null,
      config: {},
      visits: {},
      tasks: [],
      steps: [],
      unfinished: null,
      pauses: [],
    },
    next: { node: null, holder: null, command: null },
    ledger: { usage, nodes, decisions, agents: {}, outputs: {}, confidence: null },
    ...{ workedMs: 0, resumes: 0, crashes: 0, repeated: { visits: 0, usage }, error: null },
  };
}

function mapValues<T, U>(
  values: Readonly<Record<string, T>>,
  change: (value: T) => U,
): Record<string, U> {
  return Object.fromEntries(Object.entries(values).map(([key, value]) => [key, change(value)]));
}
