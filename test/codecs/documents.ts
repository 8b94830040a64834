import { createHash } from "node:crypto";
import { State } from "waymark";
import { type CodecOptions, DocumentCodec } from "waymark/codecs";

export const runId = "run-1";

/** A State as a store would hand it to a codec. */
export function saved<D extends object>(data: D, sequence = 1): State<D> {
  return State.create(data, { runId }).savedAs({ checkpointId: `c${sequence}`, sequence });
}

export function encode(options: CodecOptions, state: State<object>): Promise<Uint8Array> {
  return new DocumentCodec(options).encode(state, "c0");
}

export async function decode<D extends object = Record<string, unknown>>(
  options: CodecOptions,
  bytes: Uint8Array,
): Promise<State<D>> {
  const { state } = await new DocumentCodec(options).decode<D>(bytes, "file.json", { runId });
  return state;
}

/** A document's text, changed, under a hash that fits again: what somebody does who wants to be believed. */
export function forge(bytes: Uint8Array, change: (body: string) => string): Uint8Array {
  const text = Buffer.from(bytes).toString();
  const start = text.indexOf("\n") + 1;
  const body = change(text.slice(start));
  const hash = createHash("sha256").update(body).digest("hex");
  return Buffer.from(`{"waymark":1,"sha256":"${hash}",\n${body}`);
}

/** 32 bytes that differ by `fill`, as a key. */
export function key(fill: number): Uint8Array {
  return new Uint8Array(32).fill(fill);
}
