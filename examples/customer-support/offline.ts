import Anthropic from "@anthropic-ai/sdk";

/** Stands in for the API: the same answer each time. */
export function offlineClient(onCall: (role: string) => void): Anthropic {
  return new Anthropic({
    apiKey: "offline",
    fetch: async (_url, init) => {
      const { system, messages } = JSON.parse(String(init?.body)) as Anthropic.MessageCreateParams;
      const role = /You are (?:the )?(\w+ \w+)/.exec(String(system))?.[1] ?? "nobody";
      onCall(role);
      const text = answer(role, JSON.stringify(messages[0]));
      return Response.json(message(text), { headers: { "request-id": "offline" } });
    },
  });
}

function answer(role: string, question: string): string {
  const isBilling = question.includes("charged");
  if (role === "billing support") return "You were charged twice. REFUND";
  if (role === "technical support") return "Hold the power button for ten seconds.";
  return isBilling ? "Billing will look into it. BILLING" : "Let me ask a technician. TECHNICAL";
}

function message(text: string) {
  return {
    id: "offline",
    type: "message",
    role: "assistant",
    model: "claude-sonnet-5-5",
    content: [{ type: "text", text, citations: null }],
    stop_reason: "end_turn",
    stop_sequence: null,
    usage: { input_tokens: 50, output_tokens: 10 },
  };
}
