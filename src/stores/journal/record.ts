import { apply, type Change, difference } from "../../checkpoint/difference.js";
import { type DocumentHeader, parseHeader } from "../../codecs/header.js";
import { Patterns } from "../../codecs/patterns.js";
import { type CodecOptions, type CodecRecord, Pipeline } from "../../codecs/pipeline.js";
import { redactState } from "../../codecs/redact-state.js";
import { CheckpointCorruptionError, isWaymarkError, SerializationError } from "../../errors.js";
import { encode } from "../../state/encode.js";
import { type BodyJSON, decodeState, encodeBody, isPlainData } from "../../state/json.js";
import { own } from "../../state/own.js";
import type { Saved } from "../../state/record.js";
import { State } from "../../state/state.js";
import { faultOf, type LineKind, partsOf, toLine } from "./line.js";

const FORMAT = 1;

/** So many bytes of patches are read to load a State without a thought, however small it is. */
const ALWAYS_READ = 16 * 1024;

/** What a record says of itself in clear, also when it is encrypted. */
export interface RecordHeader extends DocumentHeader {
  /** The record of this run that comes before it; absent when that is `parentId`. */
  readonly previous?: string;
  /** How many records of the run to keep from this one on; absent for all. */
  readonly keep?: number;
}

/** The record that a State is saved as, and what it comes after. */
export interface Place extends Saved {
  /** The id of the run's newest record so far; `""` when there is none. */
  readonly previous: string;
  readonly parentId: string;
  readonly keep: number;
}

/** A State that was written, to tell the next one's difference to it. */
export interface Base {
  readonly checkpointId: string;
  /** All of it that can be large is shared with the State before. */
  readonly tree: BodyJSON;
  /** How many bytes the last snapshot took, and the patches since. */
  readonly snapshotBytes: number;
  readonly patchBytes: number;
  /** How many patches there are since the last snapshot. */
  readonly patches: number;
}

/** A line to write, and the base for the next. */
export interface Written {
  readonly kind: LineKind;
  readonly line: Buffer;
  readonly base: Base;
}

/** A line that was read and verified. */
export interface Read {
  readonly header: RecordHeader;
  readonly headerText: string;
  readonly content: string;
}

/** Turns States into lines of a journal and back. */
export class RecordCodec {
  readonly #pipeline: Pipeline;
  /** Whether nothing is compressed or encrypted. */
  readonly #clear: boolean;
  readonly #redact: Patterns | undefined;
  readonly #snapshotEvery: number;
  /** The JSON of what can't change, so that what stayed the same is the same in the next State too. */
  readonly #known = new WeakMap<object, unknown>();

  /** @throws ConfigError when an option is not what it must be. */
  constructor(options: CodecOptions | undefined, snapshotEvery: number) {
    this.#pipeline = new Pipeline(options);
    const { redact = [], compress, encrypt } = options ?? {};
    this.#clear = compress === undefined && encrypt === undefined;
    this.#redact = redact.length === 0 ? undefined : new Patterns(redact);
    this.#snapshotEvery = snapshotEvery;
  }

  /**
   * A State as a line: what changed since `base`, or all of it. All of it when
   *
   * - there is no base, or the run's newest record is another one;
   * - there are `snapshotEvery` patches since the last snapshot;
   * - this patch is larger than the last snapshot was;
   * - this patch and those since the last snapshot are together larger than it was, and than 16 KB.
   *
   * So what is read to load a State is at most about twice its size, and snapshots at most double
   * what is written.
   *
   * @throws SerializationError that names the path of what can't be saved.
   */
  encode<D extends object>(
    state: State<D>,
    place: Place,
    base: Base | undefined,
  ): Written | Promise<Written> {
    const whole = this.#treeOf(state);
    const tree = this.#redact === undefined ? whole : redactState(whole, this.#redact);
    const redacted = tree !== whole;
    const { checkpointId } = place;
    const usable =
      base !== undefined &&
      base.checkpointId === place.previous &&
      base.patches < this.#snapshotEvery - 1;
    if (usable) {
      const changes = stringify(difference(base.tree, tree));
      const { snapshotBytes, patchBytes, patches } = base;
      const most = Math.max(snapshotBytes, ALWAYS_READ);
      if (changes.length < snapshotBytes && patchBytes + changes.length <= most) {
        return this.#line("patch", state, place, changes, redacted, (line) => ({
          checkpointId,
          tree,
          snapshotBytes,
          patchBytes: patchBytes + line.length,
          patches: patches + 1,
        }));
      }
    }
    return this.#line("snapshot", state, place, stringify(tree), redacted, (line) => {
      return { checkpointId, tree, snapshotBytes: line.length, patchBytes: 0, patches: 0 };
    });
  }

  /**
   * The State of the last of these records; the first must be a snapshot, each other one a patch to
   * the one before.
   *
   * @throws CheckpointCorruptionError when one is not what was written.
   */
  async decode<D extends object>(records: readonly Read[], where: string): Promise<State<D>> {
    let tree: unknown;
    for (const [index, read] of records.entries()) {
      const opened = this.#open(read, where);
      const text = typeof opened === "string" ? opened : await opened;
      try {
        const content: unknown = JSON.parse(text);
        tree = index === 0 ? content : apply(tree, content as Change[]);
      } catch (error) {
        if (isWaymarkError(error)) throw error;
        throw corrupt(where, "what a record holds", String(error));
      }
    }
    const header = records.at(-1)?.header;
    if (header === undefined || typeof tree !== "object" || tree === null) {
      throw new SerializationError(where, "is no State");
    }
    const { runId, sequence, checkpointId, timestamp, step, status, reason } = header;
    const { node: checkpointNode } = header;
    const fields = { runId, sequence, checkpointId, timestamp, step, status, reason };
    return State.fromFields<D>(decodeState({ ...tree, ...fields, checkpointNode }));
  }

  /** Which of these records, of which no State could be made, is the first that can't be made use of. */
  async firstSpoiled(records: readonly Read[], where: string): Promise<number> {
    for (let count = 1; count < records.length; count++) {
      try {
        await this.decode(records.slice(0, count), where);
      } catch {
        return count - 1;
      }
    }
    return records.length - 1;
  }

  /** What of a State the header does not say. */
  #treeOf<D extends object>(state: State<D>): BodyJSON {
    const fields = State.fields(state);
    const { data } = fields;
    const isPlain = isPlainData(fields);
    return encodeBody(fields, isPlain ? data : encode(own(data), "data", this.#known));
  }

  /** Without a codec it is made at once: to wait for nothing costs as much as to write a small patch. */
  #line<D extends object>(
    kind: "snapshot" | "patch",
    state: State<D>,
    place: Place,
    text: string,
    redacted: boolean,
    baseOf: (line: Buffer) => Base,
  ): Written | Promise<Written> {
    const written = (line: Buffer): Written => ({ kind, line, base: baseOf(line) });
    if (this.#clear) {
      const record = redacted ? ({ redacted } as const) : undefined;
      return written(toLine(kind, headerText(state, place, record), text));
    }
    return this.#sealed(kind, state, place, text, redacted).then(written);
  }

  async #sealed<D extends object>(
    kind: "snapshot" | "patch",
    state: State<D>,
    place: Place,
    text: string,
    redacted: boolean,
  ): Promise<Buffer> {
    const { record, bytes } = await this.#pipeline.seal(text, redacted, (done) =>
      Buffer.from(headerText(state, place, done)),
    );
    const content = bytes === undefined ? text : `"${Buffer.from(bytes).toString("base64")}"`;
    return toLine(kind, headerText(state, place, record), content);
  }

  #open({ header, headerText: bound, content }: Read, where: string): string | Promise<string> {
    const { codec } = header;
    this.#pipeline.admit(codec, where);
    if (codec?.compress === undefined && codec?.encrypt === undefined) return content;
    const bytes = Buffer.from(content.slice(1, -1), "base64");
    return this.#pipeline.open(bytes, codec, Buffer.from(bound), where);
  }
}

/**
 * A record out of its line.
 *
 * @throws CheckpointCorruptionError when it is not what was written, or belongs to another run.
 */
export function readRecord(line: Buffer, where: string, runId: string): Read {
  const fault = faultOf(line);
  if (fault !== undefined) throw corrupt(where, fault.expected, fault.actual);
  const parts = partsOf(line);
  const header = parts && parseRecordHeader(parts.header);
  if (parts === undefined || header === undefined) {
    throw corrupt(where, "a record's header", "something else");
  }
  if (header.format > FORMAT) {
    throw new SerializationError(
      where,
      `is a record of format ${header.format}: a newer waymark wrote it, this one reads up to ${FORMAT}`,
    );
  }
  if (header.runId !== runId) throw corrupt(where, `run ${runId}`, `run ${header.runId}`);
  return { header, headerText: parts.header, content: parts.content };
}

/** A record's header out of its text; `undefined` when it is none. */
export function parseRecordHeader(text: string): RecordHeader | undefined {
  const header: RecordHeader | undefined = parseHeader(text);
  if (header === undefined) return undefined;
  const { previous = "", keep = 2 } = header;
  return typeof previous === "string" && Number.isSafeInteger(keep) && keep > 1
    ? header
    : undefined;
}

/** The id of the record that comes before one; `""` for the first. */
export function previousOf({
  previous,
  parentId,
}: Pick<RecordHeader, "previous" | "parentId">): string {
  return previous ?? parentId;
}

/** Whether each record is a patch to the one before. */
export function areLinked(reads: readonly Read[]): boolean {
  return reads.every((read, index) => {
    const before = reads[index - 1];
    return before === undefined || previousOf(read.header) === before.header.checkpointId;
  });
}

function headerText<D extends object>(
  state: State<D>,
  { sequence, checkpointId, parentId, previous, keep }: Place,
  codec: CodecRecord | undefined,
): string {
  const header: { [K in keyof RecordHeader]: RecordHeader[K] | undefined } = {
    runId: state.runId,
    sequence,
    format: FORMAT,
    step: state.step,
    node: state.checkpointNode,
    status: state.status,
    timestamp: state.timestamp,
    checkpointId,
    parentId,
    reason: state.reason,
    graph: state.graph?.name ?? "",
    // JSON leaves out what is undefined.
    previous: previous === parentId ? undefined : previous,
    keep: Number.isFinite(keep) ? keep : undefined,
    codec,
  };
  return JSON.stringify(header);
}

function stringify(value: unknown): string {
  try {
    return JSON.stringify(value);
  } catch (cause) {
    // All that is left to go wrong: V8 has no string as long as this.
    throw new SerializationError("state", `is too large for JSON: ${String(cause)}`, { cause });
  }
}

/** The error for what is not what was written. */
export function corrupt(where: string, expected: string, actual: string) {
  return new CheckpointCorruptionError(
    `${where} is corrupt: expected ${expected}, found ${actual}`,
    { expected, actual },
  );
}
