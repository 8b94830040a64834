import { sha256 } from "../../codecs/hash.js";

/*
 * All that a journal writes are lines, each a JSON object of its own:
 *
 *   {"waymark":1,"length":"0000000712","sha256":"<64 hex digits>","patch":{"runId":"…","sequence":7,…},…}
 *
 * The length is that of the whole line, its newline included; the hash is over all that comes after
 * it. No JSON has a newline in it, so whatever is broken, the next line begins after the next one.
 */
const START = '{"waymark":1,"length":"';
const DIGITS = 10;
const HASH = '","sha256":"';
const HASH_LENGTH = 64;
const LENGTH_AT = START.length;
const HASH_AT = START.length + DIGITS + HASH.length;
const END = '",';
/** Where the hashed part begins. */
const FRAME = HASH_AT + HASH_LENGTH + END.length;
const BLANK = `${START}${"0".repeat(DIGITS)}${HASH}${"0".repeat(HASH_LENGTH)}${END}`;
const CONTENT = '},"content":';
const NEWLINE = 10;

/** The longest line; V8 has no longer string. */
const MAX_LENGTH = 2 ** 29;

/** What a line is: a whole State, what changed in one, a run's end, the end of a file of the log, what another file holds. */
export type LineKind = "snapshot" | "patch" | "delete" | "seal" | "records" | "anchors";

const kinds: ReadonlyMap<string, LineKind> = new Map(
  (["snapshot", "patch", "delete", "seal"] as const).map((kind) => [kind, kind]),
);
const RUN = '":{"runId":"';
const RUN_END = '","sequence":';

/** A line, as far as its first bytes tell; nothing of it is verified. */
export interface Line {
  readonly kind: LineKind;
  /** Names the run: its id as it stands in JSON. */
  readonly run: string;
  readonly sequence: number;
  /** The number of its file. */
  readonly log: number;
  /** Where in it the line is. */
  readonly offset: number;
  readonly length: number;
}

/** Bytes that are no line. */
export interface Damage {
  readonly kind: "damage";
  /** Whether they look like a line that a crash cut off: nobody was told that it was written. */
  readonly torn: boolean;
  /** The run that it names, if it looks like a line. */
  readonly run?: string;
  readonly log: number;
  readonly offset: number;
  readonly length: number;
}

/** The same bytes, not a copy. */
export function toBuffer({ buffer, byteOffset, byteLength }: Uint8Array): Buffer {
  return Buffer.from(buffer, byteOffset, byteLength);
}

/** The name of a run in a line: its id as it stands in JSON, byte by byte. */
export function runKey(runId: string): string {
  if (/^[\w.-]*$/.test(runId)) return runId;
  return Buffer.from(JSON.stringify(runId).slice(1, -1)).toString("latin1");
}

/** The run's id out of its name in a line; `""`, which is none, when that is broken. */
export function runIdOf(key: string): string {
  try {
    return String(JSON.parse(`"${Buffer.from(key, "latin1").toString()}"`));
  } catch {
    return "";
  }
}

/** How long a line says it is, out of its first bytes; `undefined` when they are no line's. */
export function lengthOf(head: Buffer): number | undefined {
  const text = head.toString("latin1", 0, HASH_AT);
  const length = Number(text.slice(LENGTH_AT, LENGTH_AT + DIGITS));
  return text.startsWith(START) && length > FRAME && length <= MAX_LENGTH ? length : undefined;
}

/** The bytes of a line. A header that names a run must begin with `runId` and `sequence`. */
export function toLine(kind: LineKind, header: string, content?: string): Buffer {
  const rest = content === undefined ? header : `${header.slice(0, -1)}${CONTENT}${content}`;
  const bytes = Buffer.from(`${BLANK}"${kind}":${rest}}\n`);
  if (bytes.length > MAX_LENGTH) throw new RangeError(`${bytes.length} bytes are too many`);
  bytes.write(String(bytes.length).padStart(DIGITS, "0"), LENGTH_AT, "latin1");
  bytes.write(hashOf(bytes), HASH_AT, "latin1");
  return bytes;
}

function hashOf(line: Uint8Array): string {
  return sha256(line.subarray(FRAME));
}

/** What is wrong with a line; `undefined` when it is, byte by byte, what was written. */
export function faultOf(line: Buffer): { expected: string; actual: string } | undefined {
  const frame = line.toString("latin1", 0, FRAME);
  const isFrame =
    frame.startsWith(START) &&
    frame.startsWith(HASH, LENGTH_AT + DIGITS) &&
    frame.startsWith(END, HASH_AT + HASH_LENGTH);
  if (!isFrame || line.length <= FRAME)
    return { expected: "a line of a journal", actual: "something else" };
  const expected = frame.slice(HASH_AT, HASH_AT + HASH_LENGTH);
  const actual = hashOf(line);
  if (expected !== actual) return { expected, actual };
  const length = frame.slice(LENGTH_AT, LENGTH_AT + DIGITS);
  return Number(length) === line.length
    ? undefined
    : { expected: `${Number(length)} bytes`, actual: `${line.length} bytes` };
}

/** The text of a line's header and of its content. */
export function partsOf(line: Buffer): { header: string; content: string } | undefined {
  const text = line.toString("utf8", FRAME);
  const start = text.indexOf(":") + 1;
  // A quote inside of a string is escaped, so this is not found in one.
  const end = text.indexOf(CONTENT, start);
  if (start === 0) return undefined;
  if (end < 0) return { header: text.slice(start, -2), content: "" };
  return { header: text.slice(start, end + 1), content: text.slice(end + CONTENT.length, -2) };
}

/**
 * Goes through lines.
 *
 * @param log - the number of their file.
 * @param base - where in it the bytes begin.
 * @returns how many bytes were gone through; what is left may be a line that is not yet whole.
 */
export function scan(
  bytes: Buffer,
  log: number,
  base: number,
  visit: (line: Line | Damage) => void,
): number {
  let at = 0;
  for (;;) {
    while (bytes[at] === NEWLINE) at++;
    const end = at < bytes.length ? bytes.indexOf(NEWLINE, at) : -1;
    if (end < 0) {
      if (!lacksNewline(bytes, at)) return at;
      visit(damageAt(bytes, log, at, bytes.length, base));
      return bytes.length;
    }
    visit(lineAt(bytes, log, at, end + 1, base) ?? damageAt(bytes, log, at, end, base));
    at = end + 1;
  }
}

/** Goes through lines from the last one back, until `visit` says that it is enough; what may have begun before is left. */
export function scanBack(bytes: Buffer, visit: (line: Line | Damage) => boolean): void {
  let end = bytes.lastIndexOf(NEWLINE);
  if (lacksNewline(bytes, end + 1) && visit(damageAt(bytes, 0, end + 1, bytes.length, 0))) return;
  while (end > 0) {
    const start = bytes.lastIndexOf(NEWLINE, end - 1);
    if (start < 0) return;
    const at = start + 1;
    if (at < end && visit(lineAt(bytes, 0, at, end + 1, 0) ?? damageAt(bytes, 0, at, end, 0)))
      return;
    end = start;
  }
}

/** Whether all of a line is there but its newline: no crash leaves that. */
function lacksNewline(bytes: Buffer, at: number): boolean {
  const length = lengthOf(bytes.subarray(at, at + HASH_AT));
  return length !== undefined && length <= bytes.length - at;
}

function damageAt(bytes: Buffer, log: number, at: number, end: number, base: number): Damage {
  const head = bytes.toString("latin1", at, Math.min(end, at + HASH_AT));
  const begun = head.startsWith(START) ? Number(head.slice(LENGTH_AT, LENGTH_AT + DIGITS)) : 0;
  const torn =
    (begun > end + 1 - at && !isWhole(bytes.subarray(at, end + 1))) ||
    START.startsWith(head) ||
    (head.startsWith(START) && head.length < HASH_AT) ||
    bytes.subarray(at, end).every((byte) => byte === 0);
  return { kind: "damage", torn, log, offset: base + at, length: end - at };
}

/** Whether all of a line is there, whatever it says of its length. */
function isWhole(line: Buffer): boolean {
  return line.toString("latin1", HASH_AT, HASH_AT + HASH_LENGTH) === hashOf(line);
}

/** Enough for what comes first in most lines. */
const HEAD = FRAME + 100;

function lineAt(
  bytes: Buffer,
  log: number,
  at: number,
  end: number,
  base: number,
): Line | undefined {
  if (end - at <= FRAME) return undefined;
  const head = bytes.toString("latin1", at, Math.min(end, at + HEAD));
  if (!head.startsWith(START) || head[FRAME] !== '"') return undefined;
  if (Number(head.slice(LENGTH_AT, LENGTH_AT + DIGITS)) !== end - at) return undefined;
  const kind = kinds.get(head.slice(FRAME + 1, head.indexOf('"', FRAME + 1)));
  if (kind === undefined) return undefined;
  const offset = base + at;
  const length = end - at;
  if (kind === "seal") return { kind, log, offset, length, run: "", sequence: 0 };
  const from = FRAME + 1 + kind.length + RUN.length;
  if (!head.startsWith(RUN, FRAME + 1 + kind.length)) return undefined;
  let text = head;
  let to = text.indexOf(RUN_END, from);
  if (to < 0 || to + RUN_END.length + 16 > text.length) {
    // A run id takes up to 200 characters, which can be more bytes than were looked at.
    text = bytes.toString("latin1", at, Math.min(end, at + 4096));
    to = text.indexOf(RUN_END, from);
  }
  const sequence = Number.parseInt(text.slice(to + RUN_END.length, to + RUN_END.length + 16), 10);
  if (to < 0 || !Number.isSafeInteger(sequence)) return undefined;
  return { kind, log, offset, length, run: text.slice(from, to), sequence };
}
