import { createHash } from "node:crypto";
import { State } from "waymark";
import type { CodecOptions } from "waymark/codecs";
import { RecordCodec, stateFrom, verifyRecord } from "../../src/checkpoint/records/codec.js";
import { fromDocument, toDocument } from "../../src/checkpoint/records/document.js";

export const runId = "run-1";

/** A State as a store would hand it to a codec. */
export function saved<D extends object>(data: D, sequence = 1): State<D> {
  const state = State.create(data, { runId });
  return state.savedAs({ checkpointId: `c${sequence}`, sequence, savedAt: state.timestamp });
}

/** What a file store does with a State. */
export class DocumentCodec {
  readonly #codec: RecordCodec;

  constructor(options: CodecOptions = {}) {
    this.#codec = new RecordCodec(options, 1);
  }

  async encode(state: State<object>, parentId: string): Promise<Uint8Array> {
    const { checkpointId, sequence, savedAt } = state;
    const place = { checkpointId, sequence, savedAt, parentId, previous: parentId };
    const rule = { keep: Number.POSITIVE_INFINITY, keepPerPhase: undefined };
    return toDocument((await this.#codec.encode(state, { ...place, ...rule }, undefined)).record);
  }

  async decode<D extends object>(
    bytes: Uint8Array,
    where: string,
    expected: { readonly runId: string; readonly sequence?: number | undefined },
  ): Promise<State<D>> {
    const stored = fromDocument(bytes, where, expected.sequence ?? 1);
    const record = verifyRecord(stored, expected.runId, where);
    return stateFrom<D>(await this.#codec.grow(undefined, record, where), record.header, where);
  }
}

export function encode(options: CodecOptions, state: State<object>): Promise<Uint8Array> {
  return new DocumentCodec(options).encode(state, "c0");
}

export function decode<D extends object = Record<string, unknown>>(
  options: CodecOptions,
  bytes: Uint8Array,
  expected: { readonly runId: string; readonly sequence?: number | undefined } = { runId },
): Promise<State<D>> {
  return new DocumentCodec(options).decode<D>(bytes, "file.json", expected);
}

/** A document's text, changed, under a hash that fits again: what somebody does who wants to be believed. */
export function forge(bytes: Uint8Array, change: (body: string) => string): Uint8Array {
  const text = Buffer.from(bytes).toString();
  const start = text.indexOf("\n") + 1;
  const body = change(text.slice(start));
  const [, header, content] = /^"header":(.*?),\n"content":(.*)\}\n$/s.exec(body) ?? [];
  const hash = createHash("sha256").update(`${header}\n${content}`).digest("hex");
  return Buffer.from(`{"waymark":1,"sha256":"${hash}",\n${body}`);
}

/** 32 bytes that differ by `fill`, as a key. */
export function key(fill: number): Uint8Array {
  return new Uint8Array(32).fill(fill);
}
