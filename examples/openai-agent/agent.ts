import type OpenAI from "openai";
import { append, type CheckpointStore, END, StateGraph } from "waymark";
import { durableClient } from "waymark/ai";
import { z } from "zod";

/** What the run knows: a conversation, as the OpenAI SDK types it. */
export interface Conversation {
  readonly messages: OpenAI.ChatCompletionMessageParam[];
}

const city = z.object({ city: z.string() });

const tools: OpenAI.ChatCompletionTool[] = [
  {
    type: "function",
    function: {
      name: "get_weather",
      description: "The weather of a city.",
      parameters: z.toJSONSchema(city),
    },
  },
];

/** The tool loop of the SDK's guide as a graph: the model asks for tools until it has an answer. */
export function weatherAgent(
  store: CheckpointStore,
  client: OpenAI,
  getWeather: (city: string) => Promise<string>,
) {
  return new StateGraph<Conversation>({
    name: "weather",
    checkpoint: { store, interval: 1, preserve: true },
    reducers: { messages: append },
  })
    .addNode("model", async (state, ctx) => {
      const openai = durableClient(ctx, client);
      const { choices } = await openai.chat.completions.create({
        model: "gpt-5",
        messages: state.get("messages"),
        tools,
      });
      return { messages: choices.map(({ message }) => message) };
    })
    .addNode("tools", async (state, ctx) => {
      const messages: OpenAI.ChatCompletionMessageParam[] = [];
      for (const call of toolCalls(state.get("messages"))) {
        const { city: name } = city.parse(JSON.parse(call.function.arguments));
        // However often the node is run again, a call that was saved is not made again.
        const content = await ctx.once(call.id, () => getWeather(name));
        messages.push({ role: "tool", tool_call_id: call.id, content });
      }
      return { messages };
    })
    .addEdge("model", "tools", (state) => toolCalls(state.get("messages")).length > 0)
    .addEdge("model", END)
    .addEdge("tools", "model")
    .setEntryPoint("model");
}

/** The functions that the newest message asks for. */
function toolCalls(messages: readonly OpenAI.ChatCompletionMessageParam[]) {
  const last = messages.at(-1);
  if (last?.role !== "assistant") return [];
  return (last.tool_calls ?? []).filter((call) => call.type === "function");
}
