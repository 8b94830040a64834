import { generateText, type ModelMessage, stepCountIs, tool } from "ai";
import { append, type CheckpointStore, END, StateGraph } from "waymark";
import { durable } from "waymark/ai";
import { z } from "zod";
import { offlineModel } from "./model.js";

/** What the run knows: a conversation. */
export interface Conversation {
  readonly messages: ModelMessage[];
}

/** US dollars for a million tokens. */
const price = { "offline-1": { input: 2, output: 10 } };

/** An agent that searches, reads, and publishes if somebody approves. `onCall` hears each call as it happens. */
export function agentGraph(store: CheckpointStore, onCall: (name: string) => Promise<void>) {
  const search = tool({
    description: "Finds pages.",
    inputSchema: z.object({ query: z.string() }),
    execute: async ({ query }) => {
      await onCall(`search for ${query}`);
      return ["history", "animals"];
    },
  });
  const read = tool({
    description: "Reads a page.",
    inputSchema: z.object({ page: z.string() }),
    execute: async ({ page }) => {
      await onCall(`read ${page}`);
      return `All about ${page}.`;
    },
  });
  const publish = tool({
    description: "Publishes an article.",
    inputSchema: z.object({ title: z.string(), text: z.string() }),
    needsApproval: true,
    execute: async ({ title }) => {
      await onCall(`publish ${title}`);
      return `https://example.org/${title.toLowerCase()}`;
    },
  });

  return new StateGraph<Conversation>({
    name: "agent",
    checkpoint: { store, interval: 1, preserve: true },
    reducers: { messages: append },
  })
    .addNode("agent", async (state, ctx) => {
      const given = { model: offlineModel(onCall), tools: { search, read, publish }, price };
      const { model, tools } = durable(ctx, given);
      const { response } = await generateText({
        model,
        tools,
        messages: state.get("messages"),
        stopWhen: stepCountIs(20),
        abortSignal: ctx.signal,
      });
      return { messages: response.messages };
    })
    .addEdge("agent", END)
    .setEntryPoint("agent");
}
