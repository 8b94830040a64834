import { describe, expect, test, vi } from "vitest";
import { ExecutionError, type NodeFunction, State, StateGraph } from "waymark";
import { progressOf } from "../../src/state/derive.js";
import { gate, linear, mark, RecordingStore, rejection, start, type Trail } from "../graphs.js";
import { configError, serializationError } from "../matchers.js";

/** A graph of the node `a` only, with retries that don't wait. */
function graphOf(node: NodeFunction<Trail>, store?: RecordingStore) {
  return new StateGraph<Trail, string>(store && { checkpoint: { store, interval: 1 } })
    .addNode("a", node, { retry: { initialInterval: 0 } })
    .setEntryPoint("a")
    .setExitPoint("a");
}

/** Loses the process at the first call: whatever is saved by then is what a new process finds. */
function crashes(): () => Promise<void> {
  let calls = 0;
  return () => (++calls === 1 ? new Promise(() => {}) : Promise.resolve());
}

/** What another process finds that opens the store now. */
function reopened(store: RecordingStore): RecordingStore {
  const copy = new RecordingStore();
  copy.load = async (runId, at) => State.fromJSON(JSON.stringify(await store.load(runId, at)));
  copy.save = (state, options) => store.save(state, options);
  copy.delete = (runId) => store.delete(runId);
  return copy;
}

describe("once", () => {
  test("stores the result before it returns", async () => {
    const store = new RecordingStore();
    const slow = gate();
    store.beforeSave = ({ reason }) => (reason === "once" ? slow.opened : undefined);
    const order: string[] = [];
    store.afterSave = ({ reason }) => order.push(`saved ${reason}`);
    const running = graphOf(async (state, context) => {
      const paid = await context.once("pay", () => {
        order.push("paid");
        return 7;
      });
      order.push(`returned ${paid}`);
      return state;
    }, store).execute(start());
    await vi.waitFor(() => expect(order).toContain("paid"));
    await new Promise(setImmediate);
    expect(order).toEqual(["saved start", "paid"]);
    slow.open();
    await running;
    expect(order.slice(0, 4)).toEqual(["saved start", "paid", "saved once", "returned 7"]);
  });

  test("is not repeated after a crash inside the node", async () => {
    const store = new RecordingStore();
    const crash = crashes();
    const calls: string[] = [];
    const node: NodeFunction<Trail> = async (_state, context) => {
      const first = await context.once("first", () => calls.push("first"));
      const second = await context.once("second", async () => calls.push("second"));
      await crash();
      const third = await context.once("third", () => calls.push("third"));
      return { trail: [first, second, third].map(String) };
    };
    graphOf(node, store).execute(start("r"));
    await vi.waitFor(() => expect(calls).toEqual(["first", "second"]));
    await vi.waitFor(() => expect(store.log).toEqual(["start:@0", "once:@0", "once:@0"]));
    const final = await graphOf(node, reopened(store)).resume("r");
    expect(calls).toEqual(["first", "second", "third"]);
    expect(final.data.trail).toEqual(["1", "2", "3"]);
  });

  test("is repeated if the process died before its result was saved", async () => {
    const store = new RecordingStore();
    store.beforeSave = ({ reason }) => (reason === "once" ? new Promise(() => {}) : undefined);
    let calls = 0;
    const node: NodeFunction<Trail> = async (state, context) => {
      await context.once("pay", () => ++calls);
      return state;
    };
    graphOf(node, store).execute(start("r"));
    await vi.waitFor(() => expect(calls).toBe(1));
    store.beforeSave = () => {};
    await store.forgetClaims();
    await graphOf(node, store).resume("r");
    expect(calls).toBe(2);
  });

  test("saves how often each node completed, including those since the last interval", async () => {
    const store = new RecordingStore();
    let isDying = true;
    const graph = linear(
      ["a", "b", "c"],
      { checkpoint: { store, interval: 9, preserve: true } },
      {
        c: async (state, context) => {
          await context.once("key", () => 1);
          return isDying ? new Promise(() => {}) : mark(state, context);
        },
      },
    );
    void graph.execute(start("r"));
    await vi.waitUntil(() => store.saved.length === 2);
    expect(store.saved.at(-1)).toMatchObject({ reason: "once", step: 2, visits: { a: 1, b: 1 } });
    isDying = false;
    await store.forgetClaims();
    expect((await graph.resume("r")).visits).toEqual({ a: 1, b: 1, c: 1 });
  });

  test("gives its result to a retry, even without checkpointing", async () => {
    for (const store of [undefined, new RecordingStore()]) {
      let [calls, attempts] = [0, 0];
      const final = await graphOf(async (_state, context) => {
        const paid = await context.once("pay", () => ++calls);
        if (++attempts < 3) throw new Error("after paying");
        return { trail: [`paid ${paid}`] };
      }, store).execute(start());
      expect([calls, attempts, final.data.trail]).toEqual([1, 3, ["paid 1"]]);
    }
  });

  test("that throws is repeated, and its error is the node's", async () => {
    let calls = 0;
    const final = await graphOf(async (_state, context) => {
      const paid = await context.once("pay", () => {
        if (++calls < 3) throw new Error("down");
        return calls;
      });
      return { trail: [String(paid)] };
    }, new RecordingStore()).execute(start());
    expect(final.data.trail).toEqual(["3"]);
  });

  test("belongs to one visit: each visit in a cycle runs it", async () => {
    const store = new RecordingStore();
    const calls: number[] = [];
    const graph = new StateGraph<Trail>({ checkpoint: { store, interval: 1 } })
      .addNode("tick", async (state, context) => {
        await context.once("pay", () => calls.push(context.step));
        return mark(state, context);
      })
      .addNode("done", mark)
      .addEdge("tick", "tick", (state) => state.data.trail.length < 3)
      .addEdge("tick", "done")
      .setEntryPoint("tick")
      .setExitPoint("done");
    await graph.execute(start());
    expect(calls).toEqual([0, 1, 2]);
  });

  test("returns the same frozen copy immediately and later, whatever its type", async () => {
    const store = new RecordingStore();
    const made = { when: new Date(5), many: [1, 2], none: undefined, big: 2n ** 70n };
    const seen: unknown[] = [];
    const node: NodeFunction<Trail> = async (state, context) => {
      const value = await context.once("make", () => made);
      seen.push(value);
      if (seen.length === 1) throw new Error("once more");
      return state;
    };
    const graph = new StateGraph<Trail>({ checkpoint: { store, interval: 1 } })
      .addNode("a", node)
      .setEntryPoint("a")
      .setExitPoint("a");
    await rejection(graph.execute(start("r")), ExecutionError);
    await graph.resume("r");
    expect(seen).toEqual([made, made]);
    expect(seen.every((value) => Object.isFrozen(value))).toBe(true);
    expect(seen).not.toContain(made);
  });

  test("keeps undefined like any other result", async () => {
    let calls = 0;
    const node: NodeFunction<Trail> = async (state, context) => {
      await context.once("nothing", () => void ++calls);
      if (context.attempt === 1) throw new Error("again");
      return state;
    };
    await graphOf(node, new RecordingStore()).execute(start());
    expect(calls).toBe(1);
  });

  test("refuses a result that can't be saved by its key, and the run can resume", async () => {
    const store = new RecordingStore();
    const node: NodeFunction<Trail> = async (state, context) => {
      await context.once("fine", () => 1);
      await context.once("client", () => ({ socket: { send: () => {} } }));
      return state;
    };
    const graph = linear(["a"], { checkpoint: { store, interval: 1 } }, { a: node });
    const error = await rejection(graph.execute(start("r")), ExecutionError);
    expect(error.code).toBe("NODE_FAILED");
    expect(error.cause).toEqual(serializationError("client.socket.send", /the function send/));
    expect(await store.load("r")).toMatchObject({ status: "failed" });
  });

  test("requires a string key that pauses do not use", async () => {
    const errors: unknown[] = [];
    await graphOf(async (state, context) => {
      for (const key of ["", 7 as never, "pause: ok"]) {
        errors.push(await context.once(key, () => 1).catch((error: unknown) => error));
        errors.push(await context.remember(key, 1).catch((error: unknown) => error));
      }
      return state;
    }).execute(start());
    expect(errors).toHaveLength(6);
    for (const error of errors) expect(error).toEqual(configError("key"));
    expect(String(errors.at(-1))).toContain('can\'t begin with "pause: "');
  });

  test("requires a function", async () => {
    const node: NodeFunction<Trail> = async (state, context) => {
      await context.once("key", "done" as never);
      return state;
    };
    const { cause } = await rejection(graphOf(node).execute(start()), ExecutionError);
    expect(cause).toEqual(configError("action", 'must be a function; got "done"'));
  });

  test("accepts any other key", async () => {
    const store = new RecordingStore();
    const keys = ["__proto__", "constructor", "$date", " ", "a\u0000b", "pause ok"];
    let calls = 0;
    const node: NodeFunction<Trail> = async (state, context) => {
      for (const key of keys) await context.once(key, () => ++calls);
      if (context.attempt === 1) throw new Error("again");
      return state;
    };
    await graphOf(node, store).execute(start("r"));
    expect(calls).toBe(keys.length);
    const left = State.fromJSON<Trail>(JSON.stringify(store.saved.at(-2)));
    expect([...(progressOf(left).unfinished?.results.byKey() ?? [])]).toEqual(
      keys.map((key, index) => [key, index + 1]),
    );
  });
});

describe("concurrent calls of once", () => {
  test("share saves: those made during a save are saved together", async () => {
    const store = new RecordingStore();
    const slow = gate();
    let saves = 0;
    store.beforeSave = ({ reason }) => {
      if (reason === "once" && ++saves === 1) return slow.opened;
      return undefined;
    };
    const keys = Array.from({ length: 100 }, (_, index) => `k${index}`);
    await graphOf(async (state, context) => {
      const first = context.once("first", () => "first");
      await vi.waitFor(() => expect(saves).toBe(1));
      const rest = Promise.all(keys.map((key) => context.once(key, () => key)));
      await new Promise(setImmediate);
      slow.open();
      expect(await first).toBe("first");
      expect(await rest).toEqual(keys);
      return state;
    }, store).execute(start());
    const sizes = store.saved.map((state) => progressOf(state).unfinished?.results.byKey().size);
    expect(sizes.slice(0, 3)).toEqual([undefined, 1, 101]);
    expect(saves).toBe(2);
  });

  test("with one key share one call, and all wait until it is saved", async () => {
    const store = new RecordingStore();
    const slow = gate();
    store.beforeSave = ({ reason }) => (reason === "once" ? slow.opened : undefined);
    let calls = 0;
    const returned: number[] = [];
    const running = graphOf(async (state, context) => {
      const pay = async () => returned.push(await context.once("pay", async () => ++calls));
      await Promise.all([pay(), pay(), new Promise(setImmediate).then(pay)]);
      return state;
    }, store).execute(start());
    await vi.waitFor(() => expect(calls).toBe(1));
    await new Promise(setImmediate);
    await new Promise(setImmediate);
    expect(returned).toEqual([]);
    slow.open();
    await running;
    expect([calls, returned]).toEqual([1, [1, 1, 1]]);
  });

  test("with one key share its error too, and a later one tries again", async () => {
    let calls = 0;
    const outcomes: unknown[] = [];
    await graphOf(async (state, context) => {
      const pay = () =>
        context.once("pay", async () => {
          if (++calls === 1) throw new Error("down");
          return calls;
        });
      const settled = await Promise.allSettled([pay(), pay()]);
      outcomes.push(...settled.map(({ status }) => status), await pay());
      return state;
    }).execute(start());
    expect(outcomes).toEqual(["rejected", "rejected", 2]);
  });
});

describe("remember, recall and forget", () => {
  test("keep the newest value of each key for a retry and a resume", async () => {
    const store = new RecordingStore();
    const seen: unknown[] = [];
    const node: NodeFunction<Trail> = async (state, context) => {
      seen.push(context.recall("page"), context.recall("gone"));
      if (seen.length === 2) {
        for (let page = 0; page < 500; page++) await context.remember("page", page);
        await context.remember("gone", 1);
        context.forget("gone");
        await context.remember("last", 1);
        throw new Error("stop");
      }
      return state;
    };
    const graph = linear(["a"], { checkpoint: { store, interval: 1 } }, { a: node });
    await rejection(graph.execute(start("r")), ExecutionError);
    await graph.resume("r");
    expect(seen).toEqual([undefined, undefined, 499, undefined]);
  });
});
