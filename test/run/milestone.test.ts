import { describe, expect, test } from "vitest";
import { ExecutionError, type NodeContext, type NodeFunction, State, StateGraph } from "waymark";
import { gate, linear, mark, RecordingStore, rejection, start, type Trail } from "../graphs.js";
import { configError, serializationError } from "../matchers.js";

const add = (state: State<Trail>, name: string): State<Trail> =>
  state.set("trail", [...state.data.trail, name]);

/** a → b → c. */
function graphOf(b: NodeFunction<Trail>, store: RecordingStore, interval = 1) {
  const checkpoint = { store, interval, preserve: true };
  return linear(["a", "b", "c"], { checkpoint }, { b });
}

/** Fails at its second half the first time. */
function halves(): { node: NodeFunction<Trail>; inputs: (readonly string[])[] } {
  const inputs: (readonly string[])[] = [];
  const node: NodeFunction<Trail> = async (state, context) => {
    inputs.push(state.data.trail);
    const half = state.data.trail.includes("half")
      ? state
      : await context.checkpoint(add(state, "half"), "before a risky step");
    if (inputs.length === 1) throw new Error("boom");
    return add(half, "whole");
  };
  return { node, inputs };
}

describe("a milestone", () => {
  test("is where a resume restarts the node, and its reason is recorded", async () => {
    const store = new RecordingStore();
    const { node, inputs } = halves();
    const graph = graphOf(node, store);
    await rejection(graph.execute(start("r")), ExecutionError);
    const history = await graph.history("r");
    expect(history.map(({ reason, node, step }) => `${reason}:${node}@${step}`)).toEqual([
      "failure:a@1",
      "before a risky step:a@1",
      "interval:a@1",
      "start:@0",
    ]);
    const final = await graph.resume("r");
    expect(inputs).toEqual([["a"], ["a", "half"]]);
    expect(final.data.trail).toEqual(["a", "half", "whole", "c"]);
    expect(final).toMatchObject({ step: 3, visits: { a: 1, b: 1, c: 1 } });
  });

  test("is kept even if nothing else of the node is: a crash after it resumes from it", async () => {
    const store = new RecordingStore();
    const crashed = gate();
    const inputs: (readonly string[])[] = [];
    const node: NodeFunction<Trail> = async (state, context) => {
      inputs.push(state.data.trail);
      if (inputs.length > 1) return mark(state, context);
      await context.checkpoint(add(state, "half"), "half");
      crashed.open();
      return new Promise(() => {});
    };
    graphOf(node, store, 5).execute(start("r"));
    await crashed.opened;
    await store.forgetClaims();
    expect((await graphOf(node, store).resume("r")).data.trail).toEqual(["a", "half", "b", "c"]);
    expect(inputs).toEqual([["a"], ["a", "half"]]);
  });

  test("is where a retry restarts", async () => {
    const { node, inputs } = halves();
    const graph = new StateGraph<Trail>()
      .addNode("b", node, { retry: { initialInterval: 0 } })
      .setEntryPoint("b")
      .setExitPoint("b");
    expect((await graph.execute(start())).data.trail).toEqual(["half", "whole"]);
    expect(inputs).toEqual([[], ["half"]]);
  });

  test("keeps its node even if the edges would now choose another", async () => {
    const store = new RecordingStore();
    const ran: string[] = [];
    let fail = true;
    const graph = new StateGraph<{ go: string }>({ checkpoint: { store, interval: 1 } })
      .addNode("start", (state) => state)
      .addNode("left", async (state, context) => {
        ran.push("left");
        const next = await context.checkpoint(state.set("go", "right"), "turned");
        if (fail) throw new Error("boom");
        return next;
      })
      .addNode("right", (state) => {
        ran.push("right");
        return state;
      })
      .addEdge("start", "left", (state) => state.data.go === "left")
      .addEdge("start", "right")
      .setEntryPoint("start")
      .setExitPoint("left")
      .setExitPoint("right");
    await rejection(graph.execute(State.create({ go: "left" }, { runId: "r" })), ExecutionError);
    fail = false;
    const left = await store.load<{ go: string }>("r");
    expect(graph.toMermaid({ state: left })).toContain("class n1 next");
    const resumed: string[] = [];
    graph.on("checkpoint.resume", ({ data }) => resumed.push(`${data.node}>${data.resumeNode}`));
    expect((await graph.resume("r")).data.go).toBe("right");
    expect([ran, resumed]).toEqual([["left", "left"], ["start>left"]]);
  });

  test("is what the node's returned object is merged into, with or without a crash", async () => {
    const store = new RecordingStore();
    const graph = new StateGraph<{ a: number; b: number }>({ checkpoint: { store, interval: 1 } })
      .addNode("x", async (state, context) => {
        await context.checkpoint(state.set("a", 1), "half");
        return { b: 2 };
      })
      .setEntryPoint("x")
      .setExitPoint("x");
    expect((await graph.execute(State.create({ a: 0, b: 0 }))).data).toEqual({ a: 1, b: 2 });
  });

  test("returns the State to continue from, as saved", async () => {
    const store = new RecordingStore();
    let returned: State<Trail> | undefined;
    const node: NodeFunction<Trail> = async (state, context) => {
      returned = await context.checkpoint(add(state, "half"), "half");
      return returned;
    };
    await graphOf(node, store).execute(start("r"));
    const saved = store.saved.find(({ reason }) => reason === "half");
    expect(returned?.data).toEqual({ trail: ["a", "half"] });
    expect(returned?.checkpointId).toBe(saved?.checkpointId);
  });

  test("keeps results of once before and after it", async () => {
    const store = new RecordingStore();
    const calls: string[] = [];
    let fail = true;
    const node: NodeFunction<Trail> = async (state, context) => {
      await context.once("one", () => calls.push("one"));
      const half = await context.checkpoint(add(state, "half"), "half");
      await context.once("two", () => calls.push("two"));
      if (fail) throw new Error("boom");
      return half;
    };
    const graph = graphOf(node, store);
    await rejection(graph.execute(start("r")), ExecutionError);
    fail = false;
    await graph.resume("r");
    expect(calls).toEqual(["one", "two"]);
  });

  test("made while a once is being saved is not lost, nor is its reason", async () => {
    const store = new RecordingStore();
    const slow = gate();
    store.beforeSave = ({ reason }) => (reason === "once" ? slow.opened : undefined);
    const node: NodeFunction<Trail> = async (state, context) => {
      const once = context.once("pay", () => 1);
      await new Promise(setImmediate);
      const more = context.once("more", () => 1);
      const half = context.checkpoint(add(state, "half"), "half");
      slow.open();
      await Promise.all([once, more]);
      return half;
    };
    const final = await graphOf(node, store).execute(start("r"));
    expect(store.log.slice(2, 4)).toEqual(["once:a@1", "half:a@1"]);
    expect(store.saved[3]?.data.trail).toEqual(["a", "half"]);
    expect(final.data.trail).toEqual(["a", "half", "c"]);
  });

  test("made twice at the same time is one save with both reasons", async () => {
    const store = new RecordingStore();
    const node: NodeFunction<Trail> = async (state, context) => {
      await Promise.all([
        context.checkpoint(add(state, "x"), "first"),
        context.checkpoint(add(state, "y"), "second"),
      ]);
      return add(state, "z");
    };
    await graphOf(node, store).execute(start("r"));
    expect(store.log[2]).toBe("first, second:a@1");
    expect(store.saved[2]?.data.trail).toEqual(["a", "y"]);
  });

  test("without checkpointing is kept for retries and saves nothing", async () => {
    const seen: string[] = [];
    const node = async (state: State<Trail>, context: NodeContext<Trail>) => {
      const half = await context.checkpoint(add(state, "half"), "half");
      seen.push(half.checkpointId);
      return half;
    };
    const final = await linear(["a"], {}, { a: node }).execute(start());
    expect([final.data.trail, seen]).toEqual([["half"], [""]]);
  });
});

describe("a milestone is refused", () => {
  /** The error that the node itself sees. */
  async function refusal(
    act: (context: NodeContext<Trail>, state: State<Trail>) => Promise<unknown>,
  ) {
    const store = new RecordingStore();
    let seen: unknown;
    const node: NodeFunction<Trail> = async (state, context) => {
      seen = await act(context, state).catch((error: unknown) => error);
      return mark(state, context);
    };
    const final = await graphOf(node, store).execute(start("r"));
    expect(final.data.trail).toEqual(["a", "b", "c"]);
    expect(store.log).toEqual(["start:@0", "interval:a@1", "interval:b@2", "complete:c@3"]);
    return seen;
  }

  test("if it is not a State", async () => {
    const seen = await refusal((context) => context.checkpoint({} as never, "half"));
    expect(seen).toEqual(configError("state", /must be a State; got an object/));
  });

  test("if it is the State of another run", async () => {
    const seen = await refusal((context) => context.checkpoint(start("other"), "half"));
    expect(seen).toEqual(configError("state", /is the State of run "other"/));
  });

  test("if it has no reason", async () => {
    const seen = await refusal((context, state) => context.checkpoint(state, ""));
    expect(seen).toEqual(configError("reason"));
  });

  test("if it can't be saved, by its path, and the node may continue", async () => {
    const seen = await refusal((context, state) =>
      context.checkpoint(state.set("trail", [(() => {}) as never]), "half"),
    );
    expect(seen).toEqual(serializationError("data.trail[0]"));
  });
});
