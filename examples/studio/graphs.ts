import { setTimeout as wait } from "node:timers/promises";
import {
  type CheckpointStore,
  dag,
  END,
  type GraphConfig,
  type NodeContext,
  parallel,
  StateGraph,
  subgraph,
} from "waymark";
import { z } from "zod";

/** What the graphs below share: where they save, what they are followed by, how slow they are. */
export interface Setting {
  readonly store: CheckpointStore;
  readonly observer?: GraphConfig<object>["observer"];
  /** Work takes this many times as long as in the quick runs; 1 by default. */
  readonly pace?: number;
}

/** What an article knows. */
export interface Article {
  readonly topic: string;
  readonly sources: readonly string[];
  readonly text: string;
  readonly score: number;
  readonly publishedAt: Date | undefined;
  readonly readers: ReadonlyMap<string, number>;
  readonly tags: ReadonlySet<string>;
  readonly views: bigint;
  readonly thumbnail: Uint8Array;
}

/** An article that nobody has worked on. */
export function newArticle(topic: string): Article {
  return {
    topic,
    sources: [],
    text: "",
    score: 0,
    publishedAt: undefined,
    readers: new Map(),
    tags: new Set(),
    views: 0n,
    thumbnail: new Uint8Array(),
  };
}

function settings<D extends object>({ store, observer }: Setting, name: string): GraphConfig<D> {
  return {
    name,
    ...(observer !== undefined && { observer }),
    checkpoint: { store, interval: 1, preserve: true, keep: 100 },
  };
}

/** Stands for a call of a model: it takes a while, and costs something. */
async function call(context: NodeContext<never>, tokens: number, ms: number): Promise<void> {
  await wait(ms, undefined, { signal: context.signal });
  context.ledger.usage({
    inputTokens: tokens,
    outputTokens: Math.round(tokens / 4),
    costUsd: tokens * 0.000_012,
    counters: { calls: 1 },
  });
}

/** Research in parallel, then drafts until the review is content. */
export function articleGraph(setting: Setting) {
  const { pace = 1 } = setting;
  return new StateGraph<Article>(settings(setting, "article"))
    .addNode(
      "outline",
      async (state, context) => {
        await call(context as NodeContext<never>, 400, 20 * pace);
        return { tags: new Set(["outdoors", state.data.topic]) };
      },
      { phase: "research" },
    )
    .addNode(
      "research",
      parallel<Article, string, string>(
        (state) =>
          ["history", "animals", "maps", "law"].map((part) => `${state.data.topic} ${part}`),
        async (_state, item, context) => {
          await wait((15 + item.length) * pace, undefined, { signal: context.signal });
          return `https://example.org/${encodeURIComponent(item)}`;
        },
        { concurrency: 3, merge: (_state, sources) => ({ sources }) },
      ),
      { phase: "research" },
    )
    .addNode(
      "draft",
      async (state, context) => {
        if (state.data.topic === "avalanches" && state.data.text === "" && context.attempt < 3) {
          await wait(15 * pace, undefined, { signal: context.signal });
          throw new Error("the model is overloaded");
        }
        await call(context as NodeContext<never>, 1800, 40 * pace);
        return {
          text: `${state.data.text}More on ${state.data.topic}, with what ${state.data.sources.length} sources say. `,
        };
      },
      { phase: "write", retry: { maxAttempts: 3, initialInterval: 10 * pace } },
    )
    .addNode(
      "review",
      async (state, context) => {
        if (state.data.topic === "avalanches" && state.data.text.length > 80) {
          throw new RangeError("rate limit: 60 requests a minute; try again in 20 s");
        }
        await call(context as NodeContext<never>, 900, 25 * pace);
        const score = Math.min(1, state.data.text.length / 150);
        context.ledger.decision({
          type: "review",
          description: score < 0.8 ? "send it back" : "publish it",
          rationale: `The text has ${state.data.text.length} characters; 120 are enough.`,
          confidence: 0.5 + score / 2,
          alternatives: ["publish it", "send it back", "drop it"],
          agent: "editor",
        });
        context.ledger.agent("editor", {
          status: score < 0.8 ? "waits for a draft" : "done",
          confidence: 0.5 + score / 2,
        });
        return { score };
      },
      { phase: "write" },
    )
    .addNode(
      "publish",
      async (state, context) => {
        await wait(10 * pace, undefined, { signal: context.signal });
        context.ledger.output("article", `https://example.org/articles/${context.runId}`);
        return {
          publishedAt: new Date(),
          readers: new Map([
            ["newsletter", 1204],
            ["feed", 87],
          ]),
          views: 9_007_199_254_740_993n,
          thumbnail: new Uint8Array([137, 80, 78, 71, 13, 10, 26, 10, 0, 0, 0, 13]),
          text: state.data.text.trim(),
        };
      },
      { phase: "publish" },
    )
    .addEdge("outline", "research")
    .addEdge("research", "draft")
    .addEdge("draft", "review")
    .addEdge("review", "draft", ({ data }) => data.score < 0.8, "too short")
    .addEdge("review", "publish")
    .setEntryPoint("outline")
    .setExitPoint("publish");
}

/** What a refund knows. */
export interface Refund {
  readonly order: string;
  readonly eur: number;
  readonly approval:
    | { readonly approve: boolean; readonly reason?: string | undefined }
    | undefined;
  readonly paid: boolean;
}

const approval = z.object({
  approve: z.boolean().describe("Pay it back?"),
  method: z.enum(["card", "voucher", "bank transfer"]),
  amount: z.number().min(0).max(500).default(40).describe("In euros, at most what was paid."),
  reason: z.string().max(500).optional().describe("Shown to the customer."),
});

/** Asks a person before it pays. */
export function refundGraph(setting: Setting) {
  const { pace = 1 } = setting;
  return new StateGraph<Refund>(settings(setting, "refund"))
    .addNode("check", async (_state, context) => {
      await wait(10 * pace, undefined, { signal: context.signal });
      return {};
    })
    .addNode("approve", async (state, context) => ({
      approval: await context.pause("approval", {
        reason: `Pay back ${state.data.eur} € for order ${state.data.order}?`,
        ask: {
          order: state.data.order,
          paid: `${state.data.eur} €`,
          "returned on": new Date("2026-11-12"),
        },
        schema: approval,
        timeout: 36 * 3_600_000,
      }),
    }))
    .addNode("pay", async (_state, context) => {
      await context.once("transfer", () => wait(15 * pace));
      return { paid: true };
    })
    .addNode("decline", () => ({ paid: false }))
    .addEdge("check", "approve")
    .addEdge("approve", "pay", ({ data }) => data.approval?.approve === true, "approved")
    .addEdge("approve", "decline")
    .setEntryPoint("check")
    .setExitPoint("pay")
    .setExitPoint("decline");
}

/** The results of the tasks of an import, under their names. */
export interface Import {
  readonly customers: number;
  readonly orders: number;
  readonly rates: number;
  readonly matched: number;
  readonly converted: number;
  readonly report: string;
}

/** Tasks that say what they depend on. */
export function importGraph(setting: Setting) {
  const { pace = 1 } = setting;
  const rows = (count: number) => async (): Promise<number> => {
    await wait((count % 40) * pace);
    return count;
  };
  return dag<Import>(
    {
      customers: rows(1830),
      orders: rows(24_215),
      rates: rows(31),
      matched: { dependsOn: ["customers", "orders"], run: rows(23_987) },
      converted: { dependsOn: ["orders", "rates"], run: rows(24_130) },
      report: {
        dependsOn: ["matched", "converted"],
        run: async () => {
          await wait(20 * pace);
          return "23,987 of 24,215 orders matched";
        },
      },
    },
    settings<Import>(setting, "nightly import"),
  );
}

/** What a new customer brings along. */
export interface Onboarding {
  readonly company: string;
  readonly verified: boolean;
  readonly account: string;
}

/** A graph inside a node of another. */
export function onboardingGraph(setting: Setting) {
  const { pace = 1 } = setting;
  const pause = (ms: number) => async (): Promise<object> => {
    await wait(ms * pace);
    return {};
  };
  const verification = new StateGraph<{ company: string; found: boolean }>({ name: "verification" })
    .addNode("register", pause(20))
    .addNode("sanctions", pause(15))
    .addNode("decide", () => ({ found: true }))
    .addEdge("register", "sanctions")
    .addEdge("sanctions", "decide")
    .setEntryPoint("register")
    .setExitPoint("decide");
  return new StateGraph<Onboarding>(settings(setting, "onboarding"))
    .addNode("form", pause(10))
    .addNode(
      "verify",
      subgraph(verification, {
        in: ({ data }) => ({ company: data.company, found: false }),
        out: (_state, inner) => ({ verified: inner.data.found }),
      }),
    )
    .addNode("account", ({ data }) => ({ account: `${data.company}-1` }))
    .addEdge("form", "verify")
    .addEdge("verify", "account", ({ data }) => data.verified, "verified")
    .setEntryPoint("form")
    .addEdge("verify", END)
    .setExitPoint("account");
}
