import { afterEach, beforeEach, describe, expect, test } from "vitest";
import {
  ConfigError,
  ExecutionError,
  MemoryStore,
  type NodeContext,
  type NodeFunction,
  parallel,
  type StateGraph,
  subgraph,
} from "waymark";
import { gate, linear, mark, rejection, start, type Trail } from "../graphs.js";

/** What waits for itself hangs unless that is detected: a test must not wait for it as long as for slow work. */
const bounded = { timeout: 10_000 };

const checkpoint = { store: new MemoryStore(), interval: 1 };

describe("drain", bounded, () => {
  test("awaited inside a node is an error, but drains", async () => {
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

  test("awaited inside a node of an inner graph is an error", async () => {
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

  test("may be awaited by a listener, which no run waits for", async () => {
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

describe("an Error that can't be changed", bounded, () => {
  const names = ["stackTraceLimit", "prepareStackTrace", "captureStackTrace"] as const;
  const before = names.map((name) => Object.getOwnPropertyDescriptor(Error, name));

  beforeEach(() => {
    for (const name of names) {
      const value: unknown = Reflect.get(Error, name);
      Object.defineProperty(Error, name, { value, writable: false, configurable: true });
    }
  });
  afterEach(() => {
    for (const [at, name] of names.entries()) {
      const descriptor = before[at];
      if (descriptor === undefined) Reflect.deleteProperty(Error, name);
      else Object.defineProperty(Error, name, descriptor);
    }
  });

  test("leaves concurrent calls of once as they are", async () => {
    const graph = linear(
      ["a"],
      { checkpoint },
      {
        a: async (state, context) => {
          const action = async (): Promise<string> => "done";
          const both = await Promise.all([context.once("k", action), context.once("k", action)]);
          return { trail: [...state.data.trail, ...both] };
        },
      },
    );
    expect((await graph.execute(start())).data.trail).toEqual(["done", "done"]);
  });

  test("hides no circle of once, and no node that awaits its own drain", async () => {
    const messages: string[] = [];
    const note = (error: unknown): number => messages.push(String(error));
    const graph: StateGraph<Trail, string> = linear(
      ["a"],
      { checkpoint },
      {
        a: async (state, context) => {
          await Promise.resolve();
          await context.once("k", () => context.once("k", () => 1)).catch(note);
          await graph.drain().catch(note);
          return state;
        },
      },
    );
    await graph.execute(start()).catch(() => {});
    expect(messages).toEqual([
      expect.stringContaining('("k" → "k")'),
      expect.stringContaining("must not be awaited inside a node"),
    ]);
  });
});

describe("once", bounded, () => {
  const run = (node: NodeFunction<Trail>) =>
    linear(["a"], { checkpoint }, { a: node }).execute(start());

  test("nested in its own key is an error", async () => {
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
    expect(failure.message).toContain('once "k" would wait for itself ("k" → "k")');
  });

  test("nested in its own key through another key is an error", async () => {
    const failure = await rejection(
      run(async (state, context) => {
        await context.once("k", () => context.once("other", () => context.once("k", () => 1)));
        return state;
      }),
      ExecutionError,
    );
    expect(failure.cause).toBeInstanceOf(ConfigError);
    expect(failure.message).toContain('("k" → "other" → "k")');
  });

  /** Waits for others as code does that has work of its own to await first. */
  const needing =
    (context: NodeContext<Trail>, ...keys: string[]): (() => Promise<unknown>) =>
    async () => {
      await Promise.resolve();
      for (const key of keys) await context.once(key, needing(context));
    };

  const crosswise: Record<string, [chain: string, node: (c: NodeContext<Trail>) => unknown[]]> = {
    "of two keys that await each other": [
      '"a" → "b" → "a"',
      (c) => [c.once("a", needing(c, "b")), c.once("b", needing(c, "a"))],
    ],
    "of four keys in a circle": [
      '"a" → "b" → "c" → "d" → "a"',
      (c) => [
        c.once("a", needing(c, "b")),
        c.once("b", needing(c, "c")),
        c.once("c", needing(c, "d")),
        c.once("d", needing(c, "free", "a")),
      ],
    ],
    "of a key that another one, begun inside it, awaits": [
      '"a" → "inner" → "b" → "a"',
      (c) => [
        c.once("b", needing(c, "a")),
        c.once("a", () => c.once("inner", needing(c, "free", "b"))),
      ],
    ],
    "of a key that what it began awaits, and a third one awaits too": [
      '"a" → "b" → "a"',
      (c) => [
        c.once("a", async () => {
          await Promise.resolve();
          await c.once("b", needing(c, "free", "free too", "a"));
        }),
        c.once("third", needing(c, "free", "b")),
      ],
    ],
    "of two keys in branches of a Promise.all": [
      '"a" → "b" → "a"',
      (c) => [
        Promise.all([
          Promise.all([c.once("free", needing(c)), c.once("a", needing(c, "b"))]),
          c.once("b", () => Promise.all([c.once("too", needing(c)), needing(c, "a")()])),
        ]),
      ],
    ],
  };

  test.each(Object.entries(crosswise))(
    "%s is an error that names the chain",
    async (_, [chain, node]) => {
      let messages: unknown[] = [];
      await run(async (state, context) => {
        const outcomes = await Promise.allSettled(node(context));
        messages = outcomes.map((one) => one.status === "rejected" && String(one.reason));
        return state;
      });
      const keys = chain.split(" → ").slice(1);
      // Whichever asked last is where the circle is seen to close.
      const turned = keys.map((_key, n) => [...keys.slice(n), ...keys.slice(0, n + 1)].join(" → "));
      expect(turned.map((one) => expect.stringContaining(`(${one})`))).toContainEqual(messages[0]);
    },
  );

  test("of two keys of parallel items that await each other is an error", async () => {
    const failure = await rejection(
      run(async (state, context) => {
        const items = parallel<Trail, string, void>(["a", "b"], async (_state, item) => {
          await context.once(item, needing(context, item === "a" ? "b" : "a"));
        });
        return items(state, context);
      }),
      ExecutionError,
    );
    expect(failure.message).toContain("would wait for itself");
  });

  test("of one key may be awaited by many others", async () => {
    const trail: string[] = [];
    await run(async (state, c) => {
      const all = ["a", "b", "c", "d"].map((key, at, keys) =>
        c.once(key, async () => {
          await Promise.resolve();
          for (const other of keys.slice(0, at)) await c.once(other, needing(c));
          trail.push(key);
        }),
      );
      await Promise.all(all);
      return state;
    });
    expect(trail).toEqual(["a", "b", "c", "d"]);
  });

  test("of a failed key may be awaited again by the one it awaited", async () => {
    await run(async (state, c) => {
      const failing = c.once("a", async () => {
        await c.once("b", needing(c, "free"));
        throw new Error("no");
      });
      await failing.catch(() => {});
      await c.once("b too", needing(c, "a"));
      return state;
    });
  });

  test("of the same key concurrently runs once", async () => {
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
