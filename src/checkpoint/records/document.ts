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
const HASH_END = '",\n';
const HEADER = '"header":';
const HEADER_END = ",\n";
const CONTENT = '"content":';
const END = "}\n";

/** Where the second line begins. */
const SECOND_LINE = START.length + HASH_LENGTH + HASH_END.length;

/** How many bytes a document adds to its header and content. */
export const FRAME_BYTES =
  SECOND_LINE + HEADER.length + HEADER_END.length + CONTENT.length + END.length;

/** The first two lines: the hash, and the header up to the next line. */
const HEAD = new RegExp(
  `^${START}([\\da-f]{${HASH_LENGTH}})${HASH_END}${HEADER}([^\n]*)${HEADER_END}`,
);

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
  const text = textOf(bytes);
  const [head = "", sha256 = "", header = ""] = HEAD.exec(text) ?? [];
  if (head === "" || !text.startsWith(CONTENT, head.length) || !text.endsWith(END)) {
    throw unread(text, where);
  }
  const content = text.slice(head.length + CONTENT.length, -END.length);
  return { sequence, header, content, sha256 };
}

/**
 * Reads only the header, from a document's first bytes; 4 KB are usually enough. Verifies nothing.
 *
 * @returns `undefined` if it takes more bytes, or they are not a document that this version reads.
 */
export function headerOf(firstBytes: Uint8Array): RecordHeader | undefined {
  const [, , header = ""] = HEAD.exec(textOf(firstBytes)) ?? [];
  return parseHeader(header);
}

function unread(text: string, where: string): CheckpointCorruptionError | SerializationError {
  const version = Number(/^\{"waymark":([1-9]\d{0,8}),/.exec(text)?.[1] ?? 0);
  const isOurs = text.startsWith(`${HEADER}{"format":${FORMAT},`, SECOND_LINE);
  if (version > FORMAT && !isOurs) return newerFormat(where, version);
  return corrupt(where, "a waymark document", text === "" ? "an empty file" : "another file");
}

function textOf(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString();
}
