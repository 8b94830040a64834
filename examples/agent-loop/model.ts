import { MockLanguageModelV3 } from "ai/test";

type Answer = Awaited<ReturnType<MockLanguageModelV3["doGenerate"]>>;
type Content = Answer["content"][number];

const usage: Answer["usage"] = {
  inputTokens: { total: 1000, noCache: 1000, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 50, text: 50, reasoning: 0 },
};

/** What the model does at each step: the name of a tool and its input, or its last words. */
const plan: readonly (readonly [tool: string, input: object] | string)[] = [
  ["search", { query: "cairns" }],
  ["read", { page: "history" }],
  ["read", { page: "animals" }],
  ["publish", { title: "Cairns", text: "Stacked stones, older than the paths they mark." }],
  "The article is published.",
];

/** Stands in for a model: offline, and the same answer each time. */
export function offlineModel(onCall: (name: string) => void): MockLanguageModelV3 {
  return new MockLanguageModelV3({
    modelId: "offline-1",
    doGenerate: async ({ prompt }) => {
      const step = prompt.filter(({ role }) => role === "assistant").length;
      onCall(`model, step ${step + 1}`);
      const next = plan[step] ?? "";
      if (typeof next === "string") return answer({ type: "text", text: next }, "stop");
      const [toolName, input] = next;
      const call = { toolCallId: `call-${step}`, toolName, input: JSON.stringify(input) };
      return answer({ type: "tool-call", ...call }, "tool-calls");
    },
  });
}

function answer(content: Content, unified: "stop" | "tool-calls"): Answer {
  return { content: [content], finishReason: { unified, raw: unified }, usage, warnings: [] };
}
