import type { CheckpointCorruptionError, SerializationError } from "../../errors.js";
import type { StoredRecord } from "./backend.js";
import { corrupt } from "./codec.js";
import { FORMAT, newerFormat, parseHeader, type RecordHeader } from "./header.js";

/*
 * A record as a file that people, `jq` and other programs can read: one JSON object on three lines.
 *
 *   {"waymark":1,"sha256":"<64 hex digits>",
 *   "header":{"format":1,…},
 *   "content":{…}}
 *
 * The content is a JSON string of base64 if it is compressed or encrypted. Header and content are kept byte
 * for byte, because the hash covers them. The format is in the header too, so that a flipped bit in the first
 * line is not taken for a newer version.
 */
const START = `{"waymark":${FORMAT},"sha256":"`;
const HASH_LENGTH = 64;
const HASH = /^[\da-f]{64}$/;
const HASH_END = '",\n';
const FIRST_LINE = START.length + HASH_LENGTH + HASH_END.length;
const HEADER = '"header":';
const HEADER_END = ",\n";
const CONTENT = '"content":';
const END = "}\n";
const NEWLINE = 10;

/** How many bytes a document adds to its header and content. */
export const FRAME_BYTES =
  FIRST_LINE + HEADER.length + HEADER_END.length + CONTENT.length + END.length;

/** Writes a record as a document. */
export function toDocument({ header, content, sha256 }: StoredRecord): Buffer {
  return Buffer.from(
    START + sha256 + HASH_END + HEADER + header + HEADER_END + CONTENT + content + END,
  );
}

/**
 * Reads the record in a document. Does not verify its hash.
 *
 * @param where - names the file in errors.
 * @param sequence - the position of the record in its run.
 * @throws CheckpointCorruptionError if it is not a document.
 * @throws SerializationError if a newer version wrote it.
 */
export function fromDocument(bytes: Uint8Array, where: string, sequence: number): StoredRecord {
  const buffer = toBuffer(bytes);
  const end = headerEnd(buffer);
  const from = end + HEADER_END.length;
  if (
    end < 0 ||
    textAt(buffer, from, CONTENT) !== CONTENT ||
    buffer.toString("latin1", buffer.length - END.length) !== END
  ) {
    throw unread(buffer, where);
  }
  return {
    sequence,
    header: buffer.toString("utf8", FIRST_LINE + HEADER.length, end),
    content: buffer.toString("utf8", from + CONTENT.length, buffer.length - END.length),
    sha256: hashIn(buffer),
  };
}

/**
 * Reads only the header, from a document's first bytes; 4 KB are usually enough. Verifies nothing.
 *
 * @returns `undefined` if it takes more bytes, or they are not a document that this version reads.
 */
export function headerOf(firstBytes: Uint8Array): RecordHeader | undefined {
  const buffer = toBuffer(firstBytes);
  const end = headerEnd(buffer);
  if (end < 0) return undefined;
  return parseHeader(buffer.toString("utf8", FIRST_LINE + HEADER.length, end));
}

/** Where the header ends; -1 if what comes before it is malformed. */
function headerEnd(buffer: Buffer): number {
  const beginning = START + hashIn(buffer) + HASH_END + HEADER;
  if (textAt(buffer, 0, beginning) !== beginning || !HASH.test(hashIn(buffer))) return -1;
  const end = buffer.indexOf(NEWLINE, FIRST_LINE) - 1;
  return textAt(buffer, end, HEADER_END) === HEADER_END ? end : -1;
}

function hashIn(buffer: Buffer): string {
  return buffer.toString("latin1", START.length, START.length + HASH_LENGTH);
}

/** The next characters, as many as the text has. */
function textAt(buffer: Buffer, from: number, text: string): string {
  return from < 0 ? "" : buffer.toString("latin1", from, from + text.length);
}

function unread(buffer: Buffer, where: string): CheckpointCorruptionError | SerializationError {
  const first = buffer.toString("latin1", 0, FIRST_LINE);
  const version = Number(/^\{"waymark":([1-9]\d{0,8}),/.exec(first)?.[1] ?? 0);
  const mark = `${HEADER}{"format":${FORMAT},`;
  const isOurs = textAt(buffer, FIRST_LINE, mark) === mark;
  if (version > FORMAT && !isOurs) return newerFormat(where, version);
  const found = buffer.length === 0 ? "an empty file" : "another file";
  return corrupt(where, "a waymark document", found);
}

function toBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
