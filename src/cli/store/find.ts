import type { CheckpointAt, CheckpointStore, StoreContext } from "../../checkpoint/store.js";
import { isWaymarkError } from "../../errors.js";
import type { State } from "../../state/state.js";
import { missing, usage } from "../exit.js";
import { typed } from "../output/shell.js";
import type { OpenStore } from "./open.js";

/** Fewer characters of an id than this name nothing. */
const LEAST = 4;
const SHOWN = 5;

/**
 * The id of a run: as it was given, or the only one that begins so.
 *
 * @throws CommandError when there is none, or several.
 */
export async function findRun({ store, name }: OpenStore, given: string): Promise<string> {
  if (given === "") throw usage("the run's id is empty");
  const ids = await store.list();
  if (ids.includes(given)) return given;
  return only(given, ids, "run", `in ${name}`, "waymark list shows the runs");
}

/**
 * A checkpoint of a run, by its step, its id or the beginning of its id.
 *
 * @throws CommandError when there is none, or several.
 */
export async function findAt(
  store: Pick<CheckpointStore, "history">,
  runId: string,
  given: string,
): Promise<CheckpointAt> {
  if (/^\d{1,9}$/.test(given)) return { step: Number(given) };
  const history = (await store.history?.(runId)) ?? [];
  const ids = history.map(({ checkpointId }) => checkpointId);
  if (ids.includes(given)) return { checkpointId: given };
  const hint = `${typed("history", runId)} shows them`;
  return { checkpointId: only(given, ids, "checkpoint", `in run ${runId}`, hint) };
}

function only(
  given: string,
  ids: readonly string[],
  what: string,
  where: string,
  hint: string,
): string {
  const fitting = given.length < LEAST ? [] : ids.filter((id) => id.startsWith(given));
  const [first, ...others] = fitting;
  if (first === undefined) throw missing(`there is no ${what} "${given}" ${where}`, hint);
  if (others.length === 0) return first;
  const shown = fitting.slice(0, SHOWN).join(", ");
  const more = fitting.length > SHOWN ? ` and ${fitting.length - SHOWN} more` : "";
  throw usage(`"${given}" is the beginning of several ${what}s: ${shown}${more}`);
}

/** A run's newest State; `undefined` when the store has none. */
export async function newestOf(
  { store }: OpenStore,
  runId: string,
  emit?: StoreContext["emit"],
): Promise<State<object> | undefined> {
  try {
    return await store.load<object>(runId, {}, { emit });
  } catch (error) {
    if (isWaymarkError(error, "CHECKPOINT_NOT_FOUND")) return undefined;
    throw error;
  }
}
