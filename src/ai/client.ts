import { ConfigError } from "../errors.js";
import { checkOptions } from "../options.js";
import { type CallContext, Calls } from "./calls.js";
import { copyOf } from "./copy.js";
import { digestOf } from "./digest.js";
import { RecordedStream, type SourceStream } from "./recorded-stream.js";
import { type CallOptions, callChecks, countOf, fieldAt, type Tokens, usageOf } from "./usage.js";

/** A client of the OpenAI or the Anthropic SDK: anything with one of these APIs. */
export type LanguageClient = ChatClient | ResponsesClient | MessagesClient;

/** A client with OpenAI's chat completions API. */
export interface ChatClient {
  /** The chat API. */
  readonly chat: {
    /** Its completions. */
    readonly completions: Creates;
  };
}

/** A client with OpenAI's responses API. */
export interface ResponsesClient {
  /** The responses API. */
  readonly responses: Creates;
}

/** A client with Anthropic's messages API. */
export interface MessagesClient {
  /** The messages API. */
  readonly messages: Creates;
}

/** An SDK resource whose `create` calls a model. */
export interface Creates {
  /** Calls a model. */
  create(body: never, options?: never): PromiseLike<unknown>;
}

/** A chunk of a stream from any of these SDKs. */
interface Chunk {
  readonly type?: string;
  readonly choices?: readonly { readonly finish_reason?: unknown }[];
}

/** What differs between the APIs. */
interface Api {
  /** The path to the resource that has `create`. */
  readonly path: readonly string[];
  /** The field of the request body that holds the messages. */
  readonly messages: string;
  /** The parts of a stream's chunk that may hold the usage and the model. */
  readonly responses: (chunk: unknown) => readonly unknown[];
  /** Whether a chunk marks the end of a complete stream. */
  readonly isEnd: (chunk: Chunk) => boolean;
}

const anthropic = {
  messages: "messages",
  responses: (chunk: unknown) => [fieldAt(chunk, "message"), chunk],
  isEnd: ({ type }: Chunk) => type === "message_stop",
};

const apis: readonly Api[] = [
  {
    path: ["chat", "completions"],
    messages: "messages",
    responses: (chunk) => [chunk],
    isEnd: ({ choices }) => choices?.some(({ finish_reason }) => finish_reason != null) === true,
  },
  {
    path: ["responses"],
    messages: "input",
    responses: (chunk) => [fieldAt(chunk, "response")],
    isEnd: ({ type }) => type === "response.completed" || type === "response.incomplete",
  },
  { ...anthropic, path: ["messages"] },
  { ...anthropic, path: ["beta", "messages"] },
];

interface Body {
  readonly model?: unknown;
  readonly stream?: unknown;
  readonly [field: string]: unknown;
}

type Create = (...args: readonly [body: Body, ...rest: unknown[]]) => PromiseLike<unknown>;

/**
 * Makes each `create` call of an OpenAI or Anthropic client happen once per visit to the node: those of
 * `chat.completions`, `responses` and `messages`, including streams. The result of a call is saved before it is
 * used; after a crash or a retry it comes from the checkpoint. The rest of the client is unchanged.
 *
 * @throws ConfigError if an option is invalid, or the client has no such `create`.
 *
 * @example
 * ```ts compile
 * import OpenAI from "openai";
 * import { END, State, StateGraph } from "waymark";
 * import { durableClient } from "waymark/ai";
 *
 * const graph = new StateGraph<{ question: string; answer: string }>()
 *   .addNode("ask", async (state, ctx) => {
 *     const openai = durableClient(ctx, new OpenAI());
 *     const response = await openai.responses.create({ model: "gpt-5", input: state.data.question });
 *     return { answer: response.output_text };
 *   })
 *   .addEdge("ask", END)
 *   .setEntryPoint("ask");
 *
 * const final = await graph.execute(State.create({ question: "What is a cairn?", answer: "" }));
 * console.log(final.data.answer);
 * ```
 */
export function durableClient<C extends LanguageClient>(
  ctx: CallContext,
  client: C,
  options: CallOptions = {},
): C {
  checkOptions("durableClient", options, callChecks);
  const found = apis.filter(({ path }) => typeof fieldAt(client, ...path, "create") === "function");
  if (found.length === 0) {
    const names = apis.map(({ path }) => `${path.join(".")}.create`).join(", ");
    throw new ConfigError("client", `must be an OpenAI or Anthropic client, with one of ${names}`);
  }
  const calls = Calls.of(ctx);
  return durableAt(client, found, (api, create) => durableCreate(calls, api, create, options));
}

/** Wraps a part of a client so that each API's `create` is replaced. */
function durableAt<O extends object>(
  target: O,
  inside: readonly Api[],
  wrap: (api: Api, create: Create) => Create,
  depth = 0,
): O {
  return new Proxy(target, {
    get: (_, key) => {
      const value: unknown = Reflect.get(target, key, target);
      const [ended] = inside.filter(({ path }) => path.length === depth);
      if (typeof value === "function") {
        // Bound, because the SDKs' classes have private fields, which can't be read through a proxy.
        const method: unknown = key === "constructor" ? value : value.bind(target);
        return ended !== undefined && key === "create" ? wrap(ended, method as Create) : method;
      }
      const below = inside.filter(({ path }) => path[depth] === key);
      if (below.length === 0 || typeof value !== "object" || value === null) return value;
      return durableAt(value, below, wrap, depth + 1);
    },
  });
}

function durableCreate(calls: Calls, api: Api, create: Create, settings: CallOptions): Create {
  const { price, keepCalls = Number.POSITIVE_INFINITY } = settings;

  async function run(body: Body, rest: readonly unknown[]): Promise<unknown> {
    const { [api.messages]: input, ...others } = body;
    const messages = Array.isArray(input) ? input : [input];
    const call = calls.model(digestOf([api.path, others], messages), keepCalls);
    if (call.recorded !== undefined) {
      const { value } = call.recorded;
      return body.stream === true ? new RecordedStream(() => each(value as unknown[])) : value;
    }
    const used = (responses: readonly unknown[]) =>
      usageOf(
        tokensOf(responses),
        [...responses.map((one) => fieldAt(one, "model")), body.model],
        price,
      );
    let result: unknown;
    try {
      calls.context.signal.throwIfAborted();
      result = await create(body, ...rest);
    } catch (error) {
      call.release();
      throw error;
    }
    if (body.stream !== true) {
      await call.keep(result, used([result]));
      return result;
    }
    const source = result as SourceStream<Chunk>;
    const keep = async (chunks: readonly Chunk[]): Promise<void> => {
      await call.keep(chunks, used(chunks.flatMap(api.responses)));
    };
    return new RecordedStream(() => live(source, api, keep, call.release), source.controller);
  }

  return (body, ...rest) =>
    Object.assign(run(body, rest), { asResponse: refuseResponse, withResponse: refuseResponse });
}

/** Passes a stream through as it arrives, and records its chunks before it ends. */
async function* live(
  source: SourceStream<Chunk>,
  api: Api,
  keep: (chunks: readonly Chunk[]) => Promise<void>,
  release: () => void,
): AsyncGenerator<Chunk> {
  const chunks: Chunk[] = [];
  let isWhole = false;
  try {
    for await (const chunk of source) {
      chunks.push(copyOf(chunk) as Chunk);
      yield chunk;
    }
    // An SDK ends an aborted stream as if it were complete.
    isWhole = chunks.some(api.isEnd) && !source.controller.signal.aborted;
  } finally {
    if (!isWhole) release();
  }
  if (isWhole) await keep(chunks);
}

async function* each(chunks: readonly unknown[]): AsyncGenerator<unknown> {
  yield* chunks;
}

async function refuseResponse(): Promise<never> {
  const problem = "has no HTTP response to give: call it on the client itself";
  throw new ConfigError("create of a durable client", problem);
}

/** The newest usage in these responses, by the field names of OpenAI's two APIs and Anthropic's. */
function tokensOf(responses: readonly unknown[]): Tokens {
  const newest = (...path: readonly string[]): unknown =>
    responses
      .map((one) => fieldAt(one, "usage", ...path))
      .findLast((count) => typeof count === "number");
  // Anthropic counts cached tokens in addition to the input, OpenAI as part of it.
  const beside = countOf(newest("cache_read_input_tokens"));
  const cacheWrite = countOf(newest("cache_creation_input_tokens"));
  const within = countOf(
    newest("prompt_tokens_details", "cached_tokens"),
    newest("input_tokens_details", "cached_tokens"),
  );
  return {
    input: countOf(newest("prompt_tokens"), newest("input_tokens")) + beside + cacheWrite,
    output: countOf(newest("completion_tokens"), newest("output_tokens")),
    cacheRead: beside + within,
    cacheWrite,
  };
}
