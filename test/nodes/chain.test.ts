import { describe, expect, test, vi } from "vitest";
import { ChainError, chain, ExecutionError, FatalError, MemoryStore, State } from "waymark";
import { rejection } from "../graphs.js";
import { configError } from "../matchers.js";
import { brief, Counts, eventsOf, MortalStore, only } from "./nodes.js";
import { say, saying, type Words, words } from "./words.js";

describe("a chain", () => {
  test("runs its items in order, each step on the result of the previous one", async () => {
    const final = await only(saying()).execute(words("a", "b", "c"));
    expect(final.data.text).toBe("abc");
    expect(final).toMatchObject({ step: 1, checkpointNode: "work", status: "completed" });
  });

  test("of no items returns its input State", async () => {
    const step = vi.fn(say);
    const final = await only(saying(step)).execute(words());
    expect(final.data).toEqual({ todo: [], text: "" });
    expect(step).not.toHaveBeenCalled();
  });

  test("of one item takes one step", async () => {
    expect((await only(saying()).execute(words("a"))).data.text).toBe("a");
  });

  test("accepts an array of items of any type", async () => {
    const items = [{ by: 2n }, { by: 3n }];
    const node = chain<{ n: bigint }, { by: bigint }>(items, (state, { by }) => ({
      n: state.data.n * by,
    }));
    expect((await only(node).execute(State.create({ n: 7n }))).data.n).toBe(42n);
  });

  test("merges a step's result that is not a State", async () => {
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

  test("reports its progress after each step", async () => {
    const told: string[] = [];
    const onProgress = (completed: number, total: number, state: State<Words>) =>
      told.push(`${completed}/${total} ${state.data.text}`);
    await only(saying(say, { onProgress })).execute(words("a", "b"));
    expect(told).toEqual(["1/2 a", "2/2 ab"]);
  });

  test("is not affected by its progress listeners", async () => {
    const printed = vi.spyOn(console, "error").mockImplementation(() => {});
    const onProgress = () => {
      throw new Error("broken bar");
    };
    const final = await only(saying(say, { onProgress })).execute(words("a", "b"));
    expect(final.data.text).toBe("ab");
    expect(printed).toHaveBeenCalledOnce();
    printed.mockRestore();
  });

  test("passes intermediate States to intermediate", async () => {
    const node = saying(say, {
      intermediate: (last, states) => ({
        text: `${last.data.text}: ${states.map(({ data }) => data.text).join(",")}`,
      }),
    });
    expect((await only(node).execute(words("a", "b"))).data.text).toBe("ab: ,a,ab");
    expect((await only(node).execute(words())).data.text).toBe(": ");
  });

  test("refuses invalid options", async () => {
    expect(() => chain([], "say" as never)).toThrow(configError("step", "must be a function"));
    expect(() => chain([], say as never, { onProgress: 1 as never })).toThrow(
      configError("chain.onProgress"),
    );
    const failure = await rejection(
      only(chain<Words, string>("abc" as never, say)).execute(words()),
      ExecutionError,
    );
    expect(failure.cause).toEqual(configError("items", "must be an array"));
  });
});

describe("a failing step", () => {
  const boom = new TypeError("boom");
  const failing = saying((state, word) => {
    if (word === "c") throw boom;
    return say(state, word, undefined as never);
  });

  test("is named with its item, and keeps the State so far", async () => {
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

  test("fails if it returns an invalid change", async () => {
    const failure = await rejection(
      only(saying(() => 7 as never)).execute(words("a")),
      ExecutionError,
    );
    expect(failure.message).toContain('step 0 ("a") failed: data must be a plain object; got 7');
  });

  test("is retried by the node's policy, from that step on", async () => {
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

  test("is not retried if that is useless", async () => {
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

test("emits an event for each step of a chain that succeeds", async () => {
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
