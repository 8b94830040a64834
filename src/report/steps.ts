import { Ledger, type Output, type UsageTotals } from "../state/ledger.js";
import type { StepRecord } from "../state/steps.js";
import type { StepReport } from "./record.js";
import type { Visit } from "./replay.js";

/** What is known about a run besides its log. */
export interface Known {
  /** The steps in the State. */
  readonly records: readonly StepRecord[];
  readonly outputs: Readonly<Record<string, Output>>;
  /** Whether a checkpoint contains a visit. */
  isSaved(visit: Visit): boolean;
}

/** All visits up to this one, oldest first. */
export function visitsUpTo(last: Visit | undefined): Visit[] {
  const visits: Visit[] = [];
  for (let visit = last; visit !== undefined; visit = visit.before) visits.push(visit);
  return visits.reverse();
}

/** The steps of a run: those in the checkpoint, and those that only the log has. */
export function stepsOf(visits: readonly Visit[], known: Known): StepReport[] {
  const steps = new Map<number, StepReport>();
  for (const record of known.records) steps.set(record.step, recorded(record));
  // A step's failed visits come before the one that completed it.
  let failed: Visit[] = [];
  for (const visit of visits) {
    failed = failed.filter((one) => one.index === visit.index);
    if (visit.failed) {
      failed.push(visit);
      continue;
    }
    const isSaved = known.isSaved(visit);
    const record = steps.get(visit.index + 1);
    if (record !== undefined && isSaved) continue;
    const phase = record?.phase ?? "";
    steps.set(visit.index + 1, { ...logged(visit, failed, isSaved), phase });
  }
  return [...steps.values()]
    .sort((a, b) => a.step - b.step)
    .map((step) => ({ ...step, outputs: outputsOf(step, known.outputs) }));
}

function recorded({ usage, ...record }: StepRecord): StepReport {
  // Counters that are missing are zero.
  const used = usage && ({ ...Ledger.empty.usage, ...usage } as UsageTotals);
  return { ...record, saved: true, usage: used, outputs: {} };
}

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
