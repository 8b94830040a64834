import { createHash } from "node:crypto";
import { readSync } from "node:fs";
import type { WaymarkEvent } from "../../events.js";
import { block, inline, source } from "../markdown-text.js";
import { overwrite, tornSize } from "../torn.js";

// Text from nodes never contains these: the start of a comment is escaped in it.
const OPEN = "<!-- waymark:";
const CLOSE = "<!-- /waymark:";
const KEY_LENGTH = 24;

/** The key of a section: the same if a node reports the same title again, even in another process. */
export function sectionKey({ runId, data }: WaymarkEvent<"progress">, count: number): string {
  const { step, node, title } = data;
  const names = JSON.stringify([runId, step, node, title, count]);
  return createHash("sha256").update(names).digest("hex").slice(0, KEY_LENGTH);
}

/** A section of the document, between two comments with its key. */
export function section(
  key: string,
  { title, summary, sources }: WaymarkEvent<"progress">["data"],
) {
  const list = sources.map((one) => `- ${source(one)}`).join("\n");
  const parts = [
    `${OPEN}${key} -->\n## ${inline(title)}`,
    block(summary),
    ...(sources.length === 0 ? [] : [`**Sources:**\n\n${list}`]),
    `${CLOSE}${key} -->`,
  ];
  return `\n${parts.join("\n\n")}\n`;
}

/** The keys of the complete sections. A torn one is blanked out, so that it is written again. */
export function readSections(path: string, file: number): Set<string> {
  const size = tornSize(file, (end) => tornAt(readAll(file, end)) < 0);
  if (size !== undefined) {
    const start = tornAt(readAll(file, size));
    const filler = Buffer.alloc(size - start, " ");
    filler[filler.length - 1] = 10;
    overwrite(path, filler, start);
  }
  const whole = readAll(file).toString("latin1");
  const keys = whole.matchAll(/^<!-- \/waymark:([\da-f]{24}) -->$/gm);
  return new Set([...keys].map((match) => match[1] ?? ""));
}

/** Where a section without an end starts; -1 if there is none. */
function tornAt(bytes: Buffer): number {
  const last = bytes.lastIndexOf(CLOSE);
  const ended = last < 0 ? 0 : bytes.indexOf("-->", last);
  // The end itself may be torn; then its section starts before it.
  if (ended < 0) return bytes.lastIndexOf(OPEN, last);
  const open = bytes.indexOf(OPEN, ended);
  if (open >= 0) return open;
  const start = bytes.lastIndexOf("<");
  const rest = bytes.subarray(Math.max(0, start)).toString("latin1");
  return start >= ended && OPEN.startsWith(rest) ? start : -1;
}

function readAll(file: number, size?: number): Buffer {
  const chunks: Buffer[] = [];
  for (let at = 0; size === undefined || at < size; ) {
    const chunk = Buffer.alloc(Math.min(1 << 16, (size ?? Number.POSITIVE_INFINITY) - at));
    const count = readSync(file, chunk, 0, chunk.length, at);
    if (count === 0) break;
    chunks.push(chunk.subarray(0, count));
    at += count;
  }
  return Buffer.concat(chunks);
}
