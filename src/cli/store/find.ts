import { isStep, namedBy } from "../../checkpoint/any-store.js";
import {
  type CheckpointAt,
  type CheckpointStore,
  type StoreContext,
  sizeWarning,
} from "../../checkpoint/store.js";
import { typed } from "../../report/shell.js";
import type { State } from "../../state/state.js";
import { missing, usage } from "../exit.js";
import type { OpenStore } from "./open.js";

/** The fewest characters by which an id can be abbreviated. */
const LEAST = 4;
const SHOWN = 5;

/** A run that was named. */
export interface NamedRun {
  readonly runId: string;
  /** The checkpoint, if its id is what named the run. */
  readonly at: CheckpointAt;
}

/**
 * Finds a run by its id, the beginning or end of it, its id as `list` abbreviates it, or the id of a checkpoint.
 *
 * @throws CommandError if there is none, or several.
 */
export async function findRun({ store, name }: OpenStore, given: string): Promise<NamedRun> {
  if (given === "") throw usage("the run's id must not be empty");
  const ids = await store.list();
  if (ids.includes(given)) return { runId: given, at: {} };
  const runId = only(given, ids, "runs");
  if (runId !== undefined) return { runId, at: {} };
  const owner = await store.find?.(given);
  if (owner !== undefined) return { runId: owner, at: { checkpointId: given } };
  throw missing(
    `there is no run or checkpoint "${given}" in ${name}`,
    "waymark list shows the runs; those that complete are removed unless checkpoint.preserve is true",
  );
}

/**
 * Finds a checkpoint of a run by its step, its id, which may be abbreviated, or by a completed node or phase,
 * whose newest checkpoint is meant.
 *
 * @param given - `undefined` for the checkpoint that named the run, or else the newest.
 * @throws CommandError if there is none, or several.
 */
export async function findAt(
  store: Pick<CheckpointStore, "history">,
  { runId, at }: NamedRun,
  given: string | undefined,
): Promise<CheckpointAt> {
  if (given === undefined) return at;
  if (isStep(given)) return { step: Number(given) };
  const history = (await store.history?.(runId)) ?? [];
  const ids = history.map((entry) => entry.checkpointId);
  const checkpointId = namedBy(given, history) ?? only(given, ids, "checkpoints");
  if (checkpointId !== undefined) return { checkpointId };
  throw missing(
    `run ${runId} has no step, checkpoint, node or phase "${given}"`,
    `${typed("history", runId)} shows them`,
  );
}

/** The one id that an abbreviation matches; `undefined` if none does. */
function only(given: string, ids: readonly string[], what: string): string | undefined {
  const [start = "", end = "", ...more] = given.split("…");
  const isCut = given.includes("…");
  const fits = (id: string): boolean =>
    isCut ? id.startsWith(start) && id.endsWith(end) : id.startsWith(given) || id.endsWith(given);
  const isLong = start.length + end.length >= LEAST && more.length === 0;
  const [first, ...others] = isLong ? ids.filter(fits) : [];
  if (first === undefined || others.length === 0) return first;
  const shown = [first, ...others].slice(0, SHOWN).join(", ");
  const rest = others.length >= SHOWN ? ` and ${others.length + 1 - SHOWN} more` : "";
  throw usage(`"${given}" fits several ${what}: ${shown}${rest}`);
}

/** A State loaded for display. */
export interface SeenState {
  readonly state: State<object>;
  /** Warnings about its checkpoint: that it replaces a corrupt one, or that it is large. */
  readonly warnings: readonly string[];
}

/** Loads a State, with the warnings that its store emits. */
export async function seeState(
  store: CheckpointStore,
  runId: string,
  at: CheckpointAt = {},
): Promise<SeenState> {
  const warnings: string[] = [];
  const emit: StoreContext["emit"] = (type, data) => {
    if (type === "checkpoint.warning" && "message" in data) warnings.push(data.message);
  };
  const state = await store.load<object>(runId, at, { emit });
  const size = sizeWarning(state);
  return { state, warnings: size === undefined ? warnings : [...warnings, size] };
}
