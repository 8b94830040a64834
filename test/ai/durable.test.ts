import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  APICallError,
  generateObject,
  generateText,
  type ModelMessage,
  stepCountIs,
  streamText,
  ToolLoopAgent,
  tool,
} from "ai";
import { MockLanguageModelV3 } from "ai/test";
import { describe, expect, test, vi } from "vitest";
import { type AnyEvent, MemoryStore, type NodeContext, parallel, State, StateGraph } from "waymark";
import { durable } from "waymark/ai";
import { SqliteStore } from "waymark/stores/sqlite";
import { z } from "zod";
import { answerOf, cost, type Mock, mockModel, price, text, toolCall, usage } from "./models.js";

interface Data {
  readonly result: unknown;
}

type Run = (context: NodeContext<Data>) => Promise<unknown>;

/** A graph of one node; it fails at its end as often as is said, as a crash there would. */
function graphOf(run: Run, { failures = 1, store = new MemoryStore() } = {}) {
  const events: AnyEvent[] = [];
  let left = failures;
  const graph = new StateGraph<Data>({
    checkpoint: { store, interval: 1, preserve: true },
    observer: (event) => events.push(event),
  })
    .addNode("agent", async (_state, context) => {
      const result = await run(context);
      if (left-- > 0) throw new Error("crash");
      return { result };
    })
    .setEntryPoint("agent")
    .setExitPoint("agent");
  const start = (): Promise<State<Data>> =>
    graph.execute(State.create<Data>({ result: undefined }, { runId: "r" }));
  return { graph, start, events, store };
}

/** Runs it to its end over all crashes. */
async function toEnd(run: Run, failures = 1) {
  const { graph, start, events } = graphOf(run, { failures });
  let final: State<Data> | undefined;
  if (failures === 0) final = await start();
  else await expect(start()).rejects.toThrow("crash");
  for (let left = failures; left > 0; left--) {
    if (left === 1) final = await graph.resume("r");
    else await expect(graph.resume("r")).rejects.toThrow("crash");
  }
  const warnings = events.filter(({ type }) => type === "ai.warning");
  return { final: final as State<Data>, warnings };
}

const lookup = (execute: (input: { n: number }) => unknown) =>
  tool({
    description: "Looks something up.",
    inputSchema: z.object({ n: z.number() }),
    execute: async (input) => execute(input),
  });

/** Looks up 0, 1, 2, and then says it is done. */
const looksUp = (steps: number): Mock =>
  mockModel((step) =>
    step < steps ? answerOf(toolCall("look", { n: step }, `call-${step}`)) : answerOf(text("done")),
  );

describe("generateText", () => {
  test("makes each call of the model and of a tool once", async () => {
    const mock = looksUp(3);
    const looked = vi.fn(({ n }: { n: number }) => `found ${n}`);
    const run: Run = async (context) => {
      const given = { model: mock, tools: { look: lookup(looked) }, price };
      const { model, tools } = durable(context, given);
      const result = await generateText({ model, tools, prompt: "go", stopWhen: stepCountIs(9) });
      return result.response.messages;
    };
    const undisturbed = await toEnd(run, 0);
    expect([mock.doGenerateCalls.length, looked.mock.calls.length]).toEqual([4, 3]);
    const { final, warnings } = await toEnd(run, 3);
    expect([mock.doGenerateCalls.length, looked.mock.calls.length]).toEqual([8, 6]);
    expect(final.data.result).toEqual(undisturbed.final.data.result);
    expect(final.ledger.usage).toEqual(undisturbed.final.ledger.usage);
    expect(final.ledger.usage).toMatchObject({
      inputTokens: 400,
      outputTokens: 40,
      counters: { modelCalls: 4 },
    });
    expect(final.ledger.usage.costUsd).toBeCloseTo(4 * cost, 12);
    expect(warnings).toEqual([]);
  });

  test("is answered by the checkpoint in a retry as well", async () => {
    const mock = looksUp(0);
    let attempts = 0;
    const graph = new StateGraph<Data>({ checkpoint: { store: new MemoryStore(), interval: 1 } })
      .addNode(
        "agent",
        async (_state, context) => {
          const { model } = durable(context, { model: mock });
          const { text: result } = await generateText({ model, prompt: "go" });
          if (++attempts < 3) throw new Error("again");
          return { result };
        },
        { retry: { maxAttempts: 3, initialInterval: 1 } },
      )
      .setEntryPoint("agent")
      .setExitPoint("agent");
    const final = await graph.execute(State.create<Data>({ result: undefined }));
    expect(final.data.result).toBe("done");
    expect(mock.doGenerateCalls.length).toBe(1);
    expect(final.ledger.usage.counters.modelCalls).toBe(1);
  });

  test("makes one call of the SDK's own retries", async () => {
    let tries = 0;
    const mock = mockModel(() => {
      tries++;
      if (tries % 2 === 0) return answerOf(text(`try ${tries}`));
      throw new APICallError({
        message: "busy",
        url: "",
        requestBodyValues: {},
        isRetryable: true,
        responseHeaders: { "retry-after-ms": "1" },
      });
    });
    const { final } = await toEnd(async (context) => {
      const { model } = durable(context, { model: mock });
      const one = await generateText({ model, prompt: "same" });
      const other = await generateText({ model, prompt: "same" });
      return [one.text, other.text];
    });
    expect(final.data.result).toEqual(["try 2", "try 4"]);
    expect(tries).toBe(4);
    expect(final.ledger.usage.counters.modelCalls).toBe(2);
  });

  test("keeps calls with the same prompt apart, by their order", async () => {
    let calls = 0;
    const mock = mockModel(() => answerOf(text(`joke ${++calls}`)));
    const { final } = await toEnd(async (context) => {
      const { model } = durable(context, { model: mock });
      const results = await Promise.all(
        [1, 2, 3].map(() => generateText({ model, prompt: "joke" })),
      );
      return results.map((result) => result.text);
    });
    expect(final.data.result).toEqual(["joke 1", "joke 2", "joke 3"]);
    expect(calls).toBe(3);
  });

  test("shares one record between several durable models of a node", async () => {
    const [one, two] = [
      mockModel(() => answerOf(text("1")), "one"),
      mockModel(() => answerOf(text("2")), "two"),
    ];
    const { final } = await toEnd(async (context) => {
      const first = durable(context, { model: one });
      const second = durable(context, { model: two });
      const a = await generateText({ ...first, prompt: "go" });
      const b = await generateText({ ...second, prompt: "go" });
      return a.text + b.text;
    });
    expect(final.data.result).toBe("12");
    expect([one.doGenerateCalls.length, two.doGenerateCalls.length]).toEqual([1, 1]);
  });

  test("does not record a call that was aborted", async () => {
    let calls = 0;
    const mock = mockModel(async (_step, { abortSignal }) => {
      if (++calls > 1) return answerOf(text("done"));
      return new Promise((_resolve, reject) => {
        abortSignal?.addEventListener("abort", () => reject(abortSignal.reason));
        queueMicrotask(() => stop.abort());
      });
    });
    const stop = new AbortController();
    const { graph, start } = graphOf(
      async (context) => {
        const { model } = durable(context, { model: mock });
        const { signal } = calls === 0 ? stop : new AbortController();
        return (await generateText({ model, prompt: "go", abortSignal: signal })).text;
      },
      { failures: 0 },
    );
    await expect(start()).rejects.toThrow();
    const final = await graph.resume("r");
    expect([final.data.result, calls, final.ledger.usage.counters.modelCalls]).toEqual([
      "done",
      2,
      1,
    ]);
  });

  test("begins no call once the run is cancelled", async () => {
    const cancel = new AbortController();
    const mock = mockModel(() => answerOf(text("done")));
    const graph = new StateGraph<Data>({ checkpoint: { store: new MemoryStore(), interval: 1 } })
      .addNode("agent", async (_state, context) => {
        const { model } = durable(context, { model: mock });
        cancel.abort();
        return { result: (await generateText({ model, prompt: "go" })).text };
      })
      .setEntryPoint("agent")
      .setExitPoint("agent");
    const run = graph.execute(State.create<Data>({ result: "" }), { signal: cancel.signal });
    await expect(run).rejects.toThrow();
    expect(mock.doGenerateCalls.length).toBe(0);
  });
});

describe("other functions of the AI SDK", () => {
  test("generateObject and agents work unchanged", async () => {
    const mock = mockModel((_step, { responseFormat }) =>
      answerOf(text(responseFormat?.type === "json" ? '{"score":7}' : "fine")),
    );
    const { final } = await toEnd(async (context) => {
      const { model, tools } = durable(context, { model: mock });
      const { object } = await generateObject({
        model,
        schema: z.object({ score: z.number() }),
        prompt: "judge",
      });
      const agent = new ToolLoopAgent({ model, tools, instructions: "be brief" });
      const { text: said } = await agent.generate({ prompt: "how is it?" });
      return [object.score, said];
    });
    expect(final.data.result).toEqual([7, "fine"]);
    expect(mock.doGenerateCalls.length).toBe(2);
  });

  test("streamText gives the same parts from the checkpoint, and runs its tools once", async () => {
    const mock = looksUp(2);
    const looked = vi.fn(({ n }: { n: number }) => `found ${n}`);
    const seen: unknown[][] = [];
    const { final } = await toEnd(async (context) => {
      const { model, tools } = durable(context, { model: mock, tools: { look: lookup(looked) } });
      const result = streamText({ model, tools, prompt: "go", stopWhen: stepCountIs(9) });
      const parts: unknown[] = [];
      for await (const part of result.fullStream) parts.push(part);
      seen.push(parts);
      return (await result.response).messages;
    });
    expect(seen[0]?.length).toBeGreaterThan(10);
    expect(withoutIds(seen[1])).toEqual(withoutIds(seen[0]));
    expect([mock.doStreamCalls.length, looked.mock.calls.length]).toEqual([3, 2]);
    expect(final.ledger.usage).toMatchObject({ inputTokens: 300, counters: { modelCalls: 3 } });
  });

  test("streamText streams live the first time", async () => {
    let source: ReadableStreamDefaultController<never> | undefined;
    const mock = new MockLanguageModelV3({
      doStream: async () => ({
        stream: new ReadableStream({
          start(controller) {
            source = controller;
          },
        }),
      }),
    });
    const push = (part: object): void => source?.enqueue(part as never);
    const { final } = await toEnd(async (context) => {
      const { model } = durable(context, { model: mock });
      const { textStream } = streamText({ model, prompt: "go" });
      const reader = textStream.getReader();
      const first = reader.read();
      if (mock.doStreamCalls.length === 0) {
        await vi.waitFor(() => expect(source).toBeDefined());
        push({ type: "text-start", id: "0" });
        push({ type: "text-delta", id: "0", delta: "live" });
      }
      const { value } = await first;
      if (mock.doStreamCalls.length === 1 && source !== undefined) {
        push({ type: "text-end", id: "0" });
        push({ type: "finish", usage, finishReason: { unified: "stop", raw: "stop" } });
        source.close();
        source = undefined;
      }
      expect((await reader.read()).done).toBe(true);
      return value;
    });
    expect(final.data.result).toBe("live");
    expect(mock.doStreamCalls.length).toBe(1);
  });

  test.each([
    ["an error", { type: "error", error: new Error("overloaded") }],
    ["no end", undefined],
  ])("a stream with %s is not recorded", async (_name, last) => {
    let calls = 0;
    const mock = new MockLanguageModelV3({
      doStream: async () => {
        const parts: object[] = [
          { type: "text-start", id: "0" },
          { type: "text-delta", id: "0", delta: "x" },
        ];
        if (calls++ > 0 || last !== undefined) parts.push({ type: "text-end", id: "0" });
        if (calls === 1 && last !== undefined) parts.push(last);
        if (calls > 1 || last !== undefined)
          parts.push({ type: "finish", usage, finishReason: { unified: "stop", raw: "stop" } });
        return { stream: ReadableStream.from(parts) as ReadableStream<never> };
      },
    });
    const { final } = await toEnd(async (context) => {
      const { model } = durable(context, { model: mock });
      const result = streamText({ model, prompt: "go", onError: () => {} });
      await result.consumeStream();
      return calls;
    });
    expect(final.data.result).toBe(2);
    expect(final.ledger.usage.counters.modelCalls).toBe(1);
  });
});

describe("a prompt that changed", () => {
  test("is sent again, with one warning per conversation", async () => {
    const mock = looksUp(3);
    const looked = vi.fn(({ n }: { n: number }) => `found ${n}`);
    let prompt = "go";
    const run: Run = async (context) => {
      const { model, tools } = durable(context, { model: mock, tools: { look: lookup(looked) } });
      const result = await generateText({ model, tools, prompt, stopWhen: stepCountIs(9) });
      return result.text;
    };
    const { graph, start, events } = graphOf(run);
    await expect(start()).rejects.toThrow("crash");
    prompt = "go on";
    const final = await graph.resume("r");
    expect(final.data.result).toBe("done");
    expect(mock.doGenerateCalls.length).toBe(8);
    expect(final.ledger.usage.counters.modelCalls).toBe(8);
    const warnings = events.filter(({ type }) => type === "ai.warning");
    expect(warnings.map(({ data }) => data)).toEqual([
      {
        node: "agent",
        step: 0,
        kind: "changed-call",
        message: "model call 1 differs from the recorded one, so it was made again",
      },
    ]);
  });

  test("in the middle of a conversation does not repeat earlier calls", async () => {
    const mock = mockModel((_step, { prompt }) => answerOf(text(JSON.stringify(prompt))));
    let second = "b";
    const { graph, start, events } = graphOf(async (context) => {
      const { model } = durable(context, { model: mock });
      for (const prompt of ["a", second, "c"]) await generateText({ model, prompt });
    });
    await expect(start()).rejects.toThrow("crash");
    second = "other";
    await graph.resume("r");
    expect(mock.doGenerateCalls.length).toBe(4);
    expect(events.filter(({ type }) => type === "ai.warning").length).toBe(1);
  });

  test("is not reported for a node that resumes from a milestone", async () => {
    const mock = mockModel((step) => answerOf(text(`answer ${step}`)));
    const events: AnyEvent[] = [];
    let crashes = 1;
    const graph = new StateGraph<{ messages: ModelMessage[] }>({
      checkpoint: { store: new MemoryStore(), interval: 1, preserve: true },
      observer: (event) => events.push(event),
    })
      .addNode("agent", async (given, context) => {
        let state = given;
        while (state.data.messages.length < 7) {
          const { model } = durable(context, { model: mock, keepCalls: 2 });
          const messages = state.get("messages");
          const { response } = await generateText({ model, messages });
          const more: ModelMessage[] = [...messages, ...response.messages];
          if (more.length === 6 && crashes-- > 0) throw new Error("crash");
          state = await context.checkpoint(
            state.set("messages", [...more, { role: "user", content: "go on" }]),
            "answered",
          );
        }
        return state;
      })
      .setEntryPoint("agent")
      .setExitPoint("agent");
    const messages: ModelMessage[] = [{ role: "user", content: "go" }];
    await expect(graph.execute(State.create({ messages }, { runId: "r" }))).rejects.toThrow(
      "crash",
    );
    const final = await graph.resume("r");
    expect(final.get("messages").length).toBe(7);
    expect(mock.doGenerateCalls.length).toBe(3);
    expect(events.filter(({ type }) => type === "ai.warning")).toEqual([]);
  });
});

describe("tools", () => {
  test("called in parallel are recorded separately, even if one is still running at the crash", async () => {
    const mock = mockModel((step) =>
      step === 0
        ? answerOf(...[0, 1, 2].map((n) => toolCall("look", { n: 7 }, `call-${n}`)))
        : answerOf(text("done")),
    );
    let calls = 0;
    let lost = 0;
    const run: Run = async (context) => {
      const look = tool({
        inputSchema: z.object({ n: z.number() }),
        execute: async (_input, { toolCallId }) => {
          calls++;
          if (toolCallId === "call-0" && lost++ === 0) return new Promise<never>(() => {});
          return `for ${toolCallId}`;
        },
      });
      const { model, tools } = durable(context, { model: mock, tools: { look } });
      const generated = generateText({ model, tools, prompt: "go", stopWhen: stepCountIs(9) });
      if (lost === 0) {
        await vi.waitFor(() => expect(context.recall("ai: 2")).toBeDefined());
        throw new Error("crash");
      }
      const { steps } = await generated;
      return steps[0]?.toolResults.map(({ output }) => output);
    };
    const { graph, start } = graphOf(run, { failures: 0 });
    await expect(start()).rejects.toThrow("crash");
    expect(calls).toBe(3);
    const final = await graph.resume("r");
    expect(final.data.result).toEqual(["for call-0", "for call-1", "for call-2"]);
    expect(calls).toBe(4);
  });

  test("that throw are recorded with the error that the model got", async () => {
    const mock = looksUp(1);
    class LookupError extends Error {
      override readonly name = "LookupError";
      readonly socket = () => {};
    }
    const looked = vi.fn(() => {
      throw new LookupError("no such thing");
    });
    const { final } = await toEnd(async (context) => {
      const { model, tools } = durable(context, { model: mock, tools: { look: lookup(looked) } });
      const result = await generateText({ model, tools, prompt: "go", stopWhen: stepCountIs(9) });
      return result.response.messages[1];
    });
    expect(looked).toHaveBeenCalledTimes(1);
    expect(mock.doGenerateCalls.length).toBe(2);
    expect(final.data.result).toMatchObject({
      content: [{ output: { type: "error-text", value: "no such thing" } }],
    });
  });

  test.each([
    ["a string", "not today", "not today"],
    ["an object", { code: 7 }, '{"code":7}'],
  ])("that throw %s are recorded too", async (_name, thrown, said) => {
    const mock = looksUp(1);
    const { final } = await toEnd(async (context) => {
      const look = lookup(() => Promise.reject(thrown));
      const { model, tools } = durable(context, { model: mock, tools: { look } });
      const result = await generateText({ model, tools, prompt: "go", stopWhen: stepCountIs(9) });
      return result.response.messages[1];
    });
    expect(final.data.result).toMatchObject({ content: [{ output: { value: said } }] });
    expect(mock.doGenerateCalls.length).toBe(2);
  });

  test("that yield return the same on a resume", async () => {
    const mock = looksUp(1);
    const runs = vi.fn();
    const seen: unknown[][] = [];
    await toEnd(async (context) => {
      const look = tool({
        inputSchema: z.object({ n: z.number() }),
        async *execute() {
          runs();
          yield "half";
          yield "whole";
        },
      });
      const { model, tools } = durable(context, { model: mock, tools: { look } });
      const result = streamText({ model, tools, prompt: "go", stopWhen: stepCountIs(9) });
      const outputs: unknown[] = [];
      for await (const part of result.fullStream) {
        if (part.type === "tool-result") outputs.push([part.preliminary, part.output]);
      }
      seen.push(outputs);
    });
    expect(runs).toHaveBeenCalledTimes(1);
    expect(seen[0]).toEqual([
      [true, "half"],
      [true, "whole"],
      [undefined, "whole"],
    ]);
    expect(seen[1]).toEqual(seen[0]);
  });

  test("that return what can't be saved fail the node", async () => {
    const mock = looksUp(1);
    const { start } = graphOf(async (context) => {
      const look = lookup(() => ({ close: () => {} }));
      const { model, tools } = durable(context, { model: mock, tools: { look } });
      return (await generateText({ model, tools, prompt: "go", stopWhen: stepCountIs(9) })).text;
    });
    await expect(start()).rejects.toMatchObject({ cause: { code: "SERIALIZATION" } });
    expect(mock.doGenerateCalls.length).toBe(1);
  });

  test("may pause by themselves", async () => {
    const mock = looksUp(1);
    const { graph, start } = graphOf(
      async (context) => {
        const look = lookup(() => context.pause("colour", { reason: "a choice", ask: "colour?" }));
        const { model, tools } = durable(context, { model: mock, tools: { look } });
        const result = await generateText({ model, tools, prompt: "go", stopWhen: stepCountIs(9) });
        return result.steps[0]?.toolResults[0]?.output;
      },
      { failures: 0 },
    );
    expect((await start()).pauses[0]?.ask).toBe("colour?");
    expect((await graph.resume("r", { input: "red" })).data.result).toBe("red");
    expect(mock.doGenerateCalls.length).toBe(2);
  });

  test("without execute are left as they are", () => {
    const ask = tool({ inputSchema: z.object({}), outputSchema: z.string() });
    const { start } = graphOf(
      async (context) => {
        const { tools } = durable(context, { model: looksUp(0), tools: { ask } });
        return tools.ask === ask;
      },
      { failures: 0 },
    );
    return expect(start()).resolves.toMatchObject({ data: { result: true } });
  });
});

describe("a tool that needs approval", () => {
  const deleted = vi.fn(({ file }: { file: string }) => `deleted ${file}`);
  const remove = tool({
    inputSchema: z.object({ file: z.string() }),
    needsApproval: async ({ file }) => file !== "tmp",
    execute: async (input) => deleted(input),
  });
  const removes = (...files: string[]): Mock =>
    mockModel((step) =>
      step === 0
        ? answerOf(...files.map((file, at) => toolCall("remove", { file }, `call-${at}`)))
        : answerOf(text("done")),
    );
  const agent =
    (mock: Mock): Run =>
    async (context) => {
      const { model, tools } = durable(context, { model: mock, tools: { remove } });
      const result = await generateText({ model, tools, prompt: "go", stopWhen: stepCountIs(9) });
      return result.response.messages[1]?.content;
    };

  test("pauses the run with its input as the question, and runs when it is approved", async () => {
    deleted.mockClear();
    const mock = removes("a.txt");
    const { graph, start } = graphOf(agent(mock));
    const paused = await start();
    expect(paused.status).toBe("paused");
    expect(paused.pauses).toEqual([
      { name: "remove call-0", reason: "remove needs approval", ask: { file: "a.txt" } },
    ]);
    expect([mock.doGenerateCalls.length, deleted.mock.calls.length]).toEqual([1, 0]);
    await expect(graph.resume("r", { input: true })).rejects.toThrow("crash");
    const final = await graph.resume("r");
    expect(final.data.result).toMatchObject([{ output: { value: "deleted a.txt" } }]);
    expect([mock.doGenerateCalls.length, deleted.mock.calls.length]).toEqual([2, 1]);
  });

  test.each([
    ["false", false, "remove was not approved"],
    ["a reason", "not that one", "remove was not approved: not that one"],
    ["the SDK's answer", { approved: false, reason: "no" }, "remove was not approved: no"],
  ])("is refused by %s, which the model is told", async (_name, input, said) => {
    deleted.mockClear();
    const { graph, start } = graphOf(agent(removes("a.txt")), { failures: 0 });
    await start();
    const final = await graph.resume("r", { input });
    expect(final.data.result).toMatchObject([{ output: { type: "error-text", value: said } }]);
    expect(deleted).not.toHaveBeenCalled();
  });

  test("asks for each call that needs it, and runs the others meanwhile", async () => {
    deleted.mockClear();
    const mock = removes("a.txt", "tmp", "b.txt");
    const { graph, start } = graphOf(agent(mock), { failures: 0 });
    const paused = await start();
    expect(paused.pauses.map(({ name }) => name)).toEqual(["remove call-0", "remove call-2"]);
    expect(deleted).toHaveBeenCalledTimes(1);
    const input = { "remove call-0": { approved: true }, "remove call-2": false };
    const final = await graph.resume("r", { input });
    expect(final.data.result).toMatchObject([
      { output: { value: "deleted a.txt" } },
      { output: { value: "deleted tmp" } },
      { output: { value: "remove was not approved" } },
    ]);
    expect(deleted).toHaveBeenCalledTimes(2);
  });

  test("asks again for a later call, even if the model repeats its ids", async () => {
    deleted.mockClear();
    const mock = mockModel((step) =>
      step < 2
        ? answerOf(toolCall("remove", { file: `${step}.txt` }, "call"))
        : answerOf(text("done")),
    );
    const { graph, start } = graphOf(agent(mock), { failures: 0 });
    expect((await start()).pauses[0]).toMatchObject({
      name: "remove call",
      ask: { file: "0.txt" },
    });
    const again = await graph.resume("r", { input: true });
    expect(again.pauses[0]).toMatchObject({ name: "remove call 2", ask: { file: "1.txt" } });
    expect((await graph.resume("r", { input: true })).status).toBe("completed");
    expect(deleted.mock.calls).toEqual([[{ file: "0.txt" }], [{ file: "1.txt" }]]);
  });

  test("pauses a streamed run as well", async () => {
    deleted.mockClear();
    const mock = removes("a.txt");
    const { graph, start } = graphOf(
      async (context) => {
        const { model, tools } = durable(context, { model: mock, tools: { remove } });
        const stopWhen = stepCountIs(9);
        const result = streamText({ model, tools, prompt: "go", stopWhen, onError: () => {} });
        return await result.text;
      },
      { failures: 0 },
    );
    expect((await start()).status).toBe("paused");
    const final = await graph.resume("r", { input: true });
    expect(final.data.result).toBe("done");
    expect([mock.doStreamCalls.length, deleted.mock.calls.length]).toEqual([2, 1]);
  });
});

describe("what is kept", () => {
  test("includes binary parts, dates and URLs exactly, and may be changed by the caller", async () => {
    const bytes = new Uint8Array([0, 255, 128]);
    const mock = mockModel((step) =>
      step === 0
        ? answerOf(toolCall("look", { n: 0 }, "call"))
        : answerOf({ type: "file", mediaType: "image/png", data: bytes }),
    );
    const found = { at: new Date(5), url: new URL("https://example.org/x"), bytes, big: 7n };
    const looked = vi.fn(() => ({ ...found, list: [1] }));
    const seen: unknown[] = [];
    await toEnd(async (context) => {
      const { model, tools } = durable(context, { model: mock, tools: { look: lookup(looked) } });
      const content: ModelMessage["content"] = [{ type: "image", image: bytes }];
      const messages: ModelMessage[] = [{ role: "user", content }];
      const result = await generateText({ model, tools, messages, stopWhen: stepCountIs(9) });
      const output = result.steps[0]?.toolResults[0]?.output as { list: number[] };
      output.list.push(2);
      seen.push([output, result.files[0]?.uint8Array, result.steps[0]?.response.timestamp]);
    });
    expect(seen[0]).toEqual([{ ...found, list: [1, 2] }, bytes, new Date(0)]);
    expect(seen[1]).toEqual(seen[0]);
    expect([mock.doGenerateCalls.length, looked.mock.calls.length]).toEqual([2, 1]);
  });

  test("excludes HTTP bodies, which repeat all messages", async () => {
    const mock = mockModel(() => ({
      ...answerOf(text("done")),
      request: { body: "request-body" },
      response: { modelId: "mock-1", body: { close: () => {} } },
    }));
    const { start, store } = graphOf(async (context) => {
      const { model } = durable(context, { model: mock });
      return (await generateText({ model, prompt: "go" })).text;
    });
    await expect(start()).rejects.toThrow("crash");
    const saved = JSON.stringify(await store.load("r"));
    expect(saved).toContain("done");
    expect(saved).not.toContain("request-body");
  });

  test("is appended to what was saved: a long loop does not write it again", async () => {
    const calls = 100;
    const length = 20_000;
    // Nothing that a store could compress to less than half.
    const mock = mockModel(() => answerOf(text(randomBytes(length / 2).toString("hex"))));
    const sizes: number[] = [];
    const folder = mkdtempSync(join(tmpdir(), "waymark-ai-"));
    const store = new SqliteStore({ path: join(folder, "runs.db") });
    const graph = new StateGraph<Data>({ checkpoint: { store, interval: 1, preserve: true } })
      .addNode("agent", async (_state, context) => {
        const { model } = durable(context, { model: mock });
        for (let at = 0; at < calls; at++) await generateText({ model, prompt: `${at}` });
        return { result: calls };
      })
      .setEntryPoint("agent")
      .setExitPoint("agent");
    graph.on("checkpoint.save", ({ data }) => {
      if (data.reason === "once") sizes.push(data.bytes ?? Number.NaN);
    });
    await graph.execute(State.create<Data>({ result: 0 }));
    await store.close();
    rmSync(folder, { recursive: true });
    expect(sizes.length).toBe(calls);
    // From time to time a store saves all of it, and then for twice as long not.
    expect(sizes.filter((bytes) => bytes < 1.1 * length).length).toBeGreaterThan(0.9 * calls);
  });

  test("is limited to the newest calls by keepCalls", async () => {
    const mock = mockModel(() => answerOf(text("done")));
    const asked: string[] = [];
    let prompts = ["a", "b", "c"];
    const run: Run = async (context) => {
      const { model } = durable(context, { model: mock, keepCalls: 2 });
      for (const prompt of prompts) {
        const before = mock.doGenerateCalls.length;
        await generateText({ model, prompt });
        if (mock.doGenerateCalls.length > before) asked.push(prompt);
      }
      prompts = ["b", "c", "d", "a"];
      return [0, 1, 2].map((slot) => context.recall(`ai: ${slot}`) !== undefined);
    };
    const { final } = await toEnd(run);
    expect(final.data.result).toEqual([true, true, false]);
    expect(asked).toEqual(["a", "b", "c", "d", "a"]);
  });

  test("is separate for each item of parallel", async () => {
    const mock = mockModel((_step, { prompt }) => answerOf(text(JSON.stringify(prompt.length))));
    let failures = 1;
    const graph = new StateGraph<Data>({
      checkpoint: { store: new MemoryStore(), interval: 1, preserve: true },
    })
      .addNode(
        "items",
        parallel<Data, string, string>(
          ["a", "b", "c"],
          async (_state, item, context) => {
            const { model } = durable(context, { model: mock });
            await generateText({ model, prompt: "same" });
            const { text: said } = await generateText({ model, prompt: item });
            if (item === "b" && failures-- > 0) throw new Error("crash");
            return said;
          },
          { merge: (state, results) => state.set("result", results.length) },
        ),
      )
      .setEntryPoint("items")
      .setExitPoint("items");
    const run = graph.execute(State.create<Data>({ result: 0 }, { runId: "r" }));
    await expect(run).rejects.toThrow("crash");
    const final = await graph.resume("r");
    expect(final.data.result).toBe(3);
    expect(mock.doGenerateCalls.length).toBe(6);
    expect(final.ledger.usage.counters.modelCalls).toBe(6);
  });
});

describe("options", () => {
  const use = (given: object): Promise<unknown> =>
    graphOf(async (context) => durable(context, given as never), { failures: 0 }).start();

  test.each([
    [{}, "durable.model must be a language model of the AI SDK; got undefined"],
    [
      { model: "openai/gpt-5" },
      'durable.model must be a language model of the AI SDK; got "openai/gpt-5"',
    ],
    [
      { model: looksUp(0), keepCalls: 0 },
      "durable.keepCalls must be an integer ≥ 1 or Infinity; got 0",
    ],
    [
      { model: looksUp(0), price: { m: { input: 1 } } },
      "durable.price.m.output must be a number ≥ 0; got undefined",
    ],
    [{ model: looksUp(0), prices: {} }, "durable.prices is not an option"],
  ])("%o are refused", async (given, message) => {
    await expect(use(given)).rejects.toThrow(message);
  });
});

/** Without what the SDK makes up anew each time. */
function withoutIds(parts: unknown): unknown {
  return JSON.parse(JSON.stringify(parts), (key, value) => (key === "messageId" ? "" : value));
}
