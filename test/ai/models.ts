import { MockLanguageModelV3 } from "ai/test";

/** A model of the AI SDK that calls nobody. */
export type Mock = MockLanguageModelV3;
/** What it is asked. */
export type Asked = Parameters<Mock["doGenerate"]>[0];
/** What it answers. */
export type Answer = Awaited<ReturnType<Mock["doGenerate"]>>;
/** A part of its answer. */
export type Content = Answer["content"][number];
/** A part of its stream. */
export type Part =
  Awaited<ReturnType<Mock["doStream"]>>["stream"] extends ReadableStream<infer P> ? P : never;

/** What each call uses. */
export const usage: Answer["usage"] = {
  inputTokens: { total: 100, noCache: 80, cacheRead: 20, cacheWrite: 0 },
  outputTokens: { total: 10, text: 10, reasoning: 0 },
};

export const price = { "mock-1": { input: 2, output: 10, cachedInput: 0.5 } };
/** What a call costs by that table. */
export const cost = (80 * 2 + 20 * 0.5 + 10 * 10) / 1_000_000;

export const text = (said: string): Content => ({ type: "text", text: said });

export const toolCall = (toolName: string, input: object, toolCallId: string): Content => ({
  type: "tool-call",
  toolCallId,
  toolName,
  input: JSON.stringify(input),
});

export function answerOf(...content: Content[]): Answer {
  const isTool = content.some(({ type }) => type === "tool-call");
  return {
    content,
    finishReason: isTool
      ? { unified: "tool-calls", raw: "tool_calls" }
      : { unified: "stop", raw: "stop" },
    usage,
    warnings: [],
    response: { id: "response", modelId: "mock-1", timestamp: new Date(0) },
  };
}

/** How many answers of the model are in what it is asked. */
export const stepOf = ({ prompt }: Asked): number =>
  prompt.filter(({ role }) => role === "assistant").length;

/** A model that answers each step by itself; it counts in `doGenerateCalls` and `doStreamCalls`. */
export function mockModel(
  answer: (step: number, asked: Asked) => Answer | Promise<Answer>,
  modelId = "mock-1",
): Mock {
  return new MockLanguageModelV3({
    modelId,
    doGenerate: async (asked) => answer(stepOf(asked), asked),
    doStream: async (asked) => ({
      stream: new ReadableStream<Part>({
        async start(controller) {
          for (const part of partsOf(await answer(stepOf(asked), asked))) controller.enqueue(part);
          controller.close();
        },
      }),
    }),
  });
}

/** The same answer, part by part. */
export function partsOf({ content, finishReason, usage, response }: Answer): Part[] {
  const inside = content.flatMap((one, at): Part[] => {
    if (one.type !== "text") return [one as Part];
    const id = `${at}`;
    const deltas = one.text.split(/(?<= )/);
    return [
      { type: "text-start", id },
      ...deltas.map((delta): Part => ({ type: "text-delta", id, delta })),
      { type: "text-end", id },
    ];
  });
  return [
    { type: "stream-start", warnings: [] },
    { type: "response-metadata", ...response },
    ...inside,
    { type: "finish", finishReason, usage },
  ];
}
