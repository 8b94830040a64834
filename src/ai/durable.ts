import { check, checkOptions } from "../options.js";
import { type CallContext, Calls } from "./calls.js";
import { durableModel, type LanguageModelLike } from "./model.js";
import { durableTools } from "./tools.js";
import { type CallOptions, callChecks, fieldAt } from "./usage.js";

const isModel = check(
  "a language model of the AI SDK",
  (value) =>
    typeof fieldAt(value, "doGenerate") === "function" &&
    typeof fieldAt(value, "doStream") === "function",
);
const isTools = check(
  "an object of tools by name",
  (value) => typeof value === "object" && value !== null,
);

/** The result of {@link durable}. */
export interface DurableCalls<M, T> {
  /** The model, each of whose calls happens once. */
  readonly model: M;
  /** The tools, each of whose calls happens once. */
  readonly tools: T;
}

/** Options of {@link durable}. */
export interface DurableOptions<M extends LanguageModelLike, T extends object> extends CallOptions {
  /** A language model of the AI SDK. */
  readonly model: M;
  /** Tools of the AI SDK, by name; none by default. */
  readonly tools?: T;
}

/**
 * Makes each model call and each tool call happen once per visit to the node. The result of a call is saved before
 * it is used; after a crash or a retry it comes from the checkpoint. Pass the result to `generateText`,
 * `streamText`, `generateObject` or an agent of the AI SDK.
 *
 * A tool with `needsApproval` pauses the run, with the tool's input as the question: resume with `true`,
 * `false` or `{ approved, reason }`.
 *
 * @throws ConfigError if an option is invalid.
 *
 * @example
 * ```ts
 * import { generateText, type ModelMessage, stepCountIs, tool } from "ai";
 * import { MockLanguageModelV3 } from "ai/test";
 * import { append, END, State, StateGraph } from "waymark";
 * import { durable } from "waymark/ai";
 * import { z } from "zod";
 *
 * const none = { total: 5, noCache: 5, cacheRead: 0, cacheWrite: 0 };
 * const mock = new MockLanguageModelV3({
 *   modelId: "mock-1",
 *   doGenerate: {
 *     content: [{ type: "text", text: "Stacked stones." }],
 *     finishReason: { unified: "stop", raw: "stop" },
 *     usage: { inputTokens: none, outputTokens: { total: 3, text: 3, reasoning: 0 } },
 *     warnings: [],
 *   },
 * });
 * const search = tool({
 *   description: "Searches the library.",
 *   inputSchema: z.object({ query: z.string() }),
 *   execute: async ({ query }) => `Nothing on ${query}.`,
 * });
 *
 * const graph = new StateGraph<{ messages: ModelMessage[] }>({ reducers: { messages: append } })
 *   .addNode("agent", async (state, ctx) => {
 *     const price = { "mock-1": { input: 1, output: 2 } };
 *     const { model, tools } = durable(ctx, { model: mock, tools: { search }, price });
 *     const messages = state.get("messages");
 *     const result = await generateText({ model, tools, messages, stopWhen: stepCountIs(20) });
 *     return { messages: result.response.messages };
 *   })
 *   .addEdge("agent", END)
 *   .setEntryPoint("agent");
 *
 * const final = await graph.execute(
 *   State.create({ messages: [{ role: "user", content: "What is a cairn?" }] }),
 * );
 * console.log(final.get("messages").length, final.ledger.usage.costUsd); // 2 0.000011
 * ```
 */
export function durable<M extends LanguageModelLike, T extends object = Record<string, never>>(
  ctx: CallContext,
  options: DurableOptions<M, T>,
): DurableCalls<M, T> {
  checkOptions("durable", options, { ...callChecks, model: isModel, tools: isTools });
  isModel("durable.model", options.model);
  const { model, tools, keepCalls = Number.POSITIVE_INFINITY } = options;
  const calls = Calls.of(ctx);
  return {
    model: durableModel(calls, model, options),
    tools: durableTools(calls, tools ?? ({} as T), keepCalls),
  };
}
