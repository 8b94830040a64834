import type { Calls } from "./calls.js";
import { copyOf } from "./copy.js";
import { digestOf } from "./digest.js";
import { type CallOptions, countOf, fieldAt, type Tokens, usageOf } from "./usage.js";

/** A language model of the AI SDK: anything with these members, such as what `openai("gpt-5")` returns. */
export interface LanguageModelLike {
  /** The version of the SDK's model interface, such as `v3`. */
  readonly specificationVersion: string;
  /** The name of its provider. */
  readonly provider: string;
  /** Its id. */
  readonly modelId: string;
  /** Answers a prompt. */
  doGenerate(options: never): PromiseLike<unknown>;
  /** Answers a prompt as a stream. */
  doStream(options: never): PromiseLike<unknown>;
}

/** The options of a model call. */
interface ModelOptions {
  readonly prompt: readonly unknown[];
  readonly abortSignal?: AbortSignal;
  readonly headers?: unknown;
}

interface Part {
  readonly type: string;
  readonly [field: string]: unknown;
}

interface StreamResult {
  readonly stream: ReadableStream<Part>;
  readonly [field: string]: unknown;
}

type ModelCall = (options: ModelOptions) => Promise<object>;

/** The same model, except that recorded calls are answered from the checkpoint. */
export function durableModel<M extends LanguageModelLike>(
  calls: Calls,
  model: M,
  options: CallOptions,
): M {
  const { price, keepCalls = Number.POSITIVE_INFINITY } = options;
  const begin = (kind: string, { prompt, abortSignal, headers, ...settings }: ModelOptions) =>
    calls.model(digestOf([kind, model.provider, model.modelId, settings], prompt), keepCalls);
  const used = (usage: unknown, modelId: unknown) =>
    usageOf(tokensOf(usage), [modelId, model.modelId], price);

  async function generate(ask: ModelCall, options: ModelOptions): Promise<object> {
    const call = begin("generate", options);
    if (call.recorded !== undefined) return call.recorded.value as object;
    const result = await ask(options).catch((error: unknown) => {
      call.release();
      throw error;
    });
    const modelId = fieldAt(result, "response", "modelId");
    await call.keep(withoutBodies(result), used(fieldAt(result, "usage"), modelId));
    return result;
  }

  async function stream(ask: ModelCall, options: ModelOptions): Promise<object> {
    const call = begin("stream", options);
    if (call.recorded !== undefined) {
      const { parts, ...rest } = call.recorded.value as { parts: readonly Part[] };
      return { ...rest, stream: streamOf(parts) };
    }
    const result = (await ask(options).catch((error: unknown) => {
      call.release();
      throw error;
    })) as StreamResult;
    const { stream: source, ...rest } = result;
    const keep = async (parts: readonly Part[]): Promise<void> => {
      const finish = parts.find(({ type }) => type === "finish");
      const failed = parts.some(({ type }) => type === "error");
      if (finish === undefined || failed || options.abortSignal?.aborted) return call.release();
      const meta = parts.find(({ type, modelId }) => type === "response-metadata" && modelId);
      await call.keep({ ...withoutBodies(rest), parts }, used(finish.usage, meta?.modelId));
    };
    return { ...rest, stream: recorded(source, keep, call.release) };
  }

  const durable = new Map<unknown, typeof generate>([
    ["doGenerate", generate],
    ["doStream", stream],
  ]);
  return new Proxy(model, {
    get: (target, key) => {
      const value: unknown = Reflect.get(target, key, target);
      const wrap = durable.get(key);
      if (wrap === undefined) return value;
      const ask: ModelCall = async (options) => {
        calls.context.signal.throwIfAborted();
        return Reflect.apply(value as ModelCall, target, [options]);
      };
      return (options: ModelOptions) => wrap(ask, options);
    },
  });
}

/**
 * Passes a stream through as it arrives, and records its parts before it ends. A tool call is held back until the
 * record is saved: the tool must not run for a model call that would be made again.
 */
function recorded(
  source: ReadableStream<Part>,
  keep: (parts: readonly Part[]) => Promise<void>,
  release: () => void,
): ReadableStream<Part> {
  const reader = source.getReader();
  const parts: Part[] = [];
  let held: Part[] | undefined;
  return new ReadableStream<Part>({
    async pull(controller) {
      try {
        for (;;) {
          const { done, value: part } = await reader.read();
          if (done) break;
          parts.push(copyOf(part) as Part);
          if (part.type === "finish") held ??= [];
          if (part.type === "tool-call" && part.providerExecuted !== true) held ??= [];
          if (held === undefined) return controller.enqueue(part);
          held.push(part);
        }
      } catch (error) {
        release();
        throw error;
      }
      await keep(parts);
      for (const part of held ?? []) controller.enqueue(part);
      controller.close();
    },
    cancel(reason) {
      release();
      return reader.cancel(reason);
    },
  });
}

function streamOf(parts: readonly Part[]): ReadableStream<Part> {
  return new ReadableStream<Part>({
    start(controller) {
      for (const part of parts) controller.enqueue(part);
      controller.close();
    },
  });
}

/** A result without the HTTP bodies: each request repeats all earlier messages, so they would grow quadratically. */
function withoutBodies(result: object): object {
  const { request, response, ...rest } = result as { request?: unknown; response?: object };
  if (response === undefined) return rest;
  const { body, ...kept } = response as { body?: unknown };
  return { ...rest, response: kept };
}

/** The usage of a model; before `v3` its fields were plain numbers. */
function tokensOf(usage: unknown): Tokens {
  return {
    input: countOf(fieldAt(usage, "inputTokens", "total"), fieldAt(usage, "inputTokens")),
    output: countOf(fieldAt(usage, "outputTokens", "total"), fieldAt(usage, "outputTokens")),
    cacheRead: countOf(
      fieldAt(usage, "inputTokens", "cacheRead"),
      fieldAt(usage, "cachedInputTokens"),
    ),
    cacheWrite: countOf(fieldAt(usage, "inputTokens", "cacheWrite")),
  };
}
