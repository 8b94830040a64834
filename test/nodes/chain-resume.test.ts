import { describe, expect, test } from "vitest";
import { chain, ExecutionError, MemoryStore, pause, State } from "waymark";
import { RecordingStore, rejection } from "../graphs.js";
import { Counts, MortalStore, only, remembered } from "./nodes.js";
import { say, saying, type Words, words } from "./words.js";

describe("a stopped chain", () => {
  test("by a signal between steps continues at the next item", async () => {
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

  test("by a signal that its step rethrows is no failure of that step", async () => {
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

  test("by a drain lets the step finish, and continues at the next item", async () => {
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

describe("a crashed chain", () => {
  test.each([1, 2, 3, 4, 5, 6])("after %i saves continues after the last save", async (lives) => {
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
    const { chain: completed = 0 } = await remembered(store, "r");
    const saved = Number(completed);
    expect(saved).toBe(lives - 1);
    const final = await only(node(), { checkpoint: { store, interval: 1 } }).resume("r");
    expect(final.data.text).toBe("abcde");
    const expected = ["a", "b", "c", "d", "e"].map((_word, index) => (index === saved ? 2 : 1));
    expect(Object.values(counts.all)).toEqual(expected);
  });

  test("returns all intermediate States and the full progress after a resume", async () => {
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

  test("keeps results of once for its step only, until the step completes", async () => {
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
    expect(Object.keys(await remembered(store, "r"))).toEqual([
      "chain 1",
      "chain",
      "data: chain",
      "[1] charge",
    ]);
    online = true;
    expect((await only(node, config).resume("r")).data.text).toBe("<a><b>");
    expect(charged.all).toEqual({ a: 1, b: 1 });
  });

  test("keeps an idempotency key per item across a resume", async () => {
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

test("a step that pauses runs again with its answer, and the previous steps do not", async () => {
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

test("a step can neither set a milestone nor return a pause", async () => {
  const milestone = saying((state, _word, context) => context.checkpoint(state, "here"));
  const one = await rejection(only(milestone).execute(words("a")), ExecutionError);
  expect(one.message).toContain("checkpoint is not for one item of a list: use once or remember");
  const pausing = saying((state) => pause(state, { reason: "look" }) as never);
  const other = await rejection(only(pausing).execute(words("a")), ExecutionError);
  expect(other.message).toContain("data must be a plain object; got a Pause");
});

test("a step's result that no checkpoint can hold is refused before the step completes", async () => {
  const node = chain<{ f: unknown }, string>(["a"], () => ({ f: { g: () => 1 } }));
  const config = { checkpoint: { store: new MemoryStore(), interval: 1 } };
  const failure = await rejection(
    only(node, config).execute(State.create({ f: 0 })),
    ExecutionError,
  );
  expect(failure.cause).toMatchObject({ code: "SERIALIZATION", path: "data: chain.f.g" });
});
