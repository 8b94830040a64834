import {
  CheckpointCorruptionError,
  CheckpointNotFoundError,
  messageOf,
  show,
  wordsOf,
} from "../../errors.js";
import type { EventMap } from "../../event-map.js";
import type { State } from "../../state/state.js";
import { printWarning } from "../../warnings.js";
import { kept } from "../arguments.js";
import { type CheckpointAt, isAt, isNewest, type StoreContext } from "../store.js";
import type { Chain, HeaderEntry, RecordBackend, StoredRecord } from "./backend.js";
import {
  areLinked,
  corrupt,
  type RecordCodec,
  stateFrom,
  type VerifiedRecord,
  verifyRecord,
} from "./codec.js";
import { indexEntryOf } from "./run-index.js";

/** How often to retry if the newest checkpoint of a run keeps changing. */
const CHANGES = 100;

export type Emit = StoreContext["emit"];

/** Emits a warning, and prints it if there can be no listener. */
export function warn(runId: string, data: EventMap["checkpoint.warning"], emit: Emit): void {
  if (emit === undefined) printWarning(runId, data);
  else emit("checkpoint.warning", data);
}

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

/** The search for one State of a run. Records found corrupt are set aside, and the next older one is tried. */
export class Search {
  readonly #backend: RecordBackend;
  readonly #codec: RecordCodec;
  readonly #runId: string;
  readonly #at: CheckpointAt;
  readonly #emit: Emit;
  readonly #inspects: boolean;
  readonly #faults: Fault[] = [];

  constructor(
    backend: RecordBackend,
    codec: RecordCodec,
    runId: string,
    at: CheckpointAt,
    context: StoreContext,
  ) {
    this.#backend = backend;
    this.#codec = codec;
    this.#runId = runId;
    this.#at = at;
    this.#emit = context.emit;
    this.#inspects = context.inspect ?? false;
  }

  /**
   * Returns the newest intact State, or the requested one.
   *
   * @throws CheckpointNotFoundError if there is none.
   * @throws CheckpointCorruptionError, listing them, if all are corrupt.
   */
  async find<D extends object>(): Promise<Loaded<D>> {
    let isKnown = false;
    for await (const chain of this.#candidates()) {
      isKnown = true;
      const state = await this.#stateOf<D>(chain);
      if (state === undefined || !isAt(this.#at, state)) continue;
      this.#warnOfFallback(state);
      return { state, chain };
    }
    throw await this.#nothingLeft(isKnown);
  }

  /** The chains to try, best first. The next one is tried if a chain is corrupt. */
  async *#candidates(): AsyncGenerator<Chain> {
    const runId = this.#runId;
    const faults = this.#faults;
    if (isNewest(this.#at)) {
      let below = Number.POSITIVE_INFINITY;
      let highest = 0;
      for (let changes = 0; changes < CHANGES; ) {
        const chain = await this.#backend.chain(runId, { below });
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
    for (const { sequence, header } of await keptEntries(this.#backend, runId)) {
      // The requested one may be one whose header can't be read.
      if (header !== undefined && !isAt(this.#at, header)) continue;
      const chain = await this.#backend.chain(runId, { sequence });
      if (chain !== undefined) yield chain;
    }
  }

  /** The State of a chain; `undefined` if one of its records is corrupt, which is set aside. */
  async #stateOf<D extends object>({ records }: Chain): Promise<State<D> | undefined> {
    const read = await this.#read<D>(records);
    if (!("fault" in read)) return read.state;
    await this.#setAside(read);
    return undefined;
  }

  /** The State of a chain, or which of its records is corrupt. */
  async #read<D extends object>(records: readonly StoredRecord[]): Promise<Read<D>> {
    const verified: VerifiedRecord[] = [];
    let at = records.at(-1);
    if (at === undefined) return { state: undefined };
    const where = this.#where(at.sequence);
    try {
      for (const stored of records) {
        at = stored;
        verified.push(verifyRecord(stored, this.#runId, this.#where(stored.sequence)));
      }
      const last = verified.at(-1);
      if (last === undefined || !areLinked(verified)) {
        const base = last?.header.base ?? at.sequence;
        throw corrupt(where, `the records from sequence ${base} on, which it builds on`, "a gap");
      }
      let tree: unknown;
      for (const [index, record] of verified.entries()) {
        // If this fails, the hash matches but the content is invalid: whoever changed it recomputed the hash.
        at = record.stored;
        const grown = this.#codec.grow(tree, record, index, where);
        tree = grown instanceof Promise ? await grown : grown;
      }
      return { state: stateFrom<D>(tree, last.header, where) };
    } catch (error) {
      if (!(error instanceof CheckpointCorruptionError)) throw error;
      return { sequence: at.sequence, fault: error };
    }
  }

  /** Sets a corrupt record aside. If that fails, the next older one is used all the same. */
  async #setAside(found: Fault): Promise<void> {
    const faults = this.#faults;
    if (this.#inspects) {
      faults.push(found);
      return;
    }
    const emit = this.#emit;
    const { sequence, fault } = found;
    const isNew = !faults.some((one) => one.sequence === sequence);
    const isBad = (): Promise<boolean> => this.#isBad(sequence);
    const { expected, actual } = fault;
    try {
      const file = isNew ? await this.#backend.setAside(this.#runId, sequence, isBad) : "";
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

  /** Whether the State of a record is still corrupt. */
  async #isBad(sequence: number): Promise<boolean> {
    const { records = [] } = (await this.#backend.chain(this.#runId, { sequence })) ?? {};
    return this.#read(records).then(
      (read) => "fault" in read,
      () => false,
    );
  }

  #warnOfFallback<D extends object>({ checkpointNode: node, sequence }: State<D>): void {
    if (this.#faults.length === 0) return;
    const message = `a corrupt checkpoint was skipped; the run is at sequence ${sequence}`;
    warn(this.#runId, { kind: "fallback", node, message }, this.#emit);
  }

  async #nothingLeft(isKnown: boolean): Promise<Error> {
    const [runId, at, faults] = [this.#runId, this.#at, this.#faults];
    const [first] = faults;
    const { place } = this.#backend;
    if (first !== undefined) {
      const { expected, actual } = first.fault;
      const reasons = faults.map(({ fault }) => fault.message).join("; ");
      const options = { expected, actual, cause: first.fault };
      const what = `run ${JSON.stringify(runId)} has no intact checkpoint ${wordsOf(at) || "left"}`;
      return new CheckpointCorruptionError(`${what}: ${reasons}`, options);
    }
    if (!isNewest(at) || !isKnown) return new CheckpointNotFoundError(runId, at);
    // A run that is being removed has neither checkpoints nor anything that was set aside.
    const entries = await this.#backend.headers(runId);
    if (!entries.some(({ setAside }) => setAside)) return new CheckpointNotFoundError(runId, at);
    return new CheckpointCorruptionError(
      `run ${show(runId)} has only corrupt checkpoints, which were set aside in ${place}`,
      { expected: "an intact checkpoint", actual: "only ones that were set aside" },
    );
  }

  #where(sequence: number): string {
    return `checkpoint ${sequence} of run ${show(this.#runId)} in ${this.#backend.place}`;
  }
}

/** The checkpoints of a run that are not set aside and that its newest record keeps, newest first. */
export async function keptEntries(backend: RecordBackend, runId: string): Promise<HeaderEntry[]> {
  const all = await backend.headers(runId);
  const entries = all.filter(({ setAside }) => !setAside);
  const newest = entries.find(({ header }) => header !== undefined)?.header;
  const { keep = Number.POSITIVE_INFINITY, keepPerPhase } = newest ?? {};
  const keepable = entries.map((entry) => ({ ...indexEntryOf(entry), entry }));
  const unreadable = entries.filter(({ header }) => header === undefined);
  const stays = new Set(kept(keepable, { keep, keepPerPhase }).map(({ entry }) => entry));
  for (const entry of unreadable) stays.add(entry);
  return entries.filter((entry) => stays.has(entry));
}
