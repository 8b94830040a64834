import type { HistoryEntry } from "../checkpoint/store.js";
import { Ledger, type Output, type UsageTotals } from "../state/ledger.js";
import type { StepRecord } from "../state/steps.js";
import type { StepReport } from "./record.js";
import type { Visit } from "./replay.js";

/** What is known of a run besides its log. */
export interface Known {
  /** Newest first. */
  readonly history: readonly HistoryEntry[];
  /** The steps that the State remembers. */
  readonly records: readonly StepRecord[];
  readonly outputs: Readonly<Record<string, Output>>;
  /** How many steps the newest checkpoint holds. */
  readonly step: number;
  /** Whether a checkpoint holds a visit. */
  isSaved(visit: Visit): boolean;
}

/** The visits up to this one, oldest first. */
export function visitsUpTo(last: Visit | undefined): Visit[] {
  const visits: Visit[] = [];
  for (let visit = last; visit !== undefined; visit = visit.before) visits.push(visit);
  return visits.reverse();
}

/** The steps of a run: those that the log knows, and those that only a checkpoint knows. */
export function stepsOf(visits: readonly Visit[], known: Known): StepReport[] {
  const steps = new Map<number, StepReport>();
  for (const entry of known.history) {
    const { step, node, phase, timestamp } = entry;
    if (step > 0 && step <= known.step && !steps.has(step)) {
      steps.set(step, { ...unlogged, step, node, phase, completedAt: timestamp });
    }
  }
  for (const record of known.records) steps.set(record.step, recorded(record));
  // A step's failed visits come before the one that completed it.
  let failed: Visit[] = [];
  for (const visit of visits) {
    failed = failed.filter((one) => one.index === visit.index);
    if (visit.failed) {
      failed.push(visit);
      continue;
    }
    const phase = steps.get(visit.index + 1)?.phase ?? "";
    steps.set(visit.index + 1, { ...logged(visit, failed, known.isSaved(visit)), phase });
  }
  return [...steps.values()]
    .sort((a, b) => a.step - b.step)
    .map((step) => ({ ...step, outputs: outputsOf(step, known.outputs) }));
}

function recorded({ usage, ...record }: StepRecord): StepReport {
  // What is not counted is zero.
  const used = usage && ({ ...Ledger.empty.usage, ...usage } as UsageTotals);
  return { ...record, saved: true, usage: used, outputs: {} };
}

const unlogged = {
  saved: true,
  startedAt: undefined,
  durationMs: undefined,
  attempts: 1,
  usage: undefined,
  outputs: {},
};

function logged(visit: Visit, failed: readonly Visit[], saved: boolean): Omit<StepReport, "phase"> {
  const visits = [...failed, visit];
  const used = visits.reduce((sum, { used: more }) => sum.merge(Ledger.empty, more), Ledger.empty);
  return {
    step: visit.index + 1,
    node: visit.node,
    saved,
    startedAt: visits[0]?.startedAt,
    completedAt: visit.endedAt,
    durationMs: visits.reduce((sum, { durationMs }) => sum + durationMs, 0),
    attempts: visits.reduce((sum, { attempts }) => sum + attempts, 0),
    usage: used.usage,
    outputs: {},
  };
}

function outputsOf({ step, node }: StepReport, outputs: Readonly<Record<string, Output>>) {
  return Object.fromEntries(
    Object.entries(outputs).filter(([, made]) => made.step === step - 1 && made.node === node),
  );
}
