import type Anthropic from "@anthropic-ai/sdk";
import type { StandardSchemaV1 } from "@standard-schema/spec";
import type { generateText as GenerateText, LanguageModel, ModelMessage, Tool } from "ai";
import type OpenAI from "openai";
import type { JsonValue } from "type-fest";
import { describe, expectTypeOf, test } from "vitest";
import {
  append,
  chain,
  dag,
  END,
  map,
  parallel,
  pause,
  route,
  type StandardSchema,
  State,
  StateGraph,
  subgraph,
} from "waymark";
import { durable, durableClient } from "waymark/ai";
import type { Client } from "waymark/worker";
import { z } from "zod";

/** A value of each library whose types refer to themselves, and all of the shared ones. */
interface Chat {
  messages: ModelMessage[];
  openai: OpenAI.ChatCompletionMessageParam[];
  anthropic: Anthropic.MessageParam[];
  memory: JsonValue;
  json: z.infer<ReturnType<typeof z.json>>;
}

const empty: Chat = { messages: [], openai: [], anthropic: [], memory: null, json: null };
const state = State.create<Chat>(empty);

declare const client: Client;
declare const model: Exclude<LanguageModel, string>;
declare const look: Tool<{ place: string }, JsonValue>;
declare const openaiClient: OpenAI;
declare const anthropicClient: Anthropic;
declare const generateText: typeof GenerateText;
declare const ai: (messages: ModelMessage[]) => Promise<ModelMessage[]>;
declare const openai: (messages: OpenAI.ChatCompletionMessageParam[]) => void;
declare const anthropic: (messages: Anthropic.MessageParam[]) => void;

describe("data of other libraries", () => {
  test("has its declared type in get, so that it fits their functions", () => {
    expectTypeOf(state.get("messages")).toEqualTypeOf<ModelMessage[]>();
    expectTypeOf(state.get("memory")).toEqualTypeOf<JsonValue>();
    expectTypeOf(openai).toBeCallableWith(state.get("openai"));
    expectTypeOf(anthropic).toBeCallableWith(state.get("anthropic"));
  });

  test("goes into a State by set, merge and update", () => {
    state
      .set("messages", [{ role: "user", content: "Hello" }])
      .set("openai", [{ role: "user", content: [{ type: "text", text: "Hello" }] }])
      .set("anthropic", state.data.anthropic)
      .set("json", [{ seen: [1, "2", null] }])
      .merge({ memory: { seen: [1, 2] }, anthropic: [{ role: "user", content: "Hello" }] })
      .update((draft) => {
        draft.messages.push({ role: "assistant", content: "Hi" });
        draft.openai.push({ role: "assistant", content: "Hi" });
        draft.anthropic.push({ role: "assistant", content: [{ type: "text", text: "Hi" }] });
        draft.memory = { seen: [1, 2] };
        draft.json = { deep: [[[{}]]] };
      });
    // @ts-expect-error no such role
    state.set("openai", [{ role: "usr", content: "Hello" }]);
    // @ts-expect-error a Date is no JSON
    state.merge({ memory: { at: new Date() } });
  });

  test("comes out of nodes and node factories", () => {
    const inner = new StateGraph<Chat>()
      .addNode("only", (given) => given)
      .addEdge("only", END)
      .setEntryPoint("only");
    const graph = new StateGraph<Chat>({ reducers: { messages: append, openai: append } })
      .addNode("plain", async (given) => ({ messages: await ai(given.get("messages")) }))
      .addNode("spread", (given) => ({
        messages: [...given.get("messages"), { role: "assistant", content: "Hi" }],
        json: [given.get("json")],
      }))
      .addNode("ask", (given) => pause(given, { reason: "?", into: "memory" }))
      .addNode(
        "chain",
        chain(["a", "b"], (given, text) => given.set("memory", text)),
      )
      .addNode(
        "intermediate",
        chain(
          (given) => given.data.openai,
          async (given, message) => ({ openai: [...given.get("openai"), message] }),
          { intermediate: (_, states) => ({ json: states.length, memory: [null] }) },
        ),
      )
      .addNode("handled", (given) => given, {
        errorHandler: async (error, given) => ({
          anthropic: [...given.get("anthropic"), { role: "user", content: String(error) }],
          memory: { seen: [given.get("memory")] },
        }),
      })
      .addNode(
        "parallel",
        parallel(["a", "b"], async (_, text): Promise<JsonValue> => ({ text }), {
          merge: (given, results) => given.set("memory", [...results]),
        }),
      )
      .addNode(
        "route",
        route(
          () => "one",
          {
            one: (given) => given.set("json", 1),
            two: async (given) => ({ messages: await ai(given.get("messages")) }),
          },
          () => ({ openai: [{ role: "user", content: "Hello" }], json: { deep: [[]] } }),
        ),
      )
      .addNode(
        "merged",
        parallel(
          (given) => given.data.anthropic,
          async (_, message) => message,
          {
            merge: (_, anthropic) => ({ anthropic, json: anthropic.length }),
          },
        ),
      )
      .addNode("subgraph", subgraph(inner, { in: (given) => given.data, out: (_, done) => done }))
      .addNode(
        "part",
        subgraph(inner, {
          in: (given) => ({ ...empty, messages: given.get("messages") }),
          out: (_, { data }) => ({ messages: data.messages, memory: data.memory }),
        }),
      );
    const tasks = dag<Chat>({
      memory: { run: () => ({ n: 1 }) },
      json: { dependsOn: ["memory"], run: ({ data }) => [data.memory] },
    });
    const checked = dag<Chat>()({
      memory: () => ({ n: [1, null] }),
      json: { dependsOn: ["memory"], run: ({ data }) => [data.memory] },
      messages: { node: async (given) => ({ messages: await ai(given.get("messages")) }) },
      openai: {
        dependsOn: ["messages"],
        run: map(
          ({ data }) => data.messages,
          (_, message): OpenAI.ChatCompletionMessageParam => ({
            role: "user",
            content: message.role,
          }),
        ),
      },
    });
    expectTypeOf(checked.execute).returns.resolves.toEqualTypeOf<State<Chat>>();
    expectTypeOf(tasks.execute).returns.resolves.toEqualTypeOf<State<Chat>>();
    expectTypeOf(graph.execute).returns.resolves.toEqualTypeOf<State<Chat>>();
    // @ts-expect-error no such role
    graph.addNode("later", async () => ({ openai: [{ role: "usr", content: "Hello" }] }));
    // @ts-expect-error no such role
    graph.addNode("wrong", () => ({ messages: [{ role: "usr", content: "Hello" }] }));
  });

  test("goes through a worker's client, typed by the graph", () => {
    const graph = new StateGraph<Chat>().addNode("only", (given) => given);
    const submit = () => client.submit(graph, empty, { runId: "monday" });
    expectTypeOf<Awaited<ReturnType<typeof submit>>["result"]>().returns.resolves.toEqualTypeOf<
      State<Chat>
    >();
    expectTypeOf(() => client.submit("chat", empty)).toBeFunction();
    const wrong = [
      // @ts-expect-error keys are missing
      () => client.submit(graph, { messages: [] }),
      // @ts-expect-error no such key
      () => client.schedule(graph, { ...empty, mesages: [] }, { id: "x" }),
    ];
    expectTypeOf(wrong).toBeArray();
  });

  test("goes through durable calls with the types of its SDK", () => {
    new StateGraph<Chat>()
      .addNode("generate", async (given, ctx) => {
        const { model: durableModel, tools } = durable(ctx, { model, tools: { look } });
        expectTypeOf(tools.look).toEqualTypeOf(look);
        const messages = given.get("messages");
        const { response } = await generateText({ model: durableModel, tools, messages });
        return { messages: [...messages, ...response.messages] };
      })
      .addNode("complete", async (given, ctx) => {
        const sdk = durableClient(ctx, openaiClient);
        const messages = given.get("openai");
        const { choices } = await sdk.chat.completions.create({ model: "m", messages });
        return { openai: [...messages, ...choices.map(({ message }) => message)] };
      })
      .addNode("create", async (given, ctx) => {
        const sdk = durableClient(ctx, anthropicClient);
        const messages = given.get("anthropic");
        const { content } = await sdk.messages.create({ model: "m", max_tokens: 1, messages });
        return { anthropic: [...messages, { role: "assistant", content }] };
      });
  });

  test("a schema of any JSON gives the data its type", () => {
    const graph = new StateGraph({ schema: z.object({ answer: z.json() }) });
    graph.addNode("think", (given) => ({ answer: [given.get("answer")] }));
  });
});

test("our Standard Schema is the specification's", () => {
  expectTypeOf<StandardSchemaV1<unknown, number>>().toExtend<StandardSchema<unknown, number>>();
  expectTypeOf<StandardSchema<unknown, number>>().toExtend<StandardSchemaV1<unknown, number>>();
});
