/**
 * A tool loop with the OpenAI SDK as a graph. The second tool call fails; the resumed run repeats no call that
 * was answered. The API is an offline stand-in.
 *
 * Run it: npx tsx examples/openai-agent/main.ts
 */
import assert from "node:assert/strict";
import { ExecutionError, MemoryStore, State } from "waymark";
import { type Conversation, weatherAgent } from "./agent.js";
import { offlineClient } from "./offline.js";

const calls: string[] = [];
const call = (name: string): void => {
  calls.push(name);
  console.log(`  ${name}`);
};
let isDown = true;
const agent = weatherAgent(new MemoryStore(), offlineClient(call), async (city) => {
  call(`weather of ${city}`);
  if (city === "Cairns" && isDown) throw new Error("the weather service is down");
  return `${city}: ${city === "Oslo" ? "-3" : "31"} °C`;
});

const question: Conversation = {
  messages: [{ role: "user", content: "How warm is it in Oslo and in Cairns?" }],
};
console.log("First try:");
const error = await agent
  .execute(State.create(question, { runId: "monday" }))
  .catch((error: unknown) => error);
assert.ok(error instanceof ExecutionError);
console.log(`  failed: ${error.message}`);

isDown = false;
console.log("Resumed:");
const { data, ledger } = await agent.resume("monday");
const last = data.messages.at(-1);
console.log(`Answer: ${String(last?.content)}`);
console.log(
  `${calls.length} calls, ${ledger.usage.inputTokens} + ${ledger.usage.outputTokens} tokens`,
);
assert.equal(last?.content, "Oslo: -3 °C, Cairns: 31 °C.");
assert.deepEqual(calls, [
  "model, 1 messages",
  "weather of Oslo",
  "weather of Cairns",
  "weather of Cairns",
  "model, 4 messages",
]);
