import { PauseRequested } from "../run/pauses/pauses.js";
import type { Call, Calls } from "./calls.js";
import { digestOf } from "./digest.js";

/** The options of a tool call. */
interface ToolOptions {
  readonly toolCallId: string;
  readonly abortSignal?: AbortSignal;
  readonly messages?: unknown;
  readonly experimental_context?: unknown;
}

/** The members of an AI SDK tool that are used here. */
interface Tool {
  readonly execute?: (input: unknown, options: ToolOptions) => unknown;
  readonly needsApproval?: boolean | ((input: unknown, options: ToolOptions) => unknown);
}

/** What a tool returned, all that it yielded, or what it threw. */
type Outcome =
  | { readonly output: unknown }
  | { readonly yielded: readonly unknown[] }
  | { readonly error: unknown };

/** The same tools, except that recorded calls are answered from the checkpoint. */
export function durableTools<T extends object>(calls: Calls, tools: T, keepCalls: number): T {
  const durable = Object.entries(tools).map(([name, tool]: [string, Tool]) => [
    name,
    typeof tool.execute === "function" ? durableTool(calls, name, tool, keepCalls) : tool,
  ]);
  return Object.fromEntries(durable) as T;
}

function durableTool(calls: Calls, name: string, tool: Tool, keepCalls: number): Tool {
  const { needsApproval, ...rest } = tool;

  function run(call: Call, input: unknown, options: ToolOptions): unknown {
    let result: unknown;
    try {
      result = tool.execute?.(input, options);
    } catch (error) {
      return failed(call, error, options);
    }
    return isAsyncIterable(result) ? keepAll(call, result, options) : keep(call, result, options);
  }

  async function keep(call: Call, result: unknown, options: ToolOptions): Promise<unknown> {
    let output: unknown;
    try {
      output = await result;
    } catch (error) {
      return failed(call, error, options);
    }
    await call.keep({ output } satisfies Outcome);
    return output;
  }

  async function* keepAll(
    call: Call,
    results: AsyncIterable<unknown>,
    options: ToolOptions,
  ): AsyncGenerator<unknown> {
    const yielded: unknown[] = [];
    try {
      for await (const output of results) {
        yielded.push(output);
        yield output;
      }
    } catch (error) {
      await failed(call, error, options);
    }
    await call.keep({ yielded } satisfies Outcome);
  }

  /** Records a tool's error, which is its answer to the model, unless the run pauses or stops. */
  async function failed(call: Call, error: unknown, { abortSignal }: ToolOptions): Promise<never> {
    const isAborted = abortSignal?.aborted === true || calls.context.signal.aborted;
    if (error instanceof PauseRequested) calls.stop(error);
    if (error instanceof PauseRequested || isAborted) call.release();
    else await call.keep({ error: errorToKeep(error) } satisfies Outcome);
    throw error;
  }

  async function approve(pause: string, input: unknown, options: ToolOptions): Promise<void> {
    const { toolCallId, messages, experimental_context } = options;
    const isNeeded =
      typeof needsApproval === "function"
        ? await needsApproval(input, { toolCallId, messages, experimental_context })
        : needsApproval;
    if (isNeeded !== true) return;
    const request = { reason: `${name} needs approval`, ask: input ?? {} };
    const answer = await calls.context.pause(pause, request).catch((error: unknown) => {
      calls.stop(error);
      throw error;
    });
    const { approved, reason } = decisionOf(answer);
    if (!approved) throw new Error(`${name} was not approved${reason === "" ? "" : `: ${reason}`}`);
  }

  function execute(input: unknown, options: ToolOptions): unknown {
    const { toolCallId } = options;
    const call = calls.tool(digestOf(["tool", name, toolCallId, input], []), keepCalls);
    if (needsApproval === undefined) {
      return call.recorded === undefined ? run(call, input, options) : replay(call.recorded.value);
    }
    // Counted for recorded calls too, so that each pause has the same name after a resume.
    const pause = `${name} ${toolCallId}`;
    const nth = calls.slotsOf(`pause ${pause}`).take();
    if (call.recorded !== undefined) return replay(call.recorded.value);
    return approve(nth === 0 ? pause : `${pause} ${nth + 1}`, input, options).then(
      () => settled(run(call, input, options)),
      (error: unknown) => failed(call, error, options),
    );
  }

  return { ...rest, execute };
}

function replay(value: unknown): unknown {
  const outcome = value as Outcome;
  if ("output" in outcome) return Promise.resolve(outcome.output);
  if ("error" in outcome) return Promise.reject(outcome.error);
  return (async function* () {
    yield* outcome.yielded;
  })();
}

/** The final output of a tool. */
async function settled(result: unknown): Promise<unknown> {
  if (!isAsyncIterable(result)) return result;
  let last: unknown;
  for await (const output of result) last = output;
  return last;
}

/** The decision in an answer: `true`, `false`, a reason for rejecting, or `{ approved, reason }`. */
function decisionOf(answer: unknown): { approved: boolean; reason: string } {
  const { approved, reason } = (
    typeof answer === "object" && answer !== null ? answer : { approved: answer, reason: answer }
  ) as { approved?: unknown; reason?: unknown };
  return { approved: approved === true, reason: typeof reason === "string" ? reason : "" };
}

/** The part of an error that the model sees, and its stack; other fields may hold a response or a socket. */
function errorToKeep(error: unknown): unknown {
  if (!(error instanceof Error)) return typeof error === "object" ? jsonOf(error) : String(error);
  const kept = new Error(error.message);
  kept.name = error.name;
  if (error.stack !== undefined) kept.stack = error.stack;
  return kept;
}

function jsonOf(value: object | null): unknown {
  try {
    return JSON.parse(JSON.stringify(value));
  } catch {
    return String(value);
  }
}

function isAsyncIterable(value: unknown): value is AsyncIterable<unknown> {
  return typeof value === "object" && value !== null && Symbol.asyncIterator in value;
}
