import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import { afterEach, describe, expect, test } from "vitest";
import { type AnyEvent, MemoryStore, type NodeContext, State, StateGraph } from "waymark";
import { durableClient } from "waymark/ai";

interface Reply {
  readonly status?: number;
  readonly json?: object;
  /** What a stream sends; `undefined` cuts the connection. */
  readonly events?: readonly (object | string | undefined)[];
}

interface Asked {
  readonly url: string;
  readonly body: { readonly [field: string]: unknown };
}

const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    server.close();
  }
});

/** A provider on this machine: what it was asked, and its address. */
async function provider(reply: (number: number, asked: Asked) => Reply) {
  const asked: Asked[] = [];
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const one = { url: request.url ?? "", body: JSON.parse(Buffer.concat(chunks).toString()) };
    asked.push(one);
    const { status = 200, json, events } = reply(asked.length, one);
    const type = events === undefined ? "application/json" : "text/event-stream";
    response.writeHead(status, { "content-type": type, "retry-after-ms": "1" });
    if (events === undefined) return response.end(JSON.stringify(json));
    for (const event of events) {
      if (event === undefined) return response.destroy();
      const name = typeof event === "object" && "type" in event ? `event: ${event.type}\n` : "";
      response.write(
        `${name}data: ${typeof event === "string" ? event : JSON.stringify(event)}\n\n`,
      );
      await new Promise((resolve) => setImmediate(resolve));
    }
    return response.end();
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const openai = new OpenAI({ apiKey: "key", baseURL: url });
  const anthropic = new Anthropic({ apiKey: "key", baseURL: url });
  return { asked, openai, anthropic };
}

interface Data {
  readonly result: unknown;
}

/** Runs a node that crashes at its end, resumes it, and gives what both attempts gave. */
async function twice(run: (context: NodeContext<Data>) => Promise<unknown>) {
  const results: unknown[] = [];
  const events: AnyEvent[] = [];
  const graph = new StateGraph<Data>({
    checkpoint: { store: new MemoryStore(), interval: 1, preserve: true },
    observer: (event) => events.push(event),
  })
    .addNode("ask", async (_state, context) => {
      results.push(await run(context));
      if (results.length === 1) throw new Error("crash");
      return {};
    })
    .setEntryPoint("ask")
    .setExitPoint("ask");
  const state = State.create<Data>({ result: undefined }, { runId: "r" });
  await expect(graph.execute(state)).rejects.toThrow("crash");
  const final = await graph.resume("r");
  return { results, usage: final.ledger.usage, events };
}

async function all<T>(stream: AsyncIterable<T>): Promise<T[]> {
  const chunks: T[] = [];
  for await (const chunk of stream) chunks.push(chunk);
  return chunks;
}

const completion = (content: string): object => ({
  id: "c",
  object: "chat.completion",
  model: "gpt-5-2025-08-07",
  choices: [{ index: 0, finish_reason: "stop", message: { role: "assistant", content } }],
  usage: {
    prompt_tokens: 1000,
    completion_tokens: 100,
    prompt_tokens_details: { cached_tokens: 400 },
  },
});

const chunk = (content: string, finish_reason: string | null = null): object => ({
  id: "c",
  object: "chat.completion.chunk",
  model: "gpt-5-2025-08-07",
  choices: [{ index: 0, delta: { content }, finish_reason }],
});

const response = (text: string): object => ({
  id: "r",
  object: "response",
  status: "completed",
  model: "gpt-5-2025-08-07",
  output: [
    {
      type: "message",
      role: "assistant",
      content: [{ type: "output_text", text, annotations: [] }],
    },
  ],
  usage: { input_tokens: 30, output_tokens: 4, input_tokens_details: { cached_tokens: 10 } },
});

const message = (text: string): object => ({
  id: "m",
  type: "message",
  role: "assistant",
  model: "claude-opus",
  content: [{ type: "text", text }],
  stop_reason: "end_turn",
  usage: {
    input_tokens: 10,
    output_tokens: 5,
    cache_read_input_tokens: 20,
    cache_creation_input_tokens: 30,
  },
});

const price = {
  "gpt-5": { input: 1, output: 10, cachedInput: 0.1 },
  "claude-opus": { input: 5, output: 25, cachedInput: 0.5, cacheWrite: 6.25 },
};
const user = [{ role: "user" as const, content: "go" }];

describe("a durable client of OpenAI", () => {
  test("makes each chat completion once, with its usage and cost", async () => {
    const { openai, asked } = await provider((number) => ({
      json: completion(`answer ${number}`),
    }));
    const { results, usage } = await twice(async (context) => {
      const client = durableClient(context, openai, { price });
      const one = await client.chat.completions.create({ model: "gpt-5", messages: user });
      const two = await client.chat.completions.create({ model: "gpt-5", messages: user });
      return [one, two].map(({ choices }) => choices[0]?.message.content);
    });
    expect(results).toEqual([
      ["answer 1", "answer 2"],
      ["answer 1", "answer 2"],
    ]);
    expect(asked.length).toBe(2);
    expect(usage).toMatchObject({
      inputTokens: 2000,
      outputTokens: 200,
      counters: { modelCalls: 2 },
    });
    expect(usage.costUsd).toBeCloseTo((2 * (600 + 40 + 1000)) / 1e6, 12);
  });

  test("makes each response once", async () => {
    const { openai, asked } = await provider((number) => ({ json: response(`answer ${number}`) }));
    const { results, usage } = await twice(async (context) => {
      const client = durableClient(context, openai);
      return (await client.responses.create({ model: "gpt-5", input: "go" })).output_text;
    });
    expect(results).toEqual(["answer 1", "answer 1"]);
    expect(asked.length).toBe(1);
    expect(usage).toMatchObject({ inputTokens: 30, outputTokens: 4 });
  });

  test("streams live, and then the same chunks from the checkpoint", async () => {
    const last = { ...chunk("", "stop"), usage: { prompt_tokens: 7, completion_tokens: 2 } };
    const events = [chunk("a"), chunk("b"), last, "[DONE]"];
    const { openai, asked } = await provider(() => ({ events }));
    const { results, usage } = await twice(async (context) => {
      const client = durableClient(context, openai);
      const stream = await client.chat.completions.create({
        model: "gpt-5",
        messages: user,
        stream: true,
      });
      return all(stream);
    });
    expect(results).toEqual([events.slice(0, 3), events.slice(0, 3)]);
    expect(asked.length).toBe(1);
    expect(usage).toMatchObject({ inputTokens: 7, outputTokens: 2, counters: { modelCalls: 1 } });
  });

  test("streams responses, which can be split and sent on", async () => {
    const events = [
      { type: "response.output_text.delta", delta: "a" },
      { type: "response.completed", response: response("a") },
    ];
    const { openai, asked } = await provider(() => ({ events }));
    const { results, usage } = await twice(async (context) => {
      const client = durableClient(context, openai);
      const body = { model: "gpt-5", input: "go", stream: true } as const;
      const [left, right] = (await client.responses.create(body)).tee();
      const types = (await all(left)).map(({ type }) => type);
      const sent = await new Response(right.toReadableStream() as ReadableStream).text();
      return [types, sent.trim().split("\n").length];
    });
    const expected = [["response.output_text.delta", "response.completed"], 2];
    expect(results).toEqual([expected, expected]);
    expect(asked.length).toBe(1);
    expect(usage.inputTokens).toBe(30);
  });

  test("does not record a stream that was cut, ended early, aborted or left", async () => {
    const whole = [chunk("a"), chunk("", "stop"), "[DONE]"];
    const { openai, asked } = await provider((number) => ({
      events: [[chunk("a"), undefined], [chunk("a")], whole, whole][number - 1] ?? whole,
    }));
    const { usage } = await twice(async (context) => {
      const client = durableClient(context, openai);
      const ask = () =>
        client.chat.completions.create({ model: "gpt-5", messages: user, stream: true });
      if (asked.length < 4) {
        await expect(ask().then(all)).rejects.toThrow();
        await all(await ask());
        const aborted = await ask();
        for await (const _ of aborted) aborted.controller.abort();
        for await (const _ of await ask()) break;
      }
      return all(await ask());
    });
    expect(asked.length).toBe(5);
    expect(usage.counters.modelCalls).toBe(1);
  });

  test("makes one call of the SDK's retries, and none of what failed", async () => {
    const { openai, asked } = await provider((number) =>
      number % 2 === 1 ? { status: 500, json: {} } : { json: completion(`answer ${number}`) },
    );
    const { results, usage } = await twice(async (context) => {
      const client = durableClient(context, openai);
      const ask = (maxRetries: number) =>
        client.chat.completions.create({ model: "gpt-5", messages: user }, { maxRetries });
      if (asked.length === 0) await expect(ask(0)).rejects.toThrow("500");
      return [await ask(1), await ask(1)].map(({ choices }) => choices[0]?.message.content);
    });
    expect(results).toEqual([
      ["answer 2", "answer 4"],
      ["answer 2", "answer 4"],
    ]);
    expect(usage.counters.modelCalls).toBe(2);
  });

  test("warns where the messages changed, and asks again", async () => {
    const { openai, asked } = await provider(() => ({ json: completion("x") }));
    const { events } = await twice(async (context) => {
      const client = durableClient(context, openai);
      const messages = [{ role: "user" as const, content: `at ${asked.length}` }];
      return client.chat.completions.create({ model: "gpt-5", messages });
    });
    expect(asked.length).toBe(2);
    expect(events.filter(({ type }) => type === "ai.warning").length).toBe(1);
  });

  test("leaves the rest of the client as it is", async () => {
    const { openai } = await provider(() => ({ json: completion("x") }));
    const { results } = await twice(async (context) => {
      const client = durableClient(context, openai);
      const promise = client.chat.completions.create({ model: "gpt-5", messages: user });
      await promise;
      await expect(promise.withResponse()).rejects.toThrow("has no HTTP response to give");
      const page = await client.post<{ model: string }>("/other", { body: {} });
      return [client.baseURL === openai.baseURL, client instanceof OpenAI, page.model];
    });
    expect(results[0]).toEqual([true, true, "gpt-5-2025-08-07"]);
  });
});

describe("a durable client of Anthropic", () => {
  test("makes each message once, and counts what was cached", async () => {
    const { anthropic, asked } = await provider((number) => ({
      json: message(`answer ${number}`),
    }));
    const { results, usage } = await twice(async (context) => {
      const client = durableClient(context, anthropic, { price });
      const body = { model: "claude-opus", max_tokens: 10, messages: user };
      const { content } = await client.messages.create(body);
      return content;
    });
    expect(results[0]).toEqual([{ type: "text", text: "answer 1" }]);
    expect(results[1]).toEqual(results[0]);
    expect(asked.length).toBe(1);
    expect(usage).toMatchObject({ inputTokens: 60, outputTokens: 5 });
    expect(usage.costUsd).toBeCloseTo((10 * 5 + 20 * 0.5 + 30 * 6.25 + 5 * 25) / 1e6, 12);
  });

  test("streams live, and then the same events from the checkpoint", async () => {
    const events = [
      { type: "message_start", message: message("") },
      { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
      { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "hi" } },
      { type: "content_block_stop", index: 0 },
      { type: "message_delta", delta: { stop_reason: "end_turn" }, usage: { output_tokens: 9 } },
      { type: "message_stop" },
    ];
    const { anthropic, asked } = await provider(() => ({ events }));
    const { results, usage } = await twice(async (context) => {
      const client = durableClient(context, anthropic);
      const body = { model: "claude-opus", max_tokens: 10, messages: user, stream: true } as const;
      return all(await client.messages.create(body));
    });
    expect(results).toEqual([events, events]);
    expect(asked.length).toBe(1);
    expect(usage).toMatchObject({ inputTokens: 60, outputTokens: 9, counters: { modelCalls: 1 } });
  });
});

test("any other client is refused", async () => {
  const graph = new StateGraph<Data>()
    .addNode("ask", async (_state, context) => {
      durableClient(context, { messages: {} } as never);
      return {};
    })
    .setEntryPoint("ask")
    .setExitPoint("ask");
  await expect(graph.execute(State.create<Data>({ result: 0 }))).rejects.toThrow(
    "client must be an OpenAI or Anthropic client, with one of chat.completions.create, ",
  );
});
