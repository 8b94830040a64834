import { describe, expect, test } from "vitest";
import { ExecutionError, type NodeContext, StateGraph } from "waymark";
import { RecordingStore, rejection, start, type Trail } from "../graphs.js";
import { configError } from "../matchers.js";
import { graphOf, names } from "./asking.js";

describe("a pause inside a node", () => {
  test("stops the run before the node completes, and returns the answer after a resume", async () => {
    const { graph, store, ran } = graphOf((context) =>
      context.pause("price", { reason: "too dear?", ask: { limit: 5 } }),
    );
    const paused = await graph.execute(start("r"));
    expect(paused).toMatchObject({ status: "paused", step: 0, checkpointNode: "" });
    expect(paused.pauses).toEqual([{ name: "price", reason: "too dear?", ask: { limit: 5 } }]);
    const final = await graph.resume("r", { input: 4 });
    expect(final).toMatchObject({ status: "completed", step: 1, pauses: [], visits: { ask: 1 } });
    expect([final.data.trail, ran.times]).toEqual([["4"], 2]);
    expect(store.log).toEqual(["start:@0", "pause:@0", "input:@0", "complete:ask@1"]);
  });

  test("does not repeat what was done once before it", async () => {
    const calls: string[] = [];
    const { graph, ran } = graphOf(async (context) => {
      const quote = await context.once("quote", () => calls.push("quote"));
      const ok = await context.pause("ok", { reason: "review", ask: `Pay ${quote}?` });
      await context.once("pay", () => calls.push("pay"));
      const sent = await context.pause("sent", { reason: "parcel", ask: "Sent?" });
      await context.once("thank", () => calls.push("thank"));
      return [ok, sent];
    });
    await graph.execute(start("r"));
    expect(names(await graph.resume("r", { input: "yes" }))).toEqual(["sent"]);
    const final = await graph.resume("r", { input: "today" });
    expect(final.data.trail).toEqual(['["yes","today"]']);
    expect([calls, ran.times]).toEqual([["quote", "pay", "thank"], 3]);
  });

  test("keeps its answer through a crash, a retry and a failure", async () => {
    let failures = 3;
    const { graph, ran } = graphOf(
      async (context) => {
        const answer = await context.pause("ok", { reason: "review", ask: "?" });
        if (failures-- > 0) throw new Error("after the answer");
        return answer;
      },
      { retry: { maxAttempts: 2, initialInterval: 0 } },
    );
    await graph.execute(start("r"));
    await rejection(graph.resume("r", { input: "yes" }), ExecutionError);
    await expect(graph.resume("r", { input: "no" })).rejects.toEqual(
      configError("input", /is not paused: it is failed/),
    );
    expect((await graph.resume("r")).data.trail).toEqual(['"yes"']);
    expect(ran.times).toBe(5);
  });

  test("is a new one at each visit", async () => {
    const store = new RecordingStore();
    const graph = new StateGraph<Trail>({ checkpoint: { store, interval: 1 } })
      .addNode("ask", async (state, context) => {
        const answer = await context.pause("more", { reason: "more?", ask: true });
        return { trail: [...state.data.trail, String(answer)] };
      })
      .addNode("done", (state) => state)
      .addEdge("ask", "ask", (state) => state.data.trail.at(-1) === "yes")
      .addEdge("ask", "done")
      .setEntryPoint("ask")
      .setExitPoint("done");
    await graph.execute(start("r"));
    expect((await graph.resume("r", { input: "yes" })).status).toBe("paused");
    expect((await graph.resume("r", { input: "no" })).data.trail).toEqual(["yes", "no"]);
  });

  test("that asks nothing is answered by the resume", async () => {
    const { graph, ran } = graphOf(async (context) => {
      await context.pause("nap", { reason: "cool down" });
      return "rested";
    });
    await graph.execute(start("r"));
    expect((await graph.resume("r")).data.trail).toEqual(['"rested"']);
    expect(ran.times).toBe(2);
  });

  test("pauses even if the node catches it, wraps it, or has an errorHandler", async () => {
    const ask = (context: NodeContext<Trail>) => context.pause("ok", { reason: "review", ask: 1 });
    const bodies: ((context: NodeContext<Trail>) => Promise<unknown>)[] = [
      (context) => ask(context).catch(() => "default"),
      (context) =>
        ask(context).catch((cause: unknown) => {
          throw new Error("wrapped", { cause });
        }),
      (context) => Promise.allSettled([ask(context)]),
      (context) => Promise.race([ask(context), new Promise(() => {})]),
    ];
    for (const body of bodies) {
      const { graph, ran } = graphOf(body, {
        retry: { initialInterval: 0 },
        errorHandler: () => ({ trail: ["handled"] }),
      });
      expect((await graph.execute(start("r"))).status).toBe("paused");
      expect((await graph.resume("r", { input: 1 })).data.trail).not.toEqual(["handled"]);
      expect(ran.times).toBe(2);
    }
  });

  test("continues from the last milestone", async () => {
    const { graph } = graphOf(async (context, state) => {
      if (state.data.trail.length > 0) return [...state.data.trail, await ask(context)];
      await context.checkpoint(state.set("trail", ["half"]), "half");
      return ask(context);
    });
    const ask = (context: NodeContext<Trail>) => context.pause("ok", { reason: "review", ask: 1 });
    const paused = await graph.execute(start("r"));
    expect(paused.data.trail).toEqual(["half"]);
    expect((await graph.resume("r", { input: 2 })).data.trail).toEqual(['["half",2]']);
  });

  test("without checkpointing is a clear error, and is not retried", async () => {
    let calls = 0;
    const graph = new StateGraph<Trail>()
      .addNode(
        "ask",
        async (state, context) => {
          calls++;
          await context.pause("ok", { reason: "review" });
          return state;
        },
        { retry: { initialInterval: 0 } },
      )
      .setEntryPoint("ask")
      .setExitPoint("ask");
    const error = await rejection(graph.execute(start()), ExecutionError);
    expect(error.cause).toEqual(
      configError(
        "config.checkpoint.interval",
        /a run that pauses \(review\) could never continue/,
      ),
    );
    expect(calls).toBe(1);
  });

  test.each<[name: unknown, options: unknown, option: string]>([
    ["", { reason: "r" }, "name"],
    ["n", {}, "pause.reason"],
    ["n", { reason: "r", into: "key" }, "pause.into"],
  ])("%j with %j is refused", async (name, options, option) => {
    const { graph } = graphOf((context) => context.pause(name as string, options as never));
    const error = await rejection(graph.execute(start()), ExecutionError);
    expect(error.cause).toEqual(configError(option));
  });

  test("can be forked: the fork has the completed work and its own answer", async () => {
    let calls = 0;
    const { graph } = graphOf(async (context) => {
      const quote = await context.once("quote", () => ++calls);
      return [quote, await context.pause("ok", { reason: "review", ask: quote })];
    });
    const { checkpointId } = await graph.execute(start("r"));
    const fork = await graph.fork("r", checkpointId);
    expect((await graph.resume(fork.runId, { input: "fork" })).data.trail).toEqual(['[1,"fork"]']);
    expect((await graph.resume("r", { input: "run" })).data.trail).toEqual(['[1,"run"]']);
    await graph.rollback("r", { checkpointId });
    expect((await graph.resume("r", { input: "again" })).data.trail).toEqual(['[1,"again"]']);
    expect(calls).toBe(1);
  });
});
