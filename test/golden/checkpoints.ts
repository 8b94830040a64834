import { type CheckpointStore, type GraphConfig, State, StateGraph } from "waymark";
import type { CodecOptions } from "waymark/codecs";

/** The key of the encrypted ones. It protects nothing. */
const key = Uint8Array.from({ length: 32 }, (_, index) => index);

/** Reads all of them, whatever they were written with. */
export const reading: CodecOptions = {
  encrypt: { current: "golden", keys: { golden: key } },
  allowPlaintext: true,
};

/** The data of the runs. */
export interface Article {
  readonly topic: string;
  readonly drafts: readonly string[];
  readonly values?: Readonly<Record<string, unknown>>;
}

/** A graph of two drafts, a review, which may fail, and the end. */
export function articleGraph(
  store: CheckpointStore,
  config: GraphConfig<Article> = {},
  fail = false,
) {
  return new StateGraph<Article>({
    name: "article",
    checkpoint: { store, interval: 1, preserve: true },
    ...config,
  })
    .addNode("draft", ({ data }, ctx) => {
      ctx.ledger.usage({ inputTokens: 10, outputTokens: 20, costUsd: 0.5 });
      ctx.ledger.decision({ description: "how long", rationale: "short", confidence: 0.5 });
      ctx.ledger.output("draft", "drafts/1.md");
      return { drafts: [...data.drafts, `draft ${data.drafts.length + 1}`] };
    })
    .addNode("review", (state) => {
      if (fail) throw new RangeError("no reviewer");
      return state;
    })
    .addNode("publish", (state) => state)
    .addEdge("draft", "draft", ({ data }) => data.drafts.length < 2)
    .addEdge("draft", "review")
    .addEdge("review", "publish")
    .setEntryPoint("draft")
    .setExitPoint("publish");
}

const values: Readonly<Record<string, unknown>> = {
  nothing: [undefined, null],
  numbers: [0, -0, Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, 1e308],
  bigint: -12345678901234567890n,
  text: ["", "\u0000", "\ud800", "山 🏔️", "</script>"],
  date: [new Date(0), new Date(Number.NaN)],
  map: new Map<unknown, unknown>([
    ["a", new Map([[1, new Set([1n])]])],
    [{ key: new Date(1) }, undefined],
  ]),
  regexp: /a[/]b/giu,
  url: new URL("https://example.org/a?b=c#d"),
  bytes: [new Uint8Array([1, 255]), new Float64Array([0.1]), new ArrayBuffer(2)],
  tags: [{ $date: "2030" }, { $object: { $map: [] } }, { $unknown: 1 }],
  prototype: JSON.parse('{"__proto__":{"polluted":true}}'),
};

const start = (runId: string, more: Partial<Article> = {}): State<Article> =>
  State.create<Article>({ topic: "cairns", drafts: [], ...more }, { runId });

/** One kind of checkpoint that must load for ever: how it is encoded, and what is saved. */
export interface Golden {
  readonly name: string;
  readonly codec?: CodecOptions;
  readonly write: (store: CheckpointStore) => Promise<unknown>;
}

const ignore = (): void => {};
const large = { drafts: Array.from({ length: 200 }, (_, index) => `draft ${index}`) };

/** All kinds of checkpoints that this version writes. */
export const goldens: readonly Golden[] = [
  { name: "first", write: (store) => start("first").checkpoint(store) },
  { name: "values", write: (store) => start("values", { values }).checkpoint(store) },
  {
    name: "failed",
    write: (store) => articleGraph(store, {}, true).execute(start("failed")).catch(ignore),
  },
  {
    name: "retried",
    write: async (store) => {
      await articleGraph(store, {}, true).execute(start("retried")).catch(ignore);
      await articleGraph(store).resume("retried");
    },
  },
  {
    name: "paused",
    write: (store) =>
      articleGraph(store, { breakpoints: { before: ["publish"] } }).execute(start("paused")),
  },
  { name: "completed", write: (store) => articleGraph(store).execute(start("completed")) },
  {
    name: "forked",
    write: async (store) => {
      const graph = articleGraph(store);
      await graph.execute(start("origin"));
      const { runId, parent } = await graph.fork("origin", 2, { topic: "marks" });
      return { runId, parent };
    },
  },
  { name: "names", write: (store) => start("../Ünd 山").checkpoint(store) },
  { name: "long", write: (store) => start("山".repeat(200)).checkpoint(store) },
  {
    name: "gzip",
    codec: { compress: "gzip" },
    write: (store) => start("gzip", large).checkpoint(store),
  },
  {
    name: "brotli",
    codec: { compress: "brotli" },
    write: (store) => start("brotli", large).checkpoint(store),
  },
  {
    name: "encrypted",
    codec: { encrypt: { current: "golden", keys: { golden: key } } },
    write: (store) => start("encrypted").checkpoint(store),
  },
  {
    name: "sealed",
    codec: { compress: "brotli", encrypt: { current: "golden", keys: { golden: key } } },
    write: (store) => start("sealed", large).checkpoint(store),
  },
];
