import {
  CheckpointCorruptionError,
  CheckpointNotFoundError,
  messageOf,
  show,
  wordsOf,
} from "../../errors.js";
import type { State } from "../../state/state.js";
import { warn } from "../../warnings.js";
import { type CheckpointAt, isAt, isNewest, type StoreContext } from "../store.js";
import type { Chain, RecordBackend, StoredRecord } from "./backend.js";
import {
  corrupt,
  isLinked,
  type RecordCodec,
  stateFrom,
  type VerifiedRecord,
  verifyRecord,
} from "./codec.js";
import { keptEntries } from "./upkeep.js";

/** How often to retry if the newest checkpoint of a run keeps changing. */
const CHANGES = 100;

/** A State, and the records that it was made from. */
export interface Loaded<D extends object> {
  readonly state: State<D>;
  readonly chain: Chain;
}

/** The State of a chain, `undefined` for an empty one; or its corrupt record. */
type Read<D extends object> = { readonly state: State<D> | undefined } | Fault;

/** A corrupt record. */
interface Fault {
  readonly sequence: number;
  readonly fault: CheckpointCorruptionError;
}

/** What to search for one State of a run. */
export interface Wanted {
  readonly backend: RecordBackend;
  readonly codec: RecordCodec;
  readonly runId: string;
  readonly at: CheckpointAt;
  readonly context: StoreContext;
}

/**
 * Returns the newest intact State of a run, or the requested one. Records found corrupt are set aside, and the next older
 * one is tried.
 *
 * @throws CheckpointNotFoundError if there is none.
 * @throws CheckpointCorruptionError, listing them, if all are corrupt.
 */
export async function search<D extends object>(wanted: Wanted): Promise<Loaded<D>> {
  const { runId, at, context } = wanted;
  const faults: Fault[] = [];
  let isKnown = false;
  for await (const chain of candidates(wanted, faults)) {
    isKnown = true;
    const read = await stateOf<D>(chain.records, wanted);
    if ("fault" in read) await setAside(read, wanted, faults);
    else if (read.state !== undefined && isAt(at, read.state)) {
      const { state } = read;
      const { checkpointNode: node, sequence } = state;
      const message = `a corrupt checkpoint was skipped; the run is at sequence ${sequence}`;
      if (faults.length > 0) warn(runId, { kind: "fallback", node, message }, context.emit);
      return { state, chain };
    }
  }
  throw await nothingLeft(wanted, faults, isKnown);
}

/** The chains to try, best first. The next one is tried if a chain is corrupt. */
async function* candidates(
  { backend, runId, at }: Wanted,
  faults: readonly Fault[],
): AsyncGenerator<Chain> {
  if (isNewest(at)) {
    let below = Number.POSITIVE_INFINITY;
    let highest = 0;
    for (let changes = 0; changes < CHANGES; ) {
      const chain = await backend.chain(runId, { below });
      if (chain === undefined) return;
      const known = faults.length;
      const isMoved = below < Number.POSITIVE_INFINITY && chain.head.sequence !== highest;
      highest = chain.head.sequence;
      if (!isMoved) yield chain;
      const last = chain.records.at(-1);
      if (last === undefined && !isMoved) return;
      if (faults.length > known) {
        below = last?.sequence ?? below;
      } else {
        // Another process has saved or removed the newest one: an older one must not take its place.
        below = Number.POSITIVE_INFINITY;
        changes++;
      }
    }
    throw new Error(`run ${show(runId)} changed ${CHANGES} times while it was read`);
  }
  for (const { sequence, header } of await keptEntries(backend, runId)) {
    // The requested one may be one whose header can't be read.
    if (header !== undefined && !isAt(at, header)) continue;
    const chain = await backend.chain(runId, { sequence });
    if (chain !== undefined) yield chain;
  }
}

/** The State of a chain, or which of its records is corrupt. */
async function stateOf<D extends object>(
  records: readonly StoredRecord[],
  { backend, codec, runId }: Wanted,
): Promise<Read<D>> {
  const whereOf = (sequence: number): string =>
    `checkpoint ${sequence} of run ${show(runId)} in ${backend.place}`;
  const verified: VerifiedRecord[] = [];
  let at = records.at(-1);
  if (at === undefined) return { state: undefined };
  const where = whereOf(at.sequence);
  try {
    for (const stored of records) {
      at = stored;
      verified.push(verifyRecord(stored, runId, whereOf(stored.sequence)));
    }
    const last = verified.at(-1);
    const areLinked = verified.every((record, index) => isLinked(record, verified[index - 1]));
    if (last === undefined || !areLinked) {
      const base = last?.header.base ?? at.sequence;
      throw corrupt(where, `the records from sequence ${base} on, which it builds on`, "a gap");
    }
    let tree: unknown;
    for (const record of verified) {
      // If this fails, the hash matches but the content is invalid: whoever changed it recomputed the hash.
      at = record.stored;
      const grown = codec.grow(tree, record, where);
      tree = grown instanceof Promise ? await grown : grown;
    }
    return { state: stateFrom<D>(tree, last.header, where) };
  } catch (error) {
    if (!(error instanceof CheckpointCorruptionError)) throw error;
    return { sequence: at.sequence, fault: error };
  }
}

/** Sets a corrupt record aside. If that fails, the next older one is used all the same. */
async function setAside(found: Fault, wanted: Wanted, faults: Fault[]): Promise<void> {
  const { backend, runId, context } = wanted;
  const { emit, inspect } = context;
  if (inspect) {
    faults.push(found);
    return;
  }
  const { sequence, fault } = found;
  const { expected, actual } = fault;
  const isNew = !faults.some((one) => one.sequence === sequence);
  const isBad = async (): Promise<boolean> => {
    const { records = [] } = (await backend.chain(runId, { sequence })) ?? {};
    return stateOf(records, wanted).then(
      (read) => "fault" in read,
      () => false,
    );
  };
  try {
    const file = isNew ? await backend.setAside(runId, sequence, isBad) : "";
    // It was still being written, or has been removed since: look for the newest one again.
    if (file === undefined) return;
    faults.push(found);
    if (isNew) emit?.("checkpoint.quarantine", { file, expected, actual });
  } catch (error) {
    faults.push(found);
    const problem = `${fault.message}; it could not be set aside: ${messageOf(error)}`;
    emit?.("checkpoint.error", { action: "load", node: "", error: problem });
  }
}

async function nothingLeft(
  { backend, runId, at }: Wanted,
  faults: readonly Fault[],
  isKnown: boolean,
): Promise<Error> {
  const [first] = faults;
  if (first !== undefined) {
    const { expected, actual } = first.fault;
    const reasons = faults.map(({ fault }) => fault.message).join("; ");
    const options = { expected, actual, cause: first.fault };
    const what = `run ${JSON.stringify(runId)} has no intact checkpoint ${wordsOf(at) || "left"}`;
    return new CheckpointCorruptionError(`${what}: ${reasons}`, options);
  }
  if (!isNewest(at) || !isKnown) return new CheckpointNotFoundError(runId, at);
  // A run that is being removed has neither checkpoints nor anything that was set aside.
  const entries = await backend.headers(runId);
  if (!entries.some(({ setAside }) => setAside)) return new CheckpointNotFoundError(runId, at);
  return new CheckpointCorruptionError(
    `run ${show(runId)} has only corrupt checkpoints, which were set aside in ${backend.place}`,
    { expected: "an intact checkpoint", actual: "only ones that were set aside" },
  );
}
