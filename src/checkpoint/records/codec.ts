import * as crypto from "node:crypto";
import { Secrets } from "../../codecs/patterns.js";
import { type CodecOptions, Pipeline, type Sealed } from "../../codecs/pipeline.js";
import { redactJSON } from "../../codecs/redact-state.js";
import {
  CheckpointCorruptionError,
  isWaymarkError,
  SerializationError,
  show,
} from "../../errors.js";
import { encode } from "../../state/encode.js";
import {
  hasEnded,
  isProgressSave,
  listed,
  type Saved,
  type StateRecord,
} from "../../state/fields.js";
import { freezeCopy } from "../../state/freeze-copy.js";
import {
  type BodyJSON,
  decodeState,
  encodeBody,
  isPlainData,
  stateText,
} from "../../state/json.js";
import type { UserText } from "../../state/kinds.js";
import { recordOf, type State, stateOf } from "../../state/state.js";
import type { KeepRule } from "../arguments.js";
import { apply, type Change, recordDifference } from "../difference.js";
import type { NewRecord, StoredRecord } from "./backend.js";
import {
  FORMAT,
  headerText,
  newerFormat,
  parseHeader,
  previousOf,
  type RecordHeader,
} from "./header.js";

/** A load reads up to this many bytes of patches however small the State is. */
const ALWAYS_READ = 16 * 1024;

/** Reading one more record takes about as long as reading this many more bytes. */
const RECORD_BYTES = 1024;

/** The position of a State in the history of its run. */
export interface RecordPlace extends Saved, KeepRule {
  /** The checkpoint it was made from. */
  readonly parentId: string;
  /** The run's newest checkpoint so far; `""` if there is none, or it is unknown. */
  readonly previous: string;
}

/** A State that was written, so that the next record can hold only the changes since. */
export interface Base {
  readonly checkpointId: string;
  /** Everything large in it is shared with the State. */
  readonly tree: BodyJSON;
  /** The sequence of the last snapshot; below, its size, and the size and number of the patches since. */
  readonly snapshot: number;
  readonly snapshotBytes: number;
  readonly patchBytes: number;
  readonly patches: number;
}

/** A record to append, and the base for the next; no base if each is a snapshot. */
export interface Encoded {
  readonly record: NewRecord;
  readonly base: Base | undefined;
}

/** A record whose hash and header were verified. */
export interface VerifiedRecord {
  readonly header: RecordHeader;
  readonly stored: StoredRecord;
}

/** Converts States to records and back. The only place where codecs and redaction are applied. */
export class RecordCodec {
  readonly #pipeline: Pipeline;
  readonly #secrets: Secrets | undefined;
  /** The redacted copies of frozen trees. */
  readonly #redacted = new WeakMap<object, unknown>();
  readonly #snapshotEvery: number;
  /** The JSON of frozen values, so that what did not change is the same object in the next State. */
  readonly #known = new WeakMap<object, unknown>();

  /** @throws ConfigError if an option is invalid; its message never contains a key. */
  constructor(options: CodecOptions | undefined, snapshotEvery: number) {
    this.#pipeline = new Pipeline(options);
    const redact = options?.redact ?? [];
    this.#secrets = redact.length === 0 ? undefined : new Secrets(redact);
    this.#snapshotEvery = snapshotEvery;
  }

  /**
   * Encodes a State as a record: its changes since `base`, or all of it. All of it if
   *
   * - there is no base, or the run's newest record is another one;
   * - there are already `snapshotEvery` patches since the last snapshot;
   * - this patch is larger than the last snapshot was;
   * - this patch and those since the last snapshot are together larger than it was, and than 16 KB;
   * - the run has ended, so that it will only be read, and those patches take longer to read than the
   *   snapshot.
   *
   * So loading a State reads at most about twice its size, and snapshots at most double what is written.
   *
   * @throws SerializationError, with its path, if a value can't be saved.
   */
  encode<D extends object>(
    state: State<D>,
    place: RecordPlace,
    base: Base | undefined,
  ): Encoded | Promise<Encoded> {
    const stateRecord = recordOf(state);
    const whole = this.#treeOf(stateRecord);
    const tree = this.#redact(whole, stateText);
    const from = base?.checkpointId === place.previous ? base : undefined;
    const patch = from && this.#patch(from, tree, hasEnded(state));
    const before = patch === undefined ? undefined : from;
    const made = newHeader(stateRecord, place, before?.snapshot);
    const shown = this.#redact(made, headerText);
    const redacted = tree !== whole || shown !== made;
    const header = redacted ? { ...shown, codec: { redacted } } : shown;
    const content = patch ?? stringify(tree);
    const encoded = ({ header, content }: Sealed<RecordHeader>): Encoded => {
      const record = newRecord(header, content);
      return { record, base: this.#snapshotEvery === 1 ? undefined : baseOf(record, tree, before) };
    };
    // Awaiting nothing costs as much as writing a small patch.
    if (this.#pipeline.isClear) return encoded({ header, content });
    const { error: _error, ...silent } = header;
    return this.#pipeline.seal(this.#pipeline.encrypts ? silent : header, content).then(encoded);
  }

  /** The changes since a base; `undefined` if the State is to be written whole. */
  #patch(base: Base, tree: BodyJSON, isEnded: boolean): string | undefined {
    const { snapshotBytes, patchBytes, patches } = base;
    if (patches >= this.#snapshotEvery - 1) return undefined;
    if (isEnded && patchBytes + patches * RECORD_BYTES > snapshotBytes) return undefined;
    const changes = stringify(recordDifference(base.tree, tree));
    const most = Math.max(snapshotBytes, ALWAYS_READ);
    const isSmall = changes.length < snapshotBytes && patchBytes + changes.length <= most;
    return isSmall ? changes : undefined;
  }

  /**
   * The tree of a record: of a patch, made from the tree of the record before it, which it mutates. Synchronous without a
   * codec.
   *
   * @param where - names the record in errors.
   * @throws CheckpointCorruptionError if it is damaged.
   */
  grow(tree: unknown, record: VerifiedRecord, where: string): unknown | Promise<unknown> {
    const { header, stored } = record;
    const opened = this.#pipeline.open(stored.content, header.codec, stored.header, where);
    const grown = (text: string): unknown => {
      try {
        const content: unknown = JSON.parse(text);
        return header.base === undefined ? content : apply(tree, content as Change[]);
      } catch (error) {
        if (isWaymarkError(error))
          throw corrupt(where, "a patch to the record before", error.message);
        throw corrupt(where, "JSON", String(error));
      }
    };
    return typeof opened === "string" ? grown(opened) : opened.then(grown);
  }

  #redact<T extends object>(json: T, userText: UserText): T {
    const secrets = this.#secrets;
    return secrets === undefined ? json : redactJSON(json, userText, secrets, this.#redacted);
  }

  /** The part of a State that the header does not have. */
  #treeOf(record: StateRecord): BodyJSON {
    const { data } = record;
    const isPlain = isPlainData(record);
    return encodeBody(record, isPlain ? data : encode(freezeCopy(data), "data", this.#known));
  }
}

/**
 * Returns a record's header after verifying its hash.
 *
 * @throws CheckpointCorruptionError if it is damaged, or belongs to another run.
 * @throws SerializationError if a newer version wrote it.
 */
export function verifyRecord(stored: StoredRecord, runId: string, where: string): VerifiedRecord {
  if (stored.fault !== undefined) throw stored.fault;
  const actual = hashOf(stored.header, stored.content);
  if (actual !== stored.sha256) throw corrupt(where, stored.sha256, actual);
  const header = parseHeader(stored.header);
  if (header === undefined) throw corrupt(where, "a record's header", "something else");
  if (header.format > FORMAT) throw newerFormat(where, header.format);
  compare(where, "run", runId, header.runId);
  compare(where, "sequence", stored.sequence, header.sequence);
  return { header, stored };
}

/** Whether a record continues a chain: as a patch to the record before it, or as the snapshot that begins it. */
export function isLinked({ header }: VerifiedRecord, before: VerifiedRecord | undefined): boolean {
  if (before === undefined) return header.base === undefined;
  const { base = before.header.sequence, checkpointId } = before.header;
  return header.base === base && previousOf(header) === checkpointId;
}

/** Makes the State from the tree of its record. */
export function stateFrom<D extends object>(
  tree: unknown,
  header: RecordHeader,
  where: string,
): State<D> {
  if (typeof tree !== "object" || tree === null) throw corrupt(where, "a State", show(tree));
  return stateOf<D>(decodeState(tree, header));
}

/** The error for a damaged record. */
export function corrupt(
  where: string,
  expected: string,
  actual: string,
): CheckpointCorruptionError {
  return new CheckpointCorruptionError(
    `${where} is corrupt: expected ${expected}, found ${actual}`,
    { expected, actual },
  );
}

type Writable<T> = { -readonly [K in keyof T]: T[K] };

function newHeader(
  { identity, progress }: StateRecord,
  place: RecordPlace,
  base: number | undefined,
): RecordHeader {
  const { parentId, previous, keep, keepPerPhase } = place;
  const own = { format: FORMAT, parentId };
  const header: Writable<RecordHeader> = listed(
    { identity, progress, saved: place },
    "header",
    own,
  );
  if (previous !== parentId) header.previous = previous;
  if (base !== undefined) header.base = base;
  if (isProgressSave(progress)) header.unfinished = true;
  if (Number.isFinite(keep)) header.keep = keep;
  if (keepPerPhase !== undefined) header.keepPerPhase = keepPerPhase;
  return header;
}

/** The size of a record. */
export function bytesOf({ header, content }: Pick<StoredRecord, "header" | "content">): number {
  return Buffer.byteLength(header) + Buffer.byteLength(content);
}

function newRecord(fields: RecordHeader, content: string): NewRecord {
  const header = JSON.stringify(fields);
  const bytes = bytesOf({ header, content });
  const { sequence, base = sequence } = fields;
  return { sequence, header, content, sha256: hashOf(header, content), fields, base, bytes };
}

/** @param before - the base that the record is a patch to; `undefined` for a snapshot. */
function baseOf({ fields, bytes }: NewRecord, tree: BodyJSON, before: Base | undefined): Base {
  const { checkpointId, sequence } = fields;
  return {
    checkpointId,
    tree,
    snapshot: before?.snapshot ?? sequence,
    snapshotBytes: before?.snapshotBytes ?? bytes,
    patchBytes: before === undefined ? 0 : before.patchBytes + bytes,
    patches: before === undefined ? 0 : before.patches + 1,
  };
}

// One call, in Node 20.12 and newer; faster for small inputs.
const hashOnce: typeof crypto.hash | undefined = crypto.hash;

/** The SHA-256 of a record, in hex. */
export function hashOf(header: string, content: string): string {
  const text = `${header}\n${content}`;
  return hashOnce?.("sha256", text) ?? crypto.createHash("sha256").update(text).digest("hex");
}

function compare(where: string, what: string, expected: unknown, actual: unknown): void {
  if (expected !== actual)
    throw corrupt(where, `${what} ${show(expected)}`, `${what} ${show(actual)}`);
}

function stringify(value: unknown): string {
  try {
    return JSON.stringify(value);
  } catch (cause) {
    // The only failure left: the text exceeds V8's longest string.
    throw new SerializationError("state", `is too large for JSON: ${String(cause)}`, { cause });
  }
}
