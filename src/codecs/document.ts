import { CheckpointCorruptionError, SerializationError, show } from "../errors.js";
import { decodeState, type StateJSON } from "../state/json.js";
import { State } from "../state/state.js";
import { sha256 } from "./hash.js";
import { type DocumentHeader, parseHeader } from "./header.js";
import { Patterns } from "./patterns.js";
import { type CodecOptions, type CodecRecord, Pipeline } from "./pipeline.js";
import { redactState } from "./redact-state.js";

export type { CodecOptions, DocumentHeader };

/*
 * A document is one JSON object on three lines:
 *
 *   {"waymark":1,"sha256":"<64 hex digits>",
 *   "header":{"format":1,…},
 *   "state":{…}}
 *
 * with `"payload":"<base64>"` in place of the state when it is compressed or encrypted. The hash is
 * over every byte from the second line to the end, so data and hash are one file or row, and no bit
 * can change unseen. The format stands in the header too, so that a flipped bit in the first
 * line is not taken for a newer version.
 */
const FORMAT = 1;
const START = `{"waymark":${FORMAT},"sha256":"`;
const HASH_LENGTH = 64;
const HASH_END = '",\n';
const FIRST_LINE = START.length + HASH_LENGTH + HASH_END.length;
const BLANK = START + "0".repeat(HASH_LENGTH) + HASH_END;
const HEADER = '"header":';
const STATE = '"state":';
const PAYLOAD = '"payload":"';
const NEWLINE = 10;

/** Which checkpoint a document has to be. */
export interface ExpectedCheckpoint {
  /** The run it must belong to. */
  readonly runId: string;
  /** The place it must have in that run; any when not given. */
  readonly sequence?: number | undefined;
}

/** What a document holds. */
export interface DecodedDocument<D extends object> {
  /** What it says in clear. */
  readonly header: DocumentHeader;
  /** The State, as it was saved. */
  readonly state: State<D>;
}

/**
 * The one format in which every durable store keeps a checkpoint: a JSON document that a person can
 * read, with a hash of all that is in it, compressed and encrypted as the options say.
 *
 * @example
 * ```ts
 * import { State } from "waymark";
 * import { DocumentCodec } from "waymark/codecs";
 *
 * const codec = new DocumentCodec({ compress: "brotli" });
 * const state = State.create({ topic: "cairns" }).savedAs({ checkpointId: "c1", sequence: 1 });
 * const bytes = await codec.encode(state, "");
 * const { header } = await codec.decode(bytes, "c1.json", { runId: state.runId, sequence: 1 });
 * console.log(header.checkpointId); // c1
 * ```
 */
export class DocumentCodec {
  readonly #pipeline: Pipeline;
  readonly #redact: Patterns | undefined;

  /** @throws ConfigError when an option is not what it must be; a key is never in its message. */
  constructor(options: CodecOptions = {}) {
    this.#pipeline = new Pipeline(options);
    const { redact = [] } = options;
    this.#redact = redact.length === 0 ? undefined : new Patterns(redact);
  }

  /**
   * A State as a document. It must carry the id and the sequence that it is saved as.
   *
   * @param parentId - the checkpoint it was made from.
   * @throws SerializationError that names the path of what can't be saved, or says that it is too large.
   * @throws ConfigError when its key can't be had.
   */
  async encode<D extends object>(state: State<D>, parentId: string): Promise<Uint8Array> {
    const whole = state.toJSON();
    const json = this.#redact === undefined ? whole : redactState(whole, this.#redact);
    const text = stringify(json);
    const { record, bytes } = await this.#pipeline.seal(text, json !== whole, (done) =>
      Buffer.from(headerText(state, parentId, done)),
    );
    const content =
      bytes === undefined ? STATE + text : `${PAYLOAD}${toBuffer(bytes).toString("base64")}"`;
    return assemble(headerText(state, parentId, record), content);
  }

  /**
   * A document's header and State. Nothing is parsed before the hash is found right.
   *
   * @param where - names the file or the row in errors.
   * @throws CheckpointCorruptionError when it is not what was written, or another checkpoint than expected.
   * @throws SerializationError when it is of a newer format, not encrypted although it must be, or too large.
   * @throws ConfigError when its key is missing, or is another than it was encrypted with.
   */
  async decode<D extends object>(
    bytes: Uint8Array,
    where: string,
    expected: ExpectedCheckpoint,
  ): Promise<DecodedDocument<D>> {
    const buffer = toBuffer(bytes);
    verify(buffer, where);
    const header = DocumentCodec.header(buffer);
    if (header === undefined) throw corrupt(where, "a document's header", "something else");
    compare(where, "run", expected.runId, header.runId);
    compare(where, "sequence", expected.sequence ?? header.sequence, header.sequence);
    this.#pipeline.admit(header.codec, where);
    const end = buffer.indexOf(NEWLINE, FIRST_LINE);
    const { codec } = header;
    const text =
      codec?.compress === undefined && codec?.encrypt === undefined
        ? content(buffer, end + 1, STATE, "}\n", where).toString()
        : await this.#pipeline.open(
            Buffer.from(
              content(buffer, end + 1, PAYLOAD, '"}\n', where).toString("latin1"),
              "base64",
            ),
            codec,
            buffer.subarray(FIRST_LINE + HEADER.length, end - 1),
            where,
          );
    const state = State.fromFields<D>(decodeState(parse(text, where)));
    compare(where, "run", header.runId, state.runId);
    compare(where, "sequence", header.sequence, state.sequence);
    compare(where, "checkpoint", header.checkpointId, state.checkpointId);
    return { header, state };
  }

  /**
   * Only the header, out of a document's first bytes; 4 KB are mostly enough. Nothing is verified.
   *
   * @returns `undefined` when it takes more bytes, or they are no document that this version reads.
   */
  static header(bytes: Uint8Array): DocumentHeader | undefined {
    const buffer = toBuffer(bytes);
    if (buffer.toString("latin1", 0, START.length) !== START) return undefined;
    const end = buffer.indexOf(NEWLINE, FIRST_LINE);
    if (end < 0) return undefined;
    const line = buffer.toString("utf8", FIRST_LINE, end);
    if (!line.startsWith(HEADER) || !line.endsWith(",")) return undefined;
    return parseHeader(line.slice(HEADER.length, -1));
  }
}

/** What is on a document's last line, between how it starts and how it ends. */
function content(
  buffer: Buffer,
  from: number,
  start: string,
  ending: string,
  where: string,
): Buffer {
  const first = from + start.length;
  const last = buffer.length - ending.length;
  if (
    last < first ||
    buffer.toString("latin1", from, first) !== start ||
    buffer.toString("latin1", last) !== ending
  ) {
    throw corrupt(where, `a line that starts with ${start}`, "another");
  }
  return buffer.subarray(first, last);
}

function stringify(json: StateJSON): string {
  try {
    return JSON.stringify(json);
  } catch (cause) {
    // All that is left to go wrong: V8 has no string as long as this.
    throw new SerializationError("state", `is too large for JSON: ${String(cause)}`, { cause });
  }
}

function headerText<D extends object>(
  state: State<D>,
  parentId: string,
  codec: CodecRecord | undefined,
): string {
  const header: DocumentHeader = {
    format: FORMAT,
    runId: state.runId,
    sequence: state.sequence,
    step: state.step,
    node: state.checkpointNode,
    status: state.status,
    timestamp: state.timestamp,
    checkpointId: state.checkpointId,
    parentId,
    reason: state.reason,
    graph: state.graph?.name ?? "",
    ...(codec && { codec }),
  };
  return JSON.stringify(header);
}

function assemble(header: string, content: string): Uint8Array {
  const buffer = Buffer.from(`${BLANK}${HEADER}${header},\n${content}}\n`);
  buffer.write(hashOf(buffer), START.length, "latin1");
  return buffer;
}

function hashOf(document: Buffer): string {
  return sha256(document.subarray(FIRST_LINE));
}

/** Refuses what is not, byte by byte, what was written. */
function verify(buffer: Buffer, where: string): void {
  const first = buffer.toString("latin1", 0, FIRST_LINE);
  const actual = hashOf(buffer);
  if (first !== START + actual + HASH_END) throw faultOf(buffer, first, actual, where);
}

function faultOf(buffer: Buffer, first: string, actual: string, where: string): Error {
  const newer = /^\{"waymark":([1-9]\d{0,8}),/.exec(first)?.[1];
  if (newer !== undefined && Number(newer) > FORMAT && !isOurs(buffer)) {
    return new SerializationError(
      where,
      `is a document of format ${newer}: a newer waymark wrote it, this one reads up to ${FORMAT}`,
    );
  }
  const [, version, written] =
    /^\{"waymark":(\d{1,9}),"sha256":"([\da-f]{64})",\n$/.exec(first) ?? [];
  if (version === undefined || written === undefined) {
    const found = buffer.length === 0 ? "nothing: it is empty" : "something else";
    return corrupt(where, "a waymark document", found);
  }
  return actual === written
    ? corrupt(where, `format ${FORMAT}`, `format ${version}`)
    : corrupt(where, written, actual);
}

/** Whether the second line is of this version, whatever the first one says. */
function isOurs(buffer: Buffer): boolean {
  const mark = `${HEADER}{"format":${FORMAT},`;
  return buffer.toString("latin1", FIRST_LINE, FIRST_LINE + mark.length) === mark;
}

function parse(text: string, where: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new CheckpointCorruptionError(`${where} is corrupt: its state is not JSON`, {
      expected: "JSON",
      actual: String(cause),
      cause,
    });
  }
}

function compare(where: string, what: string, expected: unknown, actual: unknown): void {
  if (expected !== actual)
    throw corrupt(where, `${what} ${show(expected)}`, `${what} ${show(actual)}`);
}

function corrupt(where: string, expected: string, actual: string): CheckpointCorruptionError {
  return new CheckpointCorruptionError(
    `${where} is corrupt: expected ${expected}, found ${actual}`,
    { expected, actual },
  );
}

function toBuffer(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes)
    ? bytes
    : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
