import { describe, expect, test, vi } from "vitest";
import {
  ChainError,
  type ChainOptions,
  type ChainStep,
  chain,
  ExecutionError,
  FatalError,
  MemoryStore,
  pause,
  State,
} from "waymark";
import { RecordingStore, rejection } from "../graphs.js";
import { configError } from "../matchers.js";
import { brief, Counts, eventsOf, MortalStore, only, remembered } from "./nodes.js";

interface Words {
  readonly todo: readonly string[];
  readonly text: string;
}

const words = (...todo: string[]): State<Words> =>
  State.create<Words>({ todo, text: "" }, { runId: "r" });
const say: ChainStep<Words, string> = (state, word) => state.set("text", state.data.text + word);
const saying = (step = say, options: ChainOptions<Words> = {}) =>
  chain<Words, string>((state) => state.data.todo, step, options);

describe("a chain", () => {
  test("takes its items in order, each step on what the one before came to", async () => {
    const final = await only(saying()).execute(words("a", "b", "c"));
    expect(final.data.text).toBe("abc");
    expect(final).toMatchObject({ step: 1, checkpointNode: "work", status: "completed" });
  });

  test("of nothing gives the State it was given", async () => {
    const step = vi.fn(say);
    const final = await only(saying(step)).execute(words());
    expect(final.data).toEqual({ todo: [], text: "" });
    expect(step).not.toHaveBeenCalled();
  });

  test("of one item takes one step", async () => {
    expect((await only(saying()).execute(words("a"))).data.text).toBe("a");
  });

  test("takes an array as it is, with items of any type", async () => {
    const items = [{ by: 2n }, { by: 3n }];
    const node = chain<{ n: bigint }, { by: bigint }>(items, (state, { by }) => ({
      n: state.data.n * by,
    }));
    expect((await only(node).execute(State.create({ n: 7n }))).data.n).toBe(42n);
  });

  test("merges what a step returns that is no State", async () => {
    const node = saying(async (state, word, { index }) => ({
      text: `${state.data.text}${index}${word}`,
    }));
    expect((await only(node).execute(words("a", "b"))).data.text).toBe("0a1b");
  });

  test("of a thousand items takes a thousand steps, and saves after each", async () => {
    const items = Array.from({ length: 1000 }, (_, index) => index);
    const store = new MortalStore(new MemoryStore());
    const node = chain<{ sum: number }, number>(items, (state, item) => ({
      sum: state.data.sum + item,
    }));
    const graph = only(node, { checkpoint: { store, interval: 1 } });
    expect((await graph.execute(State.create({ sum: 0 }))).data.sum).toBe(499_500);
    // One before the node, one after each step, one after the node.
    expect(store.saves).toBe(1002);
  });

  test("tells its progress after each step", async () => {
    const told: string[] = [];
    const onProgress = (completed: number, total: number, state: State<Words>) =>
      told.push(`${completed}/${total} ${state.data.text}`);
    await only(saying(say, { onProgress })).execute(words("a", "b"));
    expect(told).toEqual(["1/2 a", "2/2 ab"]);
  });

  test("is not disturbed by what listens to its progress", async () => {
    const printed = vi.spyOn(console, "error").mockImplementation(() => {});
    const onProgress = () => {
      throw new Error("broken bar");
    };
    const final = await only(saying(say, { onProgress })).execute(words("a", "b"));
    expect(final.data.text).toBe("ab");
    expect(printed).toHaveBeenCalledOnce();
    printed.mockRestore();
  });

  test("gives the States between its steps to whoever wants them", async () => {
    const node = saying(say, {
      intermediate: (last, states) => ({
        text: `${last.data.text}: ${states.map(({ data }) => data.text).join(",")}`,
      }),
    });
    expect((await only(node).execute(words("a", "b"))).data.text).toBe("ab: ,a,ab");
    expect((await only(node).execute(words())).data.text).toBe(": ");
  });

  test("refuses what it can't work with", async () => {
    expect(() => chain([], "say" as never)).toThrow(configError("step", "wants a function"));
    expect(() => chain([], say as never, { onProgress: 1 as never })).toThrow(
      configError("chain.onProgress"),
    );
    const failure = await rejection(
      only(chain<Words, string>("abc" as never, say)).execute(words()),
      ExecutionError,
    );
    expect(failure.cause).toEqual(configError("items", "wants an array"));
  });
});

describe("a step that fails", () => {
  const boom = new TypeError("boom");
  const failing = saying((state, word) => {
    if (word === "c") throw boom;
    return say(state, word, undefined as never);
  });

  test("is named with its item, and the State so far is kept", async () => {
    const failure = await rejection(
      only(failing).execute(words("a", "b", "c", "d")),
      ExecutionError,
    );
    expect(failure).toMatchObject({ code: "NODE_FAILED", nodeName: "work" });
    const cause = failure.cause as ChainError;
    expect(cause).toBeInstanceOf(ChainError);
    expect(cause).toMatchObject({
      code: "CHAIN_FAILED",
      message: 'step 2 ("c") failed: boom',
      index: 2,
      item: "c",
    });
    expect(cause.state.data).toEqual({ todo: ["a", "b", "c", "d"], text: "ab" });
    expect(cause.cause).toBe(boom);
  });

  test("ends the events in order", async () => {
    const graph = only(failing);
    const events = eventsOf(graph, "chain", "step");
    await graph.execute(words("a", "c", "d")).catch(() => {});
    expect(brief(events, "index", "completed", "total", "error")).toEqual([
      "chain.start  0 3",
      "step.start 0  3",
      "step.complete 0  3",
      "step.start 1  3",
      "step.complete 1  3 boom",
      'chain.complete  1 3 step 1 ("c") failed: boom',
    ]);
  });

  test("that returns what is no change has failed", async () => {
    const failure = await rejection(
      only(saying(() => 7 as never)).execute(words("a")),
      ExecutionError,
    );
    expect(failure.message).toContain('step 0 ("a") failed: data wants a plain object, got 7');
  });

  test("is tried again by the node's policy, from that step on", async () => {
    const counts = new Counts();
    const node = saying((state, word, { attempt }) => {
      counts.add(word);
      if (word === "b" && attempt < 3) throw boom;
      return say(state, word, undefined as never);
    });
    const retry = { maxAttempts: 3, initialInterval: 0 };
    const final = await only(node, {}, { retry }).execute(words("a", "b", "c"));
    expect(final.data.text).toBe("abc");
    expect(counts.all).toEqual({ a: 1, b: 3, c: 1 });
  });

  test("is not tried again when that is of no use", async () => {
    const counts = new Counts();
    const node = saying((_state, word) => {
      counts.add(word);
      throw new FatalError("no such model");
    });
    const retry = { maxAttempts: 3, initialInterval: 0 };
    await rejection(only(node, {}, { retry }).execute(words("a")), ExecutionError);
    expect(counts.of("a")).toBe(1);
  });
});

test("events of a chain that succeeds", async () => {
  const graph = only(saying());
  const events = eventsOf(graph, "chain", "step");
  await graph.execute(words("a", "b"));
  expect(brief(events, "index", "completed", "total")).toEqual([
    "chain.start  0 2",
    "step.start 0  2",
    "step.complete 0  2",
    "step.start 1  2",
    "step.complete 1  2",
    "chain.complete  2 2",
  ]);
  expect(events[0]?.data).toMatchObject({ node: "work", step: 0 });
});

describe("a chain that is stopped", () => {
  test("by a signal, between steps, goes on at the next item", async () => {
    const store = new MemoryStore();
    const controller = new AbortController();
    const counts = new Counts();
    const node = saying((state, word, context) => {
      counts.add(word);
      if (word === "b") controller.abort(new Error("enough"));
      return say(state, word, context);
    });
    const config = { checkpoint: { store, interval: 1 } };
    const { signal } = controller;
    const failure = await rejection(
      only(node, config).execute(words("a", "b", "c"), { signal }),
      ExecutionError,
    );
    expect(failure.code).toBe("ABORTED");
    expect((await store.load("r")).status).toBe("in_progress");
    expect((await only(node, config).resume("r")).data.text).toBe("abc");
    expect(counts.all).toEqual({ a: 1, b: 1, c: 1 });
  });

  test("by a signal that its step passes on is not a failure of that step", async () => {
    const controller = new AbortController();
    const node = saying((_state, _word, { signal }) => {
      controller.abort();
      signal.throwIfAborted();
      throw new Error("never");
    });
    const failure = await rejection(
      only(node).execute(words("a"), { signal: controller.signal }),
      ExecutionError,
    );
    expect(failure.code).toBe("ABORTED");
    expect(failure.cause).toBe(controller.signal.reason);
  });

  test("by a drain lets the step finish, and goes on at the next item", async () => {
    const store = new MemoryStore();
    const counts = new Counts();
    const node = saying((state, word, context) => {
      counts.add(word);
      if (word === "b") void graph.drain();
      return say(state, word, context);
    });
    const config = { checkpoint: { store, interval: 1 } };
    const graph = only(node, config);
    const failure = await rejection(graph.execute(words("a", "b", "c")), ExecutionError);
    expect(failure).toMatchObject({ code: "ABORTED", cause: "the graph drains" });
    expect((await graph.resume("r")).data.text).toBe("abc");
    expect(counts.all).toEqual({ a: 1, b: 1, c: 1 });
  });
});

describe("a chain that dies", () => {
  test.each([1, 2, 3, 4, 5, 6])("after %i saves goes on behind what was saved", async (lives) => {
    const store = new MemoryStore();
    const counts = new Counts();
    const node = () =>
      saying((state, word, context) => {
        counts.add(word);
        return say(state, word, context);
      });
    const mortal = new MortalStore(store, lives);
    const config = { checkpoint: { store: mortal, interval: 1 } };
    await rejection(only(node(), config).execute(words("a", "b", "c", "d", "e")), Error).catch(
      () => {},
    );
    const link = (await remembered(store, "r")).chain as { completed: number } | undefined;
    const saved = link?.completed ?? 0;
    expect(saved).toBe(lives - 1);
    const final = await only(node(), { checkpoint: { store, interval: 1 } }).resume("r");
    expect(final.data.text).toBe("abcde");
    const expected = ["a", "b", "c", "d", "e"].map((_word, index) => (index === saved ? 2 : 1));
    expect(Object.values(counts.all)).toEqual(expected);
  });

  test("gives all intermediate States and the whole progress after a resume", async () => {
    const store = new MemoryStore();
    const told: string[] = [];
    const node = saying(say, {
      onProgress: (completed, total) => told.push(`${completed}/${total}`),
      intermediate: (_last, states) => ({ text: states.map(({ data }) => data.text).join(",") }),
    });
    const dying = { checkpoint: { store: new MortalStore(store, 3), interval: 1 } };
    await rejection(only(node, dying).execute(words("a", "b", "c")), Error).catch(() => {});
    const final = await only(node, { checkpoint: { store, interval: 1 } }).resume("r");
    expect(final.data.text).toBe(",a,ab,abc");
    expect(told).toEqual(["1/3", "2/3", "3/3"]);
  });

  test("keeps what a step does once, for that step only, until the step is done", async () => {
    const store = new RecordingStore();
    const charged = new Counts();
    let online = false;
    const node = chain<Words, string>(["a", "b"], async (state, word, context) => {
      const receipt = await context.once("charge", () => {
        charged.add(word);
        return `<${word}>`;
      });
      if (word === "b" && !online) throw new Error("offline");
      return state.set("text", state.data.text + receipt);
    });
    const config = { checkpoint: { store, interval: 1 } };
    await rejection(only(node, config).execute(words()), ExecutionError);
    expect(Object.keys(await remembered(store, "r"))).toEqual(["chain", "[1] charge"]);
    online = true;
    expect((await only(node, config).resume("r")).data.text).toBe("<a><b>");
    expect(charged.all).toEqual({ a: 1, b: 1 });
  });

  test("has an idempotency key for each item, the same after a resume", async () => {
    const store = new MemoryStore();
    const keys: string[] = [];
    let online = false;
    const node = chain<Words, string>(["a", "b"], (state, _word, context) => {
      keys.push(context.idempotencyKey);
      if (context.index === 1 && !online) throw new Error("offline");
      return state;
    });
    const config = { checkpoint: { store, interval: 1 } };
    await rejection(only(node, config).execute(words()), ExecutionError);
    online = true;
    await only(node, config).resume("r");
    expect(keys).toEqual(["r:0:work[0]", "r:0:work[1]", "r:0:work[1]"]);
  });
});

test("a step that pauses is asked again with its answer, and those before it are not", async () => {
  const store = new MemoryStore();
  const counts = new Counts();
  const node = chain<Words, string>(["a", "b"], async (state, word, context) => {
    counts.add(word);
    const answer = word === "b" ? await context.pause("ok", { reason: "look", ask: "ok?" }) : word;
    return state.set("text", `${state.data.text}${answer}`);
  });
  const graph = only(node, { checkpoint: { store, interval: 1 } });
  const paused = await graph.execute(words());
  expect(paused).toMatchObject({ status: "paused", pauses: [{ name: "ok", ask: "ok?" }] });
  expect((await graph.resume("r", { input: "!" })).data.text).toBe("a!");
  expect(counts.all).toEqual({ a: 1, b: 2 });
});

test("a step can neither set a milestone of the node nor end it with a pause", async () => {
  const milestone = saying((state, _word, context) => context.checkpoint(state, "here"));
  const one = await rejection(only(milestone).execute(words("a")), ExecutionError);
  expect(one.message).toContain("checkpoint is not for one item of a list: use once or remember");
  const pausing = saying((state) => pause(state, { reason: "look" }) as never);
  const other = await rejection(only(pausing).execute(words("a")), ExecutionError);
  expect(other.message).toContain("data wants a plain object, got a Pause");
});

test("what a step returns is refused before it counts when no checkpoint can hold it", async () => {
  const node = chain<{ f: unknown }, string>(["a"], () => ({ f: { g: () => 1 } }));
  const config = { checkpoint: { store: new MemoryStore(), interval: 1 } };
  const failure = await rejection(
    only(node, config).execute(State.create({ f: 0 })),
    ExecutionError,
  );
  expect(failure.cause).toMatchObject({ code: "SERIALIZATION", path: "chain.data.f.g" });
});
