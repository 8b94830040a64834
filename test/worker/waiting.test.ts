import { describe, expect, test } from "vitest";
import { type CheckpointStore, PauseTimeoutError, pause, StateGraph } from "waymark";
import { Client } from "waymark/worker";
import { type Count, gate, single, usePlace } from "./place.js";
import { until } from "./world.js";

const place = usePlace();

describe("a run that pauses", () => {
  const approval = (name: string) =>
    new StateGraph<{ text: string; approved: boolean }>({ name })
      .addNode("write", (state) =>
        pause(state.set("text", "Cairns"), { reason: "review", ask: "Ok?" }),
      )
      .addNode("publish", (state) => state)
      .addEdge("write", "publish")
      .setEntryPoint("write")
      .setExitPoint("publish");

  test("frees its worker, and is queued again by its input", async () => {
    const graph = approval("approval");
    const other = single((state) => ({ n: state.data.n + 1 }));
    const worker = await place.work({ graphs: [graph, other], concurrency: 1 });
    const run = await place.client.submit("approval", { text: "", approved: false });
    await until("it is paused", async () => (await run.status()).state === "paused");
    expect(await run.status()).toMatchObject({ node: "write", step: 1, pauses: [{ ask: "Ok?" }] });
    expect((await worker.metrics()).running).toBe(0);
    // Its worker has a place free for another.
    const next = await place.client.submit("approval", { text: "", approved: false });
    await until("the next is paused", async () => (await next.status()).state === "paused");
    await run.resume({ approved: true });
    expect((await run.result()).data).toEqual({ text: "Cairns", approved: true });
  });

  test("continues even if the input comes before the worker has released it", async () => {
    const graph = approval("approval at once");
    await place.work({ graphs: [graph] });
    const run = await place.client.submit("approval at once", { text: "", approved: false });
    await until("it is saved", async () => {
      const state = await place.store.load(run.runId).catch(() => undefined);
      return state?.status === "paused";
    });
    await run.resume({ approved: true });
    expect((await run.result()).data.approved).toBe(true);
  });

  test("keeps waiting if its input is refused, with the reason", async () => {
    const graph = approval("approval refused");
    await place.work({ graphs: [graph] });
    const run = await place.client.submit("approval refused", { text: "", approved: false });
    await until("it is paused", async () => (await run.status()).state === "paused");
    await run.resume("yes");
    await until("it is refused", async () => (await run.status()).refused !== undefined);
    expect((await run.status()).refused).toContain("input must be an object");
    await until("it is paused again", async () => (await run.status()).state === "paused");
    await run.resume({ approved: true });
    const final = await run.result();
    expect(final.data.approved).toBe(true);
    expect((await run.status()).refused).toBeUndefined();
  });

  test("is answered by its pauses' names", async () => {
    const graph = new StateGraph<{ all: unknown }>({ name: "names" })
      .addNode("ask", async (_state, ctx) => {
        const asks = ["one", "two"].map((name) => ctx.pause(name, { reason: name, ask: name }));
        const all = await Promise.all(asks.map((ask) => ask.catch((error: unknown) => error)));
        return { all };
      })
      .setEntryPoint("ask")
      .setExitPoint("ask");
    await place.work({ graphs: [graph] });
    const run = await place.client.submit("names", { all: 0 as unknown });
    await until("it is paused", async () => (await run.status()).state === "paused");
    await run.answer("three", 3);
    await run.answer("one", 1);
    await until("it waits for the other", async () => {
      const { state, pauses } = await run.status();
      return state === "paused" && pauses.length === 1;
    });
    await run.answer("two", new Date(2));
    expect((await run.result()).data.all).toEqual([1, new Date(2)]);
  });

  test("wakes at the deadline of its pause, without occupying a worker", async () => {
    const graph = new StateGraph<{ by: string }>({ name: "deadline" })
      .addNode("ask", async (_state, ctx) => {
        // Long enough to be looked at on a busy machine.
        const answer = ctx.pause("approval", { reason: "approval", ask: "Yes?", timeout: 3000 });
        const by = await answer.catch((error: unknown) => {
          if (error instanceof PauseTimeoutError) return "nobody";
          throw error;
        });
        return { by: String(by) };
      })
      .addNode("after", (state) =>
        pause(state, { reason: "sign", into: "by", timeout: 300, onTimeout: { by: "a timeout" } }),
      )
      .addEdge("ask", "after")
      .setEntryPoint("ask")
      .setExitPoint("after");
    const worker = await place.work({ graphs: [graph] });
    const run = await place.client.submit("deadline", { by: "" });
    await until("it waits", async () => (await run.status()).state === "paused");
    const { running, queues } = await worker.metrics();
    expect({ running, ...queues.deadline }).toMatchObject({ running: 0, active: 0, delayed: 1 });
    const final = await run.result();
    expect(final.data.by).toBe("a timeout");
    expect(final.steps.map(({ node }) => node)).toEqual(["ask", "after"]);
  });

  test("fails permanently if not answered in time and without onTimeout", async () => {
    const graph = new StateGraph<{ by: string }>({ name: "too late" })
      .addNode("ask", (state) => pause(state, { reason: "sign", into: "by", timeout: 100 }))
      .setEntryPoint("ask")
      .setExitPoint("ask");
    await place.work({ graphs: [graph] });
    const run = await place.client.submit("too late", { by: "" });
    await expect(run.result()).rejects.toMatchObject({ code: "PAUSE_TIMEOUT" });
  });

  test("has an answer given before the pause", async () => {
    const graph = new StateGraph<{ all: unknown[] }>({ name: "early" })
      .addNode("ask", async (_state, ctx) => {
        const one = await ctx.pause("one", { reason: "one", ask: "One?" });
        const two = await ctx.pause("two", { reason: "two", ask: "Two?" });
        return { all: [one, two] };
      })
      .setEntryPoint("ask")
      .setExitPoint("ask");
    await place.work({ graphs: [graph] });
    const run = await place.client.submit("early", { all: [] as unknown[] });
    await until("it is paused", async () => (await run.status()).state === "paused");
    await run.answer("two", 2);
    await run.answer("one", 1);
    expect((await run.result()).data.all).toEqual([1, 2]);
  });

  test("has all answers given at once", async () => {
    const graph = new StateGraph<{ all: unknown[] }>({ name: "at once" })
      .addNode("ask", async (_state, ctx) => {
        const asks = ["one", "two", "three"].map((name) =>
          ctx.pause(name, { reason: name, ask: name }),
        );
        return { all: await Promise.all(asks) };
      })
      .setEntryPoint("ask")
      .setExitPoint("ask");
    await place.work({ graphs: [graph] });
    for (let round = 0; round < 5; round++) {
      const run = await place.client.submit("at once", { all: [] as unknown[] });
      await until("it is paused", async () => (await run.status()).state === "paused");
      await Promise.all(["one", "two", "three"].map((name, index) => run.answer(name, index)));
      expect((await run.result()).data.all).toEqual([0, 1, 2]);
    }
  });

  test("wakes by an answer given just as it starts to wait", async () => {
    const finish = gate();
    const inside = gate();
    const graph = new StateGraph<{ answer: unknown }>({ name: "just then" })
      .addNode("ask", async (_state, ctx) => {
        inside.open();
        await finish.opened;
        return { answer: await ctx.pause("one", { reason: "one", ask: "One?" }) };
      })
      .setEntryPoint("ask")
      .setExitPoint("ask");
    await place.work({ graphs: [graph] });
    const run = await place.client.submit("just then", { answer: undefined as unknown });
    await inside.opened;
    const { store } = place;
    let loads = 0;
    const late: CheckpointStore = {
      save: (state, options) => store.save(state, options),
      load: async <D extends object>(...given: Parameters<CheckpointStore["load"]>) => {
        const stands = store.load<D>(...given);
        if (loads++ > 0) return stands;
        await stands;
        finish.open();
        await until("it is paused", async () => (await run.status()).state === "paused");
        return stands;
      },
      delete: store.delete.bind(store),
      list: store.list.bind(store),
      claim: store.claim.bind(store),
    };
    const client = new Client({ connection: place.connection, store: late });
    await (await client.run("just then", run.runId)).answer("one", 1);
    await client.close();
    expect((await run.result()).data.answer).toBe(1);
  });

  test("stays paused if it wakes without input", async () => {
    const graph = approval("approval woken");
    await place.work({ graphs: [graph] });
    const run = await place.client.submit("approval woken", { text: "", approved: false });
    await until("it is paused", async () => (await run.status()).state === "paused");
    const before = await place.starts(run.runId);
    await run.resume();
    await until("a worker has looked at it", async () => (await place.starts(run.runId)) > before);
    await until("it is paused again", async () => (await run.status()).state === "paused");
    expect((await run.status()).refused).toBeUndefined();
    await run.cancel();
  });
});

describe("a waiting run", () => {
  test("sleeps in the queue, and occupies no worker", async () => {
    const graph = single(async (_state, ctx) => {
      // Long enough to be looked at on a busy machine.
      await ctx.sleep("nap", 3000);
      return { n: 1 };
    });
    const worker = await place.work({ graphs: [graph], longestWait: 100 });
    const run = await place.client.submit(graph.name, { n: 0 });
    await until("it sleeps", async () => (await run.status()).state === "delayed");
    expect((await worker.metrics()).running).toBe(0);
    expect((await worker.metrics()).queues[graph.name]).toEqual({
      waiting: 0,
      active: 0,
      delayed: 1,
      failed: 0,
    });
    expect((await run.result()).data.n).toBe(1);
  });

  test("waits in the queue for the next attempt of its node", async () => {
    const attempts: number[] = [];
    const graph = new StateGraph<Count>({ name: "far retry" })
      .addNode(
        "call",
        (_state, ctx) => {
          attempts.push(ctx.attempt);
          if (ctx.attempt < 3) throw new Error("busy");
          return { n: ctx.attempt };
        },
        { retry: { maxAttempts: 3, initialInterval: 300, backoff: 1 } },
      )
      .setEntryPoint("call")
      .setExitPoint("call");
    await place.work({ graphs: [graph], longestWait: 100 });
    const run = await place.client.submit("far retry", { n: 0 });
    expect((await run.result()).data.n).toBe(3);
    expect(attempts).toEqual([1, 2, 3]);
  });
});
