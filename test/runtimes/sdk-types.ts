// Data of LLM SDKs and of schema libraries in a State, for the compilers that the package supports.
import type { MessageParam } from "@anthropic-ai/sdk/resources";
import type { ModelMessage } from "ai";
import type { ChatCompletionMessageParam } from "openai/resources";
import type { JsonValue } from "type-fest";
import { append, END, parallel, State, StateGraph } from "waymark";
import { z } from "zod";

interface Agent {
  messages: ModelMessage[];
  openai: ChatCompletionMessageParam[];
  anthropic: MessageParam[];
  json: JsonValue;
}

const graph = new StateGraph<Agent>({ reducers: { messages: append } })
  .addNode("ask", (state) => {
    const messages: ModelMessage[] = state.get("messages");
    const openai: ChatCompletionMessageParam[] = state.get("openai");
    const anthropic: MessageParam[] = state.get("anthropic");
    return state.set("json", messages.length + openai.length + anthropic.length);
  })
  .addNode("answer", (state) =>
    state.update((draft) => void draft.openai.push({ role: "user", content: "" })),
  )
  .addNode(
    "each",
    parallel(
      (state) => state.data.messages,
      (_state, message) => message.role,
    ),
  )
  .addEdge("ask", "answer")
  .addEdge("answer", "each")
  .addEdge("each", END)
  .setEntryPoint("ask");

export const final: Promise<State<Agent>> = graph.execute(
  State.create({
    messages: [{ role: "user", content: "hello" }],
    openai: [],
    anthropic: [],
    json: { a: [null] },
  }),
);

const schema = z.object({ tree: z.json() });
export const checked = new StateGraph({ schema })
  .addNode("grow", (state) => state.set("tree", { branches: [1, "two", null] }))
  .addEdge("grow", END)
  .setEntryPoint("grow");
