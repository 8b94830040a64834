import { describe, expect, test, vi } from "vitest";
import { ExecutionError, isWaymarkError, State, StateGraph } from "waymark";
import { linear, mark, RecordingStore, rejection, start, type Trail } from "../graphs.js";

/** a → b → c, of which `b` throws what it is told to; `undefined` once it is mended. */
function breaking(store: RecordingStore | undefined, toThrow: () => unknown, interval = 1) {
  const ran: string[] = [];
  const config = store === undefined ? {} : { checkpoint: { store, interval, preserve: true } };
  const tell = (state: State<Trail>, ctx: Parameters<typeof mark>[1]) => {
    ran.push(ctx.node);
    const error = ctx.node === "b" ? toThrow() : undefined;
    if (error !== undefined) throw error;
    return mark(state, ctx);
  };
  return { ran, graph: linear(["a", "b", "c"], config, { a: tell, b: tell, c: tell }) };
}

describe("rule 3: a node that fails", () => {
  test("ends the run with its name, its input State, the path and its own error", async () => {
    const own = new TypeError("boom");
    const { graph } = breaking(undefined, () => own);
    const error = await rejection(graph.execute(start("r")), ExecutionError);
    expect(error.cause).toBe(own);
    expect(error).toMatchObject({ code: "NODE_FAILED", nodeName: "b", path: ["a", "b"] });
    expect(error.message).toContain('node "b" failed: boom');
    expect(error.state).toMatchObject({ runId: "r", step: 1, checkpointNode: "a" });
    expect(error.state.data).toEqual({ trail: ["a"] });
    expect(isWaymarkError(error, "NODE_FAILED")).toBe(true);
  });

  test.each([1, 2, 5])(
    "leaves its input and its error in the store, interval %i",
    async (interval) => {
      const store = new RecordingStore();
      const own = new TypeError("boom");
      const { graph } = breaking(store, () => own, interval);
      const error = await rejection(graph.execute(start("r")), ExecutionError);
      const left = await store.load<Trail>("r");
      expect(left).toMatchObject({
        status: "failed",
        reason: "failure",
        checkpointNode: "a",
        step: 1,
        error: { name: "TypeError", message: "boom", node: "b" },
        visits: { a: 1 },
      });
      expect(left.data).toEqual({ trail: ["a"] });
      expect((error.state as State<Trail>).checkpointId).toBe(left.checkpointId);
    },
  );

  test("runs again on resume, followed only by its successors", async () => {
    const store = new RecordingStore();
    let error: Error | undefined = new Error("boom");
    const { graph, ran } = breaking(store, () => error);
    await rejection(graph.execute(start("r")), ExecutionError);
    error = undefined;
    const final = await graph.resume("r");
    expect(ran).toEqual(["a", "b", "b", "c"]);
    expect(final.data.trail).toEqual(["a", "b", "c"]);
    expect(final).toMatchObject({ status: "completed", error: undefined, step: 3 });
  });

  test("may fail on every resume, each attempt in the history", async () => {
    const store = new RecordingStore();
    const { graph } = breaking(store, () => new Error("boom"));
    await rejection(graph.execute(start("r")), ExecutionError);
    await rejection(graph.resume("r"), ExecutionError);
    expect(store.log).toEqual([
      ...["start:@0", "interval:a@1", "failure:a@1", "resume:a@1", "failure:a@1"],
    ]);
  });
});

class Unnamed extends Error {
  override readonly name = undefined as unknown as string;
}

const mute = Object.assign(new Error("x"), { message: { code: 7 } as unknown as string });

/** An error that fails itself when this field of it is looked at. */
function hiding(field: "name" | "message"): Error {
  return Object.defineProperty(new Error("hidden"), field, {
    get: () => {
      throw new Error("not this one");
    },
  });
}

/** An object of which nobody can learn what it is. */
class Nameless {
  toString(): string {
    throw new Error("not this one");
  }
}
Object.defineProperty(Nameless.prototype, "constructor", {
  get: () => {
    throw new Error("not this one");
  },
});

test.each<[what: string, value: unknown, error: object]>([
  ["an error whose name can't be read", hiding("name"), { name: "Error", message: "hidden" }],
  [
    "an error whose message can't be read",
    hiding("message"),
    { name: "Error", message: "a Error" },
  ],
  [
    "an object that can't be looked at",
    new Nameless(),
    { name: "Error", message: "an object of an unnamed class" },
  ],
  ["a string", "just text", { name: "Error", message: "just text" }],
  ["null", null, { name: "Error", message: "null" }],
  [
    "an object without prototype",
    Object.create(null),
    { name: "Error", message: "a null-prototype object" },
  ],
  ["an error without a name", new Unnamed("lost"), { name: "Error", message: "lost" }],
  ["an error whose message is no string", mute, { name: "Error", message: "Error" }],
])(
  "a node that throws %s leaves a checkpoint that every store can keep",
  async (_what, value, error) => {
    const store = new RecordingStore();
    const { graph } = breaking(store, () => value);
    const seen = await rejection(graph.execute(start("r")), ExecutionError);
    expect(seen.cause).toBe(value);
    const left = await store.load<Trail>("r");
    const { stack: _stack, ...known } = left.error ?? {};
    expect(known).toEqual({ ...error, node: "b" });
    expect(State.fromJSON<Trail>(JSON.stringify(left)).error).toEqual(left.error);
  },
);

test.each([
  ["whole", "short", 0],
  ["cut where it is long", "x".repeat(9000), 4000],
])("a node's error keeps its stack, %s", async (_how, message, length) => {
  const boom = new Error(message);
  const store = new RecordingStore();
  const { graph } = breaking(store, () => boom);
  await rejection(graph.execute(start("r")), ExecutionError);
  const stack = (await store.load("r")).error?.stack;
  expect(stack).toBe(boom.stack?.slice(0, 4000));
  if (length > 0) expect(stack).toHaveLength(length);
});

test("a node that throws undefined has failed", async () => {
  const store = new RecordingStore();
  const throwing = () => {
    throw undefined;
  };
  const graph = linear(["a", "b"], { checkpoint: { store, interval: 1 } }, { a: throwing });
  const error = await rejection(graph.execute(start()), ExecutionError);
  expect(error.message).toBe('node "a" failed: undefined');
  expect(store.saved.at(-1)?.status).toBe("failed");
});

test("rule 3: if the failure can't be saved either, the node's error is still thrown", async () => {
  const store = new RecordingStore();
  const own = new Error("boom");
  const { graph } = breaking(store, () => own);
  store.beforeSave = ({ status }) => {
    if (status === "failed") throw new Error("disk full");
  };
  const told = vi.fn();
  graph.on("checkpoint.error", ({ data }) => told(data));
  const error = await rejection(graph.execute(start("r")), ExecutionError);
  expect(error.cause).toBe(own);
  expect(error.state).toMatchObject({ status: "failed", step: 1 });
  expect(told).toHaveBeenCalledWith({ action: "save", node: "a", error: "disk full" });
  expect(await store.load("r")).toMatchObject({ checkpointNode: "a", status: "in_progress" });
});

test("a failing edge choice keeps the completed node, which does not run again", async () => {
  const store = new RecordingStore();
  let open = false;
  let ran = 0;
  const graph = new StateGraph<Trail>({ checkpoint: { store, interval: 3 } })
    .addNode("a", (state, ctx) => {
      ran++;
      return mark(state, ctx);
    })
    .addNode("b", mark)
    .addEdge("a", "b", () => open)
    .setEntryPoint("a")
    .setExitPoint("b");
  const error = await rejection(graph.execute(start("r")), ExecutionError);
  expect(error.code).toBe("NO_MATCHING_EDGE");
  expect((await store.load("r")).error).toEqual({
    name: "ExecutionError",
    message: error.message,
    node: "a",
  });
  await rejection(graph.resume("r"), ExecutionError);
  open = true;
  expect((await graph.resume("r")).data.trail).toEqual(["a", "b"]);
  expect(ran).toBe(1);
});
