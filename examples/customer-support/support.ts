import type Anthropic from "@anthropic-ai/sdk";
import { append, type CheckpointStore, END, type NodeContext, StateGraph } from "waymark";
import { durableClient } from "waymark/ai";
import { z } from "zod";

/** What the run knows. */
export interface Ticket {
  readonly messages: Anthropic.MessageParam[];
  readonly next: "billing" | "technical" | "refund" | "nobody";
  readonly refunded: boolean;
}

const system = {
  front: "You are the front desk of a computer shop. End with BILLING, TECHNICAL or RESPOND.",
  billing: "You are billing support of a computer shop. End with REFUND if one is due.",
  technical: "You are technical support of a computer shop.",
};

const approval = z.object({ approved: z.boolean() });

/** Customer support: a front desk, two specialists, and a refund that a person must approve. */
export function supportGraph(
  store: CheckpointStore,
  client: Anthropic,
  refund: (key: string) => Promise<void>,
) {
  const ask = async (role: keyof typeof system, ticket: Ticket["messages"], ctx: NodeContext) => {
    const { content } = await durableClient(ctx, client).messages.create({
      model: "claude-sonnet-5-5",
      max_tokens: 500,
      system: system[role],
      messages: ticket,
    });
    return content.map((block) => (block.type === "text" ? block.text : "")).join("");
  };

  return new StateGraph<Ticket>({
    name: "support",
    checkpoint: { store, interval: 1, preserve: true },
    reducers: { messages: append },
  })
    .addNode("front", async (state, ctx) => {
      const text = await ask("front", state.get("messages"), ctx);
      const next = text.includes("BILLING")
        ? "billing"
        : text.includes("TECHNICAL")
          ? "technical"
          : "nobody";
      return { messages: [{ role: "assistant", content: text }], next };
    })
    .addNode("billing", async (state, ctx) => {
      const text = await ask("billing", state.get("messages"), ctx);
      const next = text.includes("REFUND") ? "refund" : "nobody";
      return { messages: [{ role: "assistant", content: text }], next };
    })
    .addNode("technical", async (state, ctx) => {
      const text = await ask("technical", state.get("messages"), ctx);
      return { messages: [{ role: "assistant", content: text }], next: "nobody" };
    })
    .addNode("refund", async (_state, ctx) => {
      const { approved } = await ctx.pause("refund", {
        reason: "a refund needs an approval",
        ask: "Refund the order?",
        schema: approval,
      });
      if (approved) await ctx.once("refund", () => refund(ctx.idempotencyKey));
      const content = approved ? "Your refund is on its way." : "We can't refund this order.";
      return { messages: [{ role: "assistant", content }], refunded: approved };
    })
    .addEdge("front", "billing", (state) => state.data.next === "billing", "billing")
    .addEdge("front", "technical", (state) => state.data.next === "technical", "technical")
    .addEdge("front", END)
    .addEdge("billing", "refund", (state) => state.data.next === "refund", "refund")
    .addEdge("billing", END)
    .addEdge("technical", END)
    .addEdge("refund", END)
    .setEntryPoint("front");
}
