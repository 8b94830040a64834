import type { RunHistory, RunView } from "../../api.js";
import { amend } from "../address.js";

type Checkpoint = RunHistory["checkpoints"][number];

/** The step that is selected in the graph, the timeline, the history and the State. */
export interface Selection {
  /** The checkpoint; `undefined` if the run has none. */
  readonly checkpoint: Checkpoint | undefined;
  /** Whether a person selected it; if not, it is the newest and follows the run. */
  readonly chosen: boolean;
  readonly step: number | undefined;
  readonly node: string;
}

/** The selection in the address: `at`, a checkpoint's sequence, and `node`. */
export function selectionOf(
  query: URLSearchParams,
  view: RunView,
  history: RunHistory | undefined,
): Selection {
  const checkpoints = history?.checkpoints ?? [];
  const at = Number(query.get("at") ?? Number.NaN);
  const found = checkpoints.find(({ sequence }) => sequence === at);
  const checkpoint = found ?? checkpoints[0];
  const asked = query.get("node");
  if (found === undefined && asked === null) {
    return { checkpoint, chosen: false, step: undefined, node: "" };
  }
  const node = asked ?? (found === undefined ? "" : nodeOf(found, view));
  const isStep = found !== undefined && found.node === node;
  return { checkpoint, chosen: found !== undefined, step: isStep ? found.step : undefined, node };
}

/** The node of a checkpoint: the one that had completed, or was running. */
function nodeOf({ node, unfinished, status, sequence }: Checkpoint, view: RunView): string {
  const isNewest = sequence === view.sequence;
  if (isNewest && status === "failed") return view.error?.node ?? node;
  if (isNewest && unfinished) return view.unfinished?.node ?? node;
  return node;
}

/** Selects a checkpoint. */
export function selectCheckpoint(sequence: number): void {
  amend({ at: String(sequence), node: "" });
}

/** Selects a step, or the newest checkpoint for a node that has not completed. */
export function selectStep(
  { node, step }: { readonly node: string; readonly step: number | undefined },
  history: RunHistory | undefined,
): void {
  const checkpoints = history?.checkpoints ?? [];
  const found =
    step === undefined
      ? checkpoints[0]
      : (checkpoints.find((one) => one.step === step && !one.unfinished) ??
        checkpoints.find((one) => one.step === step));
  amend({ at: found === undefined ? "" : String(found.sequence), node });
}

/** Selects a node: its newest visit, or the previous one if a visit is already selected. */
export function selectNode(
  node: string,
  selection: Selection,
  view: RunView,
  history: RunHistory | undefined,
): void {
  const isCurrent = (view.error?.node ?? view.unfinished?.node) === node;
  const visits = view.steps.filter((step) => step.node === node).map(({ step }) => step);
  const order: (number | undefined)[] = [...visits.reverse()];
  if (isCurrent || order.length === 0) order.unshift(undefined);
  const at = selection.node === node ? order.indexOf(selection.step) : -1;
  selectStep({ node, step: order[(at + 1) % order.length] }, history);
}
