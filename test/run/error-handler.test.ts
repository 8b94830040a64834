import { afterEach, beforeEach, expect, test, vi } from "vitest";
import {
  ExecutionError,
  FatalError,
  type NodeFunction,
  type NodeOptions,
  State,
  StateGraph,
} from "waymark";
import { type FakeClock, useFakeClock } from "waymark/testing";
import { mark, RecordingStore, rejection, start, type Trail } from "../graphs.js";

let clock: FakeClock;
beforeEach(() => {
  clock = useFakeClock();
});
afterEach(() => clock.restore());

const boom = new Error("boom");
const fails: NodeFunction<Trail> = () => {
  throw boom;
};

function graphOf(
  node: NodeFunction<Trail>,
  options: NodeOptions<Trail>,
  store = new RecordingStore(),
) {
  return new StateGraph<Trail, string>({ checkpoint: { store, interval: 1, preserve: true } })
    .addNode("a", mark)
    .addNode("b", node, options)
    .addNode("c", mark)
    .addEdge("a", "b")
    .addEdge("b", "c")
    .setEntryPoint("a")
    .setExitPoint("c");
}

test("an errorHandler gets the error, the State and the context, after the last attempt only", async () => {
  const handler = vi.fn((_error: unknown, state: State<Trail>) => state);
  const graph = graphOf(fails, { retry: { maxAttempts: 3 }, errorHandler: handler });
  const running = graph.execute(start("r"));
  await clock.advance(10_000);
  await running;
  expect(handler).toHaveBeenCalledTimes(1);
  const [error, state, context] = handler.mock.calls[0] as unknown as [
    Error,
    State<Trail>,
    Parameters<NodeFunction<Trail>>[1],
  ];
  expect(error).toBe(boom);
  expect(state.data.trail).toEqual(["a"]);
  expect(context).toMatchObject({ node: "b", step: 1, attempt: 3, idempotencyKey: "r:1:b" });
});

test("what an errorHandler returns is the node's result, a State or changes, and the run continues", async () => {
  const patch = await graphOf(fails, {
    errorHandler: (_error, state) => ({ trail: [...state.data.trail, "mended"] }),
  }).execute(start());
  const whole = await graphOf(fails, {
    errorHandler: async (_error, state) => state.set("trail", ["new"]),
  }).execute(start());
  expect([patch.data.trail, whole.data.trail]).toEqual([
    ["a", "mended", "c"],
    ["new", "c"],
  ]);
  expect(whole).toMatchObject({ status: "completed", error: undefined });
});

test("what an errorHandler throws is the node's error", async () => {
  const worse = new Error("worse");
  const store = new RecordingStore();
  const graph = graphOf(fails, { errorHandler: () => Promise.reject(worse) }, store);
  const error = await rejection(graph.execute(start("r")), ExecutionError);
  expect(error).toMatchObject({ code: "NODE_FAILED", nodeName: "b", cause: worse });
  expect((await store.load("r")).error).toEqual({
    name: "Error",
    message: "worse",
    node: "b",
    stack: worse.stack,
  });
});

test("an errorHandler also gets a FatalError and a timeout", async () => {
  const seen: string[] = [];
  const errorHandler = (error: unknown, state: State<Trail>) => {
    seen.push((error as Error).name);
    return state;
  };
  const fatal = () => Promise.reject(new FatalError("no"));
  await graphOf(fatal, { retry: {}, errorHandler }).execute(start());
  const slow = graphOf(() => new Promise(() => {}), { timeout: 9, errorHandler }).execute(start());
  await clock.advance(9);
  await slow;
  expect(seen).toEqual(["FatalError", "TimeoutError"]);
});

test("an errorHandler is not called if the run is cancelled or pauses", async () => {
  const errorHandler = vi.fn((_error: unknown, state: State<Trail>) => state);
  const controller = new AbortController();
  const cancelled = graphOf(
    (_state, { signal }) => {
      controller.abort();
      return Promise.reject(signal.reason);
    },
    { errorHandler },
  );
  await rejection(cancelled.execute(start(), controller), ExecutionError);
  const pausing = graphOf(
    async (state, context) => {
      await context.pause("ok", { reason: "wait" });
      return state;
    },
    { errorHandler, retry: {} },
  );
  expect((await pausing.execute(start())).status).toBe("paused");
  expect(errorHandler).not.toHaveBeenCalled();
});

test("an errorHandler starts from the last milestone, and its result is merged into that", async () => {
  const node: NodeFunction<Trail> = async (state, context) => {
    await context.checkpoint(state.set("trail", [...state.data.trail, "milestone"]), "half");
    throw boom;
  };
  const handled = await graphOf(node, {
    errorHandler: (_error, state) => ({ trail: [...state.data.trail, "mended"] }),
  }).execute(start());
  expect(handled.data.trail).toEqual(["a", "milestone", "mended", "c"]);
});

test("an errorHandler can use once and pause, and a resume returns to it", async () => {
  const store = new RecordingStore();
  let tickets = 0;
  const graph = graphOf(
    fails,
    {
      errorHandler: async (_error, state, context) => {
        const ticket = await context.once("ticket", () => ++tickets);
        const how = await context.pause("how", { reason: "node failed", ask: `ticket ${ticket}` });
        return { trail: [...state.data.trail, String(how)] };
      },
    },
    store,
  );
  const paused = await graph.execute(start("r"));
  expect(paused.pauses).toEqual([{ name: "how", reason: "node failed", ask: "ticket 1" }]);
  const final = await graph.resume("r", { input: "by hand" });
  expect(final.data.trail).toEqual(["a", "by hand", "c"]);
  expect(tickets).toBe(1);
});

test("a node rescued by an errorHandler has not failed and keeps no error", async () => {
  const store = new RecordingStore();
  const graph = graphOf(fails, { errorHandler: (_error, state) => state }, store);
  const final = await graph.execute(start("r"));
  expect(final.error).toBeUndefined();
  expect(store.log).not.toContain("failure:a@1");
  expect(State.fromJSON(final.toJSON()).error).toBeUndefined();
});
