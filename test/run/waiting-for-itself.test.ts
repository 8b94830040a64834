import { describe, expect, test } from "vitest";
import {
  ConfigError,
  ExecutionError,
  MemoryStore,
  type NodeFunction,
  type StateGraph,
  subgraph,
} from "waymark";
import { gate, linear, mark, rejection, start, type Trail } from "../graphs.js";

const checkpoint = { store: new MemoryStore(), interval: 1 };

describe("drain", () => {
  test("awaited inside a node is an error, and drains all the same", async () => {
    const errors: unknown[] = [];
    const graph: StateGraph<Trail, string> = linear(
      ["a", "b"],
      {},
      {
        a: async (state, context) => {
          await Promise.resolve();
          await graph.drain().catch((error: unknown) => errors.push(error));
          return mark(state, context);
        },
      },
    );
    const failure = await rejection(graph.execute(start()), ExecutionError);
    expect(failure).toMatchObject({ code: "ABORTED", nodeName: "b" });
    expect(errors).toEqual([expect.any(ConfigError)]);
    expect(String(errors[0])).toContain("must not be awaited inside a node");
  });

  test("may be called inside a node without waiting for it", async () => {
    const graph: StateGraph<Trail, string> = linear(
      ["a", "b"],
      {},
      {
        a: (state, context) => {
          void graph.drain();
          return mark(state, context);
        },
      },
    );
    const failure = await rejection(graph.execute(start()), ExecutionError);
    expect(failure.code).toBe("ABORTED");
  });

  test("awaited inside a node of a graph inside its own is an error", async () => {
    let message = "";
    const inner = linear(
      ["x"],
      {},
      {
        x: async (state) => {
          await Promise.resolve();
          await outer.drain().catch((error: unknown) => {
            message = String(error);
          });
          return state;
        },
      },
    );
    const node = subgraph<Trail, Trail, string>(inner, {
      in: ({ data }) => ({ trail: data.trail }),
      out: (_state, { data }) => ({ trail: data.trail }),
    });
    const outer: StateGraph<Trail, string> = linear(["a"], {}, { a: node });
    await outer.execute(start()).catch(() => {});
    expect(message).toContain("must not be awaited inside a node");
  });

  test("may be awaited by a listener, for whom no run waits", async () => {
    const drained = gate();
    const graph = linear(["a", "b"]);
    graph.on("node.start", async () => {
      await graph.drain();
      drained.open();
    });
    await rejection(graph.execute(start()), ExecutionError);
    await drained.opened;
  });

  test("of another graph may be awaited inside a node", async () => {
    const opened = gate();
    const other = linear(["slow"], {}, { slow: (state) => opened.opened.then(() => state) });
    const running = other.execute(start());
    const graph = linear(
      ["a"],
      {},
      {
        a: async (state, context) => {
          opened.open();
          await other.drain();
          return mark(state, context);
        },
      },
    );
    expect((await graph.execute(start())).data.trail).toEqual(["a"]);
    await running;
  });
});

describe("once", () => {
  const run = (node: NodeFunction<Trail>) =>
    linear(["a"], { checkpoint }, { a: node }).execute(start());

  test("inside once of the same key is an error", async () => {
    const failure = await rejection(
      run(async (state, context) => {
        await context.once("k", async () => {
          await Promise.resolve();
          return context.once("k", () => 1);
        });
        return state;
      }),
      ExecutionError,
    );
    expect(failure.cause).toBeInstanceOf(ConfigError);
    expect(failure.message).toContain('once("k") and would wait for itself');
  });

  test("inside once of another key that is inside once of the same key is an error", async () => {
    const failure = await rejection(
      run(async (state, context) => {
        await context.once("k", () => context.once("other", () => context.once("k", () => 1)));
        return state;
      }),
      ExecutionError,
    );
    expect(failure.cause).toBeInstanceOf(ConfigError);
  });

  test("of the same key at the same time is done once", async () => {
    let count = 0;
    await run(async (state, context) => {
      const twice = await Promise.all([
        context.once("k", async () => ++count),
        context.once("k", async () => ++count),
      ]);
      expect(twice).toEqual([1, 1]);
      return state;
    });
  });
});
