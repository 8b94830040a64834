import { describe, expect, test } from "vitest";
import {
  CheckpointConflictError,
  type Claim,
  chain,
  type NodeFunction,
  parallel,
  pause,
  recoverRuns,
  StateGraph,
  subgraph,
} from "waymark";
import {
  bare,
  gate,
  linear,
  listen,
  mark,
  RecordingStore,
  rejection,
  start,
  type Trail,
  typesOf,
} from "../graphs.js";

const abc = ["a", "b", "c"];

/** A store whose claims can be lost, with a word or without. */
class LosingStore extends RecordingStore {
  /** The claims that were asked for, and those that were released. */
  readonly claimed: string[] = [];
  readonly released: string[] = [];
  readonly #lost = new AbortController();
  #holds: () => boolean | Promise<boolean> = () => true;

  override async claim(runId: string): Promise<Claim | undefined> {
    const claim = await super.claim(runId);
    this.claimed.push(runId);
    if (claim === undefined) return undefined;
    return {
      lost: this.#lost.signal,
      holds: () => this.#holds(),
      release: async () => {
        this.released.push(runId);
        await claim.release();
      },
    };
  }

  /** Another process has the run now, and this one is told. */
  lose(reason: unknown = new Error("lease ran out")): void {
    this.#lost.abort(reason);
  }

  /** The claim has run out while this process was stopped; no timer of it knows yet. */
  expire(): void {
    this.#holds = () => false;
  }

  /** The claim has run out, and the store says when it is asked what became of it. */
  expireUnlessHeld(answer: () => Promise<boolean>): void {
    this.#holds = answer;
  }
}

/** a → b → c, of which `b` does what it is told, and what ran. */
function graphOf(store: LosingStore, b: NodeFunction<Trail> = mark, interval = 1) {
  const ran: string[] = [];
  const traced =
    (node: NodeFunction<Trail>): NodeFunction<Trail> =>
    (state, context) => {
      ran.push(context.node);
      return node(state, context);
    };
  const graph = linear(
    abc,
    { checkpoint: { store, interval, preserve: true } },
    { a: traced(mark), b: traced(b), c: traced(mark) },
  );
  return { graph, ran };
}

describe("a claim", () => {
  test("is held while a run is active, and released however it ends", async () => {
    const store = new LosingStore();
    const holders: unknown[] = [];
    let broken = true;
    const { graph } = graphOf(store, async (state, context) => {
      holders.push(await store.holder("r"));
      if (broken) throw new Error("boom");
      return mark(state, context);
    });
    await graph.execute(start("r")).catch(() => {});
    expect(await store.holder("r")).toBeUndefined();
    broken = false;
    await graph.resume("r");
    await graph.resumeOrStart(start("r"));
    expect(await store.holder("r")).toBeUndefined();
    expect(holders).toMatchObject([{ pid: process.pid }, { pid: process.pid }]);
    expect(store.claimed).toEqual(["r", "r", "r"]);
    expect(store.released).toEqual(store.claimed);
  });

  test("is released when a run pauses, so that another process can resume it", async () => {
    const store = new LosingStore();
    const { graph } = graphOf(store, (state) => pause(state, { reason: "review" }));
    expect((await graph.execute(start("r"))).status).toBe("paused");
    expect(await store.holder("r")).toBeUndefined();
    expect((await graph.resume("r")).status).toBe("completed");
  });

  test("is released if the input of a resume is refused, and if the run does not exist", async () => {
    const store = new LosingStore();
    const { graph } = graphOf(store);
    await expect(graph.resume("nobody")).rejects.toMatchObject({ code: "CHECKPOINT_NOT_FOUND" });
    await graph.execute(start("r"));
    await expect(graph.resume("r", { input: 1 })).rejects.toMatchObject({ code: "CONFIG" });
    expect(store.released).toEqual(["nobody", "r", "r"]);
  });

  test("of one run leaves others alone", async () => {
    const store = new LosingStore();
    const { graph } = graphOf(store);
    await store.claim("other");
    expect((await graph.execute(start("r"))).status).toBe("completed");
    await rejection(graph.execute(start("other")), CheckpointConflictError);
  });

  test("is requested only where checkpoints are saved", async () => {
    const store = new LosingStore();
    await linear(abc, { checkpoint: { store, interval: 0 } }).execute(start("r"));
    expect(store.claimed).toEqual([]);
  });

  test("is not requested by a graph inside a node or a worker, whose caller has it", async () => {
    const store = new LosingStore();
    const inner = linear(["x"], { checkpoint: { store, interval: 1, preserve: true } });
    const outer = new StateGraph<Trail>({ checkpoint: { store, interval: 1, preserve: true } })
      .addNode("in", subgraph(inner, { in: ({ data }) => data, out: (_, { data }) => data }))
      .setEntryPoint("in")
      .setExitPoint("in");
    await outer.execute(start("r"));
    expect(store.claimed).toEqual(["r"]);
    const inside = StateGraph.inside(inner, store, new AbortController().signal);
    await inside.execute(start("worked"));
    expect(store.claimed).toEqual(["r"]);
  });

  test("that can't be made because the store fails stops the run before any node", async () => {
    const store = new LosingStore();
    store.claim = async () => {
      throw new Error("out of order");
    };
    const { graph, ran } = graphOf(store);
    await expect(graph.execute(start("r"))).rejects.toThrow("out of order");
    expect(ran).toEqual([]);
  });

  test("that can't be made is skipped in modes where a failed save does not stop the run", async () => {
    const store = new LosingStore();
    store.claim = async () => {
      throw new Error("out of order");
    };
    const problems: string[] = [];
    const graph = linear(abc, { checkpoint: { store, interval: 1, onSaveError: "continue" } });
    graph.on("checkpoint.error", ({ data }) => problems.push(data.error));
    expect((await graph.execute(start("r"))).status).toBe("completed");
    expect(problems).toEqual(["out of order"]);
  });

  test("that can't be released does not cost the result", async () => {
    const store = new LosingStore();
    store.claim = async () => ({ release: () => Promise.reject(new Error("out of order")) });
    const { graph } = graphOf(store);
    expect((await graph.execute(start("r"))).status).toBe("completed");
  });

  test("of another process is an error that names it, or says that it is unknown", async () => {
    const store = new LosingStore();
    await store.claim("r");
    const { graph, ran } = graphOf(store);
    const known = await rejection(graph.execute(start("r")), CheckpointConflictError);
    expect(known.holder).toMatchObject({ pid: process.pid, host: expect.any(String) });
    expect(known.message).toContain(`process ${process.pid} on `);
    const mute = { ...bare(store), claim: async () => undefined };
    const quiet = linear(abc, { checkpoint: { store: mute, interval: 1 } });
    const unknown = await rejection(quiet.execute(start("r")), CheckpointConflictError);
    expect(unknown.holder).toBeUndefined();
    expect(unknown.message).toContain("is being worked on by another process");
    expect(ran).toEqual([]);
  });
});

test("a refused claim is retried if its holder has released it meanwhile", async () => {
  const store = new RecordingStore();
  const other = await store.claim("r");
  store.holder = async () => {
    await other?.release();
    return undefined;
  };
  const config = { checkpoint: { store, interval: 1 } };
  expect((await linear(abc, config).execute(start("r"))).data.trail).toEqual(abc);
});

describe("a process that lost its claim", () => {
  test("has its signal aborted, starts no further node and writes nothing more", async () => {
    const store = new LosingStore();
    const reason = new Error("lease ran out");
    let signal: AbortSignal | undefined;
    const { graph, ran } = graphOf(store, async (_state, context) => {
      signal = context.signal;
      store.lose(reason);
      context.signal.throwIfAborted();
      return {};
    });
    const events = listen(graph);
    const error = await rejection(graph.execute(start("r")), CheckpointConflictError);
    expect(error).toMatchObject({ runId: "r", cause: reason, holder: undefined });
    expect(error.message).toContain("may be worked on by another process now");
    expect(signal?.reason).toBe(error);
    expect(ran).toEqual(["a", "b"]);
    expect(store.log).toEqual(["start:@0", "interval:a@1"]);
    expect(events.at(-1)).toMatchObject({
      type: "graph.fail",
      data: { code: "CHECKPOINT_CONFLICT", cause: error },
    });
    expect(store.released).toEqual(["r"]);
  });

  test.each([1, 9])(
    "does not save what a node returns anyway, at interval %i",
    async (interval) => {
      const store = new LosingStore();
      const { graph, ran } = graphOf(
        store,
        (state, context) => {
          store.lose();
          return mark(state, context);
        },
        interval,
      );
      await rejection(graph.execute(start("r")), CheckpointConflictError);
      expect(ran).toEqual(["a", "b"]);
      expect(store.saved.at(-1)?.step).toBeLessThan(2);
    },
  );

  test("saves no result of once and no milestone", async () => {
    const store = new LosingStore();
    const seen: unknown[] = [];
    const { graph } = graphOf(store, async (state, context) => {
      store.lose();
      seen.push(await context.once("pay", () => 1).catch((error: unknown) => error));
      seen.push(await context.checkpoint(state, "half").catch((error: unknown) => error));
      return mark(state, context);
    });
    const error = await rejection(graph.execute(start("r")), CheckpointConflictError);
    expect(seen).toEqual([error, error]);
    expect(store.log).toEqual(["start:@0", "interval:a@1"]);
  });

  test.each<[what: string, b: (store: LosingStore) => NodeFunction<Trail>]>([
    [
      "a pause after a node",
      (store) => (state) => {
        store.lose();
        return pause(state, { reason: "review" });
      },
    ],
    [
      "a pause inside a node",
      (store) => async (_state, context) => {
        store.lose();
        await context.pause("ok", { reason: "review", ask: "?" });
        return {};
      },
    ],
    [
      "a failure",
      (store) => () => {
        store.lose();
        throw new Error("boom");
      },
    ],
  ])("does not save %s", async (_what, b) => {
    const store = new LosingStore();
    const { graph } = graphOf(store, b(store));
    await rejection(graph.execute(start("r")), CheckpointConflictError);
    expect(store.log).toEqual(["start:@0", "interval:a@1"]);
  });

  test("does not remove the checkpoints of a run it finished", async () => {
    const store = new LosingStore();
    store.afterSave = ({ status }) => {
      if (status === "completed") store.lose();
    };
    const graph = linear(abc, { checkpoint: { store, interval: 1 } });
    expect((await graph.execute(start("r"))).status).toBe("completed");
    expect(await store.list()).toEqual(["r"]);
  });

  test("before its first node saves nothing and runs nothing", async () => {
    const store = new LosingStore();
    store.lose();
    const { graph, ran } = graphOf(store);
    await rejection(graph.execute(start("r")), CheckpointConflictError);
    expect([ran, store.log]).toEqual([[], []]);
  });

  test("stops at once even while it waits for a slow reader of its events", async () => {
    const store = new LosingStore();
    const { graph, ran } = graphOf(store);
    const stream = graph.stream(start("r"));
    await stream.next();
    store.lose();
    const rest = (async () => {
      for await (const _event of stream);
    })();
    await rejection(rest, CheckpointConflictError);
    expect(ran.length).toBeLessThan(3);
  });
});

describe("a claim that expired while the process was stopped", () => {
  test("is noticed before the next node starts, without a notification", async () => {
    const store = new LosingStore();
    const { graph, ran } = graphOf(store);
    store.afterSave = ({ checkpointNode }) => {
      if (checkpointNode === "a") store.expire();
    };
    const error = await rejection(graph.execute(start("r")), CheckpointConflictError);
    expect(error.cause).toBeUndefined();
    expect(error.message).toContain("may be worked on by another process now");
    expect(ran).toEqual(["a"]);
    expect(store.log).toEqual(["start:@0", "interval:a@1"]);
  });

  test("is noticed before the node's result is saved, and aborts its signal", async () => {
    const store = new LosingStore();
    let signal: AbortSignal | undefined;
    const { graph, ran } = graphOf(store, (state, context) => {
      signal = context.signal;
      store.expire();
      return mark(state, context);
    });
    const error = await rejection(graph.execute(start("r")), CheckpointConflictError);
    expect(signal?.reason).toBe(error);
    expect(ran).toEqual(["a", "b"]);
    expect(store.log).toEqual(["start:@0", "interval:a@1"]);
  });

  test("is noticed before another attempt starts", async () => {
    const store = new LosingStore();
    const attempts: number[] = [];
    const graph = new StateGraph<Trail>({ checkpoint: { store, interval: 1 } })
      .addNode(
        "a",
        (_state, { attempt }) => {
          attempts.push(attempt);
          store.expire();
          throw new Error("try again");
        },
        { retry: { maxAttempts: 3, initialInterval: 1 } },
      )
      .setEntryPoint("a")
      .setExitPoint("a");
    await rejection(graph.execute(start("r")), CheckpointConflictError);
    expect(attempts).toEqual([1]);
    expect(store.log).toEqual(["start:@0"]);
  });

  test("is noticed before a once runs, even if the node ignores the error", async () => {
    const store = new LosingStore();
    let paid = 0;
    const { graph, ran } = graphOf(store, async (state, context) => {
      store.expire();
      await context.once("pay", () => ++paid).catch(() => {});
      return mark(state, context);
    });
    await rejection(graph.execute(start("r")), CheckpointConflictError);
    expect([paid, ran]).toEqual([0, ["a", "b"]]);
  });

  test.each<[what: string, node: (work: (item: number) => void) => NodeFunction<Trail>]>([
    [
      "an item of a list",
      (work) => parallel([1, 2, 3], (_state, item) => work(item), { concurrency: 1 }),
    ],
    [
      "a step of a chain",
      (work) =>
        chain([1, 2, 3], (state, item) => {
          work(item);
          return state;
        }),
    ],
    [
      "a node of a graph inside",
      (work) => {
        const inner = linear(
          abc,
          {},
          Object.fromEntries(
            abc.map((name, index) => [
              name,
              (state, context) => {
                work(index + 1);
                return mark(state, context);
              },
            ]),
          ),
        );
        return subgraph(inner, { in: ({ data }) => data, out: () => ({}) });
      },
    ],
  ])("is noticed before %s starts", async (_what, node) => {
    const store = new LosingStore();
    const began: number[] = [];
    const graph = new StateGraph<Trail>({ checkpoint: { store, interval: 1 } })
      .addNode(
        "many",
        node((item) => {
          began.push(item);
          if (item === 2) store.expire();
        }),
      )
      .setEntryPoint("many")
      .setExitPoint("many");
    const error = await rejection(graph.execute(start("r")), CheckpointConflictError);
    expect(error.runId).toBe("r");
    expect(began).toEqual([1, 2]);
  });

  test("is noticed before a node of a recovered run", async () => {
    const store = new LosingStore();
    let broken = true;
    const { graph, ran } = graphOf(store, (state, context) => {
      if (broken) throw new Error("boom");
      store.expire();
      return mark(state, context);
    });
    await graph.execute(start("r")).catch(() => {});
    broken = false;
    const [recovery] = await recoverRuns({ store, graphs: [graph] });
    expect(recovery).toMatchObject({ outcome: "skipped", reason: "another process has taken it" });
    expect(ran).toEqual(["a", "b", "b"]);
    expect(store.released).toEqual(["r", "r"]);
  });

  test("is checked in the store, and nothing starts until it has answered", async () => {
    const store = new LosingStore();
    const asked = gate();
    const answer = gate();
    const { graph, ran } = graphOf(store);
    store.afterSave = ({ checkpointNode }) => {
      if (checkpointNode !== "a") return;
      store.expireUnlessHeld(async () => {
        asked.open();
        await answer.opened;
        return true;
      });
    };
    const run = graph.execute(start("r"));
    await asked.opened;
    expect(ran).toEqual(["a"]);
    answer.open();
    expect((await run).status).toBe("completed");
    expect(ran).toEqual(abc);
  });

  test("is lost if the store can't tell its state", async () => {
    const store = new LosingStore();
    const { graph, ran } = graphOf(store, (state, context) => {
      store.expireUnlessHeld(() => Promise.reject(new Error("no answer")));
      return mark(state, context);
    });
    await rejection(graph.execute(start("r")), CheckpointConflictError);
    expect(ran).toEqual(["a", "b"]);
  });

  test("is noticed before a resume takes its input", async () => {
    const store = new LosingStore();
    const { graph, ran } = graphOf(store, (state) => pause(state, { reason: "review" }));
    await graph.execute(start("r"));
    store.expire();
    await rejection(graph.resume("r"), CheckpointConflictError);
    expect(ran).toEqual(["a", "b"]);
    expect(store.log.at(-1)).toBe("pause:b@2");
  });
});

test("the claim of a hanging run keeps others out until it ends", async () => {
  const store = new LosingStore();
  const inside = gate();
  const finish = gate();
  const { graph } = graphOf(store, async (state, context) => {
    inside.open();
    await finish.opened;
    return mark(state, context);
  });
  const running = graph.execute(start("r"));
  await inside.opened;
  const second = graphOf(store);
  const events = listen(second.graph);
  await rejection(second.graph.resume("r"), CheckpointConflictError);
  expect([typesOf(events), second.ran]).toEqual([[], []]);
  finish.open();
  await running;
  expect((await second.graph.resume("r")).status).toBe("completed");
});
