import { describe, expect, test } from "vitest";
import {
  ExecutionError,
  type NodeFunction,
  type Predicate,
  SerializationError,
  State,
  StateGraph,
} from "waymark";
import { linear, RecordingStore, rejection, start, type Trail } from "../graphs.js";

interface Loose {
  readonly kept?: unknown;
  readonly value?: unknown;
}

/** A graph of `make` and `end`; `make` is what is tried. */
function around(
  make: NodeFunction<Loose>,
  store: RecordingStore | undefined = undefined,
  interval = 1,
): StateGraph<Loose> {
  return new StateGraph<Loose>(store && { checkpoint: { store, interval } })
    .addNode("make", make)
    .addNode("end", (state) => state)
    .addEdge("make", "end")
    .setEntryPoint("make")
    .setExitPoint("end");
}

class Money {
  readonly amount = 1;
}

describe("a node may return", () => {
  test.each<[what: string, node: NodeFunction<Loose>]>([
    ["a State", (state) => state.set("value", 1)],
    ["a promise of a State", async (state) => state.set("value", 1)],
    ["an object to merge", () => ({ value: 1 })],
    ["a promise of an object", async () => ({ value: 1 })],
    ["an object without prototype", () => Object.assign(Object.create(null), { value: 1 })],
  ])("%s", async (_what, node) => {
    const final = await around(node).execute(State.create<Loose>({ kept: true }));
    expect(final.data).toEqual({ kept: true, value: 1 });
  });

  test("a thenable", async () => {
    // biome-ignore lint/suspicious/noThenProperty: that is what is tried
    const thenable = { then: (done: (value: object) => void) => done({ value: 1 }) };
    const final = await around(() => thenable as object).execute(State.create<Loose>({}));
    expect(final.data).toEqual({ value: 1 });
  });

  test("its input State, which changes nothing", async () => {
    const final = await around((state) => state).execute(State.create<Loose>({ kept: 1 }));
    expect(final.data).toEqual({ kept: 1 });
    expect(final.step).toBe(2);
  });
});

test("a result that is refused is reported as the error of its node, without a cause", async () => {
  const graph = around(() => 7 as never);
  const reported: unknown[] = [];
  graph.on("node.complete", ({ data }) => reported.push(data));
  const error = await rejection(graph.execute(State.create<Loose>({})), ExecutionError);
  expect(reported).toEqual([
    { node: "make", step: 0, durationMs: expect.any(Number), error: error.message },
  ]);
});

test.each<[what: string, value: unknown, says: string]>([
  ["nothing", undefined, "got undefined"],
  ["null", null, "got null"],
  ["a number", 7, "got 7"],
  ["a string", "done", 'got "done"'],
  ["an array", [1], "got an array"],
  ["a function", () => {}, "got the function"],
  ["an instance of a class", new Money(), "got a Money"],
  ["a Map", new Map(), "got a Map"],
  ["the State of another run", State.create<Loose>({}, { runId: "other" }), 'run "other"'],
])("a node that returns %s is a clear error", async (_what, value, says) => {
  for (const result of [value, Promise.resolve(value)]) {
    const node = (() => result) as unknown as NodeFunction<Loose>;
    const error = await rejection(around(node).execute(State.create({})), ExecutionError);
    expect(error.code).toBe("NODE_RESULT");
    expect(error.nodeName).toBe("make");
    expect(error.message).toContain('"make"');
    expect(error.message).toContain(says);
  }
});

test("a node that returns an invalid result fails and keeps its results of once", async () => {
  const store = new RecordingStore();
  let paid = 0;
  let broken = true;
  const node: NodeFunction<Loose> = async (_state, ctx) => {
    const value = await ctx.once("pay", () => ++paid);
    return broken ? (undefined as never) : { value };
  };
  const graph = around(node, store);
  const error = await rejection(graph.execute(State.create({}, { runId: "r" })), ExecutionError);
  expect(error.code).toBe("NODE_RESULT");
  expect(await store.load("r")).toMatchObject({ status: "failed", error: { node: "make" } });
  broken = false;
  expect((await graph.resume("r")).data).toEqual({ value: 1 });
  expect(paid).toBe(1);
});

test("a node can't change its input State", async () => {
  const graph = linear(
    ["a", "b"],
    {},
    {
      a: (state) => {
        (state.data.trail as string[]).push("smuggled");
        return state;
      },
    },
  );
  const initial = start();
  const error = await rejection(graph.execute(initial), ExecutionError);
  expect(error.cause).toBeInstanceOf(TypeError);
  expect(initial.data.trail).toEqual([]);
});

test("a node that returns an older State sets back the data, not the run", async () => {
  let first: State<Trail> | undefined;
  const graph = linear(
    ["a", "b", "c"],
    {},
    {
      a: (state) => {
        first = state;
        return { trail: ["a"] };
      },
      b: (state) => first ?? state,
    },
  );
  const final = await graph.execute(start());
  expect(final).toMatchObject({ step: 3, checkpointNode: "c", visits: { a: 1, b: 1, c: 1 } });
  expect(final.data.trail).toEqual(["c"]);
});

function cyclic(): object {
  const self: { self?: object } = {};
  self.self = self;
  return self;
}

const unsavable: [what: string, value: unknown, path: string][] = [
  ["a function", { deep: [() => {}] }, "data.value.deep[0]"],
  ["a symbol", Symbol("s"), "data.value"],
  ["an instance of a class", { price: new Money() }, "data.value.price"],
  ["a cycle", cyclic(), "data.value.self"],
  ["a WeakMap", new Map([["k", new WeakMap()]]), "data.value[0][1]"],
];

test.each(unsavable)(
  "%s in the data fails the node before it completes",
  async (_, value, path) => {
    for (const interval of [1, 5]) {
      const store = new RecordingStore();
      const graph = around(() => ({ value }), store, interval);
      const error = await rejection(
        graph.execute(State.create<Loose>({ kept: 1 })),
        ExecutionError,
      );
      expect(error.code).toBe("NODE_FAILED");
      expect(error.nodeName).toBe("make");
      expect(error.cause).toBeInstanceOf(SerializationError);
      expect((error.cause as SerializationError).path).toContain(path);
      expect(store.log).toEqual(["start:@0", "failure:@0"]);
      expect(store.saved.at(-1)?.data).toEqual({ kept: 1 });
    }
  },
);

test("a symbol key in a node's result fails the node before it completes", async () => {
  const store = new RecordingStore();
  const graph = around(() => ({ [Symbol("id")]: 1 }), store);
  const error = await rejection(graph.execute(State.create<Loose>({ kept: 1 })), ExecutionError);
  expect(error.message).toBe(
    'node "make" failed: data has the key Symbol(id): keys must be strings',
  );
  expect(store.log).toEqual(["start:@0", "failure:@0"]);
});

test("without checkpointing, data may hold anything", async () => {
  const final = await around(() => ({ value: new Money() })).execute(State.create<Loose>({}));
  expect(final.data.value).toBeInstanceOf(Money);
});

test("opaque data that was removed again no longer prevents a save", async () => {
  const store = new RecordingStore();
  const graph = around((state) => state.set("value", () => {}).set("value", "gone"), store);
  const final = await graph.execute(State.create<Loose>({}));
  expect(final.data).toEqual({ value: "gone" });
});

describe("a predicate", () => {
  function asking(predicate: () => unknown): Promise<ExecutionError> {
    const graph = new StateGraph<Trail>()
      .addNode("a", (state) => state)
      .addNode("b", (state) => state)
      .addEdge("a", "b", predicate as Predicate<Trail>)
      .setEntryPoint("a")
      .setExitPoint("b");
    return rejection(graph.execute(start()), ExecutionError);
  }

  test.each<[what: string, value: unknown, says: string]>([
    ["a promise", Promise.resolve(true), "got a Promise"],
    ["nothing", undefined, "got undefined"],
    ["a truthy string", "yes", 'got "yes"'],
  ])("that returns %s is an error", async (_what, value, says) => {
    const error = await asking(() => value);
    expect(error.code).toBe("PREDICATE_FAILED");
    expect(error.nodeName).toBe("a");
    expect(error.message).toContain('from "a" to "b"');
    expect(error.message).toContain(says);
  });

  test("that throws is an error whose cause is the predicate's own", async () => {
    const own = new RangeError("out of range");
    const error = await asking(() => {
      throw own;
    });
    expect(error.code).toBe("PREDICATE_FAILED");
    expect(error.cause).toBe(own);
    expect(error.message).toContain("out of range");
    expect(error.state.step).toBe(1);
  });
});
