import { type MemoryStore, pause, State, StateGraph } from "waymark";
import { type StudioApi, type StudioHandler, type StudioOptions, studio } from "waymark/studio";

export const token = "a-token-for-tests-only";

/** What a route answers. */
export type Answer<R extends keyof StudioApi> = StudioApi[R]["answer"];

/** A studio with a token, and how to call it. */
export function opened(options: StudioOptions): {
  handler: StudioHandler;
  call(method: string, path: string, body?: unknown, headers?: object): Promise<Response>;
  get<R extends keyof StudioApi>(path: string): Promise<Answer<R>>;
} {
  const handler = studio({ token, pollMs: 10, ...options });
  const call = (method: string, path: string, body?: unknown, headers: object = {}) =>
    handler(
      new Request(`http://localhost${path}`, {
        method,
        headers: {
          authorization: `Bearer ${token}`,
          ...(body !== undefined && { "content-type": "application/json" }),
          ...headers,
        },
        ...(body !== undefined && {
          body: typeof body === "string" ? body : JSON.stringify(body),
        }),
      }),
    );
  return {
    handler,
    call,
    get: async (path) => (await call("GET", path)).json() as never,
  };
}

interface Article {
  topic: string;
  text: string;
  approved?: boolean;
}

/** A graph that pauses before it publishes, and fails while `faults.count` is above 0. */
export function articleGraph(store: MemoryStore, faults = { count: 0 }) {
  return new StateGraph<Article>({
    name: "article",
    checkpoint: { store, interval: 1, preserve: true },
  })
    .addNode("draft", (state, context) => {
      context.ledger.usage({ inputTokens: 100, outputTokens: 10, costUsd: 0.25 });
      context.ledger.decision({ description: "short", rationale: "no time", confidence: 0.5 });
      return { text: `about ${state.data.topic}` };
    })
    .addNode("review", (state) => {
      if (faults.count > 0) {
        faults.count--;
        throw new Error("rate limit");
      }
      return pause(state, { reason: "publish?", ask: { words: 2 }, into: "approved" });
    })
    .addNode("publish", (state) => ({ text: `${state.data.text}!` }), { phase: "end" })
    .addEdge("draft", "review", undefined, "ready")
    .addEdge("review", "publish")
    .setEntryPoint("draft")
    .setExitPoint("publish");
}

/** A run of that graph that is paused. */
export async function pausedRun(
  store: MemoryStore,
  runId: string,
  metadata: Record<string, string> = {},
): Promise<State<Article>> {
  const start = State.create<Article>({ topic: "cairns", text: "" }, { runId, metadata });
  return articleGraph(store).execute(start);
}
