/**
 * Model and tool calls that happen once, for the AI SDK and the SDKs of OpenAI and Anthropic.
 *
 * @packageDocumentation
 */
export type { CallContext } from "./calls.js";
export {
  type ChatClient,
  type Creates,
  durableClient,
  type LanguageClient,
  type MessagesClient,
  type ResponsesClient,
} from "./client.js";
export { type DurableCalls, type DurableOptions, durable } from "./durable.js";
export type { LanguageModelLike } from "./model.js";
export type { CallOptions, Price, Prices } from "./usage.js";
