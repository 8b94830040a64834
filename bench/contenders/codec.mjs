import { createHash, randomBytes } from "node:crypto";
import v8 from "node:v8";
import { fromSource } from "../lib/from-source.mjs";
import { built } from "../lib/waymark.mjs";
import { conversation } from "../workloads/messages.mjs";

const kinds = { json, hashed, v8: structured, langgraph, waymark, document: documented };
const made = new Map();

/**
 * Encodes or decodes a conversation `steps` times.
 * @param {number} steps
 * @param {object} options
 * @param {"encode" | "decode"} options.way
 * @param {"json" | "hashed" | "v8" | "langgraph" | "waymark" | "document"} options.kind
 * @param {number} options.kilobytes
 * @param {object} [options.codec] of a document; `encrypt: true` makes a key
 */
export async function run(steps, { way, kind, kilobytes, codec = {} }) {
  if (!made.has(way)) made.set(way, (await kinds[kind](conversation(kilobytes), codec))[way]);
  const once = made.get(way);
  for (let step = 0; step < steps; step++) {
    const result = once();
    if (result instanceof Promise) await result;
  }
  return steps;
}

/** What a State becomes, as a tree that nothing was done to: the same text for all who write JSON. */
async function tree(data) {
  const { State } = await built("index.js");
  return JSON.parse(JSON.stringify(saved(State, data)));
}

function saved(State, data) {
  return State.create(data, { runId: "bench" }).savedAs({
    checkpointId: "01939ce8-0000-7000-8000-000000000000",
    sequence: 1,
  });
}

async function json(data) {
  const state = await tree(data);
  const text = JSON.stringify(state);
  return { encode: () => JSON.stringify(state), decode: () => JSON.parse(text) };
}

/** What a document can't do without: its bytes, and a hash of them that is made and checked. */
async function hashed(data) {
  const state = await tree(data);
  const hashOf = (bytes) => createHash("sha256").update(bytes).digest("hex");
  const encode = () => {
    const bytes = Buffer.from(JSON.stringify(state));
    return { bytes, hash: hashOf(bytes) };
  };
  const { bytes, hash } = encode();
  const decode = () => {
    if (hashOf(bytes) !== hash) throw new Error("another hash");
    return JSON.parse(bytes.toString());
  };
  return { encode, decode };
}

async function structured(data) {
  const state = await tree(data);
  const bytes = v8.serialize(state);
  return { encode: () => v8.serialize(state), decode: () => v8.deserialize(bytes) };
}

async function langgraph(data) {
  const { MemorySaver } = await import("@langchain/langgraph");
  const { serde } = new MemorySaver();
  const state = await tree(data);
  const [type, bytes] = await serde.dumpsTyped(state);
  return { encode: () => serde.dumpsTyped(state), decode: () => serde.loadsTyped(type, bytes) };
}

async function waymark(data) {
  const { State } = await built("index.js");
  const state = saved(State, data);
  const text = JSON.stringify(state);
  return {
    encode: () => JSON.stringify(state.toJSON()),
    decode: () => State.fromJSON(text),
  };
}

/** A record of the format that all stores write, built from the source: no entry point exports it. */
async function documented(data, { encrypt = false, ...rest }) {
  const { RecordCodec, State, stateFrom, verifyRecord } = await fromSource(`
    export { RecordCodec, stateFrom, verifyRecord } from "./checkpoint/records/codec.js";
    export { State } from "./state/state.js";
  `);
  const keys = encrypt ? { encrypt: { current: "k", keys: { k: randomBytes(32) } } } : {};
  const codec = new RecordCodec({ ...rest, ...keys }, 1);
  const state = saved(State, data);
  const { checkpointId, sequence, savedAt } = state;
  const place = { sequence, checkpointId, savedAt, parentId: "", previous: "", keep: 5 };
  const { record } = await codec.encode(state, place, undefined);
  const stored = { sequence, ...record };
  return {
    encode: () => codec.encode(state, place, undefined),
    decode: async () => {
      const record = verifyRecord(stored, "bench", "bench");
      const tree = codec.grow(undefined, record, 0, "bench");
      return stateFrom(tree instanceof Promise ? await tree : tree, record.header, "bench");
    },
  };
}
