/**
 * A durable agent loop
 *
 * A tool loop with the AI SDK in which no answered call is made again, whatever crashes in between.
 */
import { generateText, stepCountIs, tool } from "ai";
import { MockLanguageModelV3 } from "ai/test";
import { END, MemoryStore, State, StateGraph } from "waymark";
import { durable } from "waymark/ai";
import { z } from "zod";

const searches: string[] = [];
const search = tool({
  inputSchema: z.object({ query: z.string() }),
  execute: async ({ query }) => {
    searches.push(query);
    if (searches.length === 1) throw new Error("unreachable"); // the model sees it, and tries again
    return "a pile of stones";
  },
});

let attempts = 0;
const graph = new StateGraph<{ answer: string }>({
  checkpoint: { store: new MemoryStore(), interval: 1 },
})
  .addNode(
    "ask",
    async (_state, context) => {
      const { model, tools } = durable(context, { model: gpt, tools: { search } });
      const prompt = "What is a cairn?";
      const { text } = await generateText({
        model,
        tools,
        prompt,
        stopWhen: stepCountIs(5),
        maxRetries: 0,
      });
      if (++attempts === 1) throw new Error("the process dies after all calls");
      return { answer: text };
    },
    { retry: { maxAttempts: 2, initialInterval: 1 } },
  )
  .addEdge("ask", END)
  .setEntryPoint("ask");

// Stands in for openai("gpt-5"): two searches, then an answer.
const gpt: MockLanguageModelV3 = new MockLanguageModelV3({
  doGenerate: async ({ prompt }) => {
    const step = prompt.filter(({ role }) => role === "assistant").length;
    const isDone = step === 2;
    return {
      content: isDone
        ? [{ type: "text", text: "A pile of stones." }]
        : [
            {
              type: "tool-call",
              toolCallId: `${step}`,
              toolName: "search",
              input: `{"query":"cairn ${step}"}`,
            },
          ],
      finishReason: { unified: isDone ? "stop" : "tool-calls", raw: "" },
      usage: {
        inputTokens: { total: 10, noCache: 10, cacheRead: 0, cacheWrite: 0 },
        outputTokens: { total: 5, text: 5, reasoning: 0 },
      },
      warnings: [],
    };
  },
});

const { data } = await graph.execute(State.create({ answer: "" }));
console.log(data.answer, gpt.doGenerateCalls.length, searches.join()); // A pile of stones. 3 cairn 0,cairn 1
