import OpenAI from "openai";

/** Stands in for the API: asks for the weather of two cities, then sums it up. */
export function offlineClient(onCall: (name: string) => void): OpenAI {
  return new OpenAI({
    apiKey: "offline",
    fetch: async (_url, init) => {
      const { messages } = JSON.parse(String(init?.body)) as OpenAI.ChatCompletionCreateParams;
      onCall(`model, ${messages.length} messages`);
      return Response.json(completion(answer(messages)));
    },
  });
}

function answer(
  messages: readonly OpenAI.ChatCompletionMessageParam[],
): OpenAI.ChatCompletionMessage {
  const results = messages.filter(({ role }) => role === "tool").map(({ content }) => content);
  const message = { role: "assistant", refusal: null } as const;
  if (results.length > 0) return { ...message, content: `${results.join(", ")}.` };
  return {
    ...message,
    content: null,
    tool_calls: [ask("call-1", "Oslo"), ask("call-2", "Cairns")],
  };
}

function ask(id: string, city: string): OpenAI.ChatCompletionMessageToolCall {
  const call = { name: "get_weather", arguments: JSON.stringify({ city }) };
  return { id, type: "function", function: call };
}

function completion(message: OpenAI.ChatCompletionMessage): OpenAI.ChatCompletion {
  const finish_reason = message.tool_calls === undefined ? "stop" : "tool_calls";
  return {
    id: "offline",
    object: "chat.completion",
    created: 0,
    model: "gpt-5",
    choices: [{ index: 0, finish_reason, logprobs: null, message }],
    usage: { prompt_tokens: 100, completion_tokens: 20, total_tokens: 120 },
  };
}
