import { type } from "arktype";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import {
  ConfigError,
  ExecutionError,
  MemoryStore,
  type NodeFunction,
  PauseTimeoutError,
  pause,
  SchemaError,
  State,
  StateGraph,
  subgraph,
} from "waymark";
import { type FakeClock, useFakeClock } from "waymark/testing";
import { z } from "zod";
import { rejection } from "../graphs.js";

interface Desk {
  answer: string;
  late: boolean;
}

let clock: FakeClock;
let store: MemoryStore;
beforeEach(() => {
  clock = useFakeClock(Date.parse("2030-01-01T00:00:00.000Z"));
  store = new MemoryStore({ keep: Number.POSITIVE_INFINITY });
});
afterEach(() => clock.restore());

function graphOf(ask: NodeFunction<Desk>, onError?: (error: unknown) => Partial<Desk>) {
  return new StateGraph<Desk, string>({ checkpoint: { store, interval: 1, preserve: true } })
    .addNode("ask", ask, {
      retry: { maxAttempts: 3 },
      ...(onError && { errorHandler: (error) => onError(error) }),
    })
    .addNode("end", (state) => state)
    .addEdge("ask", "end")
    .setEntryPoint("ask")
    .setExitPoint("end");
}

const first = () => State.create<Desk>({ answer: "", late: false }, { runId: "r" });

const asking: NodeFunction<Desk> = async (_state, context) => {
  const answer = await context.pause("approval", { reason: "review", ask: "Yes?", timeout: 1000 });
  return { answer: String(answer) };
};

describe("ctx.pause with a timeout", () => {
  test("reports its deadline", async () => {
    const paused = await graphOf(asking).execute(first());
    expect(paused.pauses).toEqual([
      { name: "approval", reason: "review", ask: "Yes?", deadline: "2030-01-01T00:00:01.000Z" },
    ]);
  });

  test("accepts an answer before its deadline", async () => {
    const graph = graphOf(asking);
    await graph.execute(first());
    await clock.advance(999);
    expect((await graph.resume("r", { input: "yes" })).data.answer).toBe("yes");
  });

  test("requires input until its deadline", async () => {
    const graph = graphOf(asking);
    await graph.execute(first());
    const error = await rejection(graph.resume("r"), ConfigError);
    expect(error.message).toContain("is missing: the run is paused for review");
    expect((await store.load("r")).status).toBe("paused");
  });

  test("throws in the node on the first resume after its deadline, without retries", async () => {
    let attempts = 0;
    const graph = graphOf((state, context) => {
      attempts++;
      return asking(state, context);
    });
    await graph.execute(first());
    await clock.advance(1000);
    const error = await rejection(graph.resume("r"), ExecutionError);
    expect(error.cause).toBeInstanceOf(PauseTimeoutError);
    expect(error.cause).toMatchObject({ pause: "approval", deadline: "2030-01-01T00:00:01.000Z" });
    expect(attempts).toBe(2);
    expect((await store.load("r")).status).toBe("failed");
  });

  test("can be caught by the node", async () => {
    const graph = graphOf(async (_state, context) => {
      try {
        await context.pause("approval", { reason: "review", timeout: 1000 });
      } catch (error) {
        if (error instanceof PauseTimeoutError) return { late: true };
        throw error;
      }
      return { late: false };
    });
    await graph.execute(first());
    await clock.advance(5000);
    expect((await graph.resume("r")).data.late).toBe(true);
  });

  test("refuses a late answer, and the run stays paused", async () => {
    const graph = graphOf(asking);
    await graph.execute(first());
    await clock.advance(1000);
    await rejection(graph.resume("r", { input: "yes" }), PauseTimeoutError);
    await rejection(graph.answer("r", "approval", "yes"), PauseTimeoutError);
    expect((await store.load("r")).status).toBe("paused");
  });

  test("accepts an answer given in time, whenever the run is resumed", async () => {
    const graph = graphOf(asking);
    await graph.execute(first());
    await graph.answer("r", "approval", "yes");
    await clock.advance(5000);
    expect((await graph.resume("r")).data.answer).toBe("yes");
  });

  test("keeps the first deadline through failures and restarts", async () => {
    let fails = true;
    const graph = graphOf(async (_state, context) => {
      const asked = context.pause("approval", { reason: "review", timeout: 1000 });
      if (!fails) return { answer: String(await asked) };
      await asked.catch(() => {});
      throw new Error("unreachable");
    });
    const paused = await graph.execute(first());
    const deadline = paused.pauses[0]?.deadline;
    fails = false;
    await clock.advance(400);
    // A process that died in the middle: the run is in progress, and the node runs again.
    const { checkpointId } = (await graph.history("r")).find(({ reason }) => reason === "once") ?? {
      checkpointId: "",
    };
    const again = await graph.resume({ checkpointId });
    expect(again.pauses[0]?.deadline).toBe(deadline);
  });

  test("inside a subgraph is caught by the inner node", async () => {
    const inner = graphOf(async (_state, context) => {
      const answer = await context
        .pause("approval", { reason: "review", schema: z.string(), timeout: 1000 })
        .catch((error: unknown) => {
          if (error instanceof PauseTimeoutError) return "nobody";
          throw error;
        });
      return { answer };
    });
    const outer = graphOf(
      subgraph(inner, { in: ({ data }) => data, out: (_state, { data }) => data }),
    );
    const paused = await outer.execute(first());
    expect(paused.pauses).toMatchObject([
      { name: "approval", deadline: "2030-01-01T00:00:01.000Z", schema: { type: "string" } },
    ]);
    await rejection(outer.resume("r", { input: 5 }), SchemaError);
    expect((await store.load("r")).pauses[0]?.refused).toContain("does not fit its schema");
    await clock.advance(1000);
    expect((await outer.resume("r")).data.answer).toBe("nobody");
  });
});

describe("return pause with a timeout", () => {
  const waits = (onTimeout?: Partial<Desk>): NodeFunction<Desk> => {
    const limit = onTimeout === undefined ? {} : { onTimeout };
    return (state) =>
      pause(state, { reason: "review", ask: "Yes?", into: "answer", timeout: 1000, ...limit });
  };

  test("merges onTimeout after its deadline and continues", async () => {
    const graph = graphOf(waits({ late: true }));
    await graph.execute(first());
    await rejection(graph.resume("r"), ConfigError);
    await clock.advance(1000);
    const final = await graph.resume("r");
    expect(final.status).toBe("completed");
    expect(final.data).toEqual({ answer: "", late: true });
  });

  test("without onTimeout throws, and the run stays paused", async () => {
    const graph = graphOf(waits());
    await graph.execute(first());
    await clock.advance(1000);
    const { sequence } = await store.load("r");
    const error = await rejection(graph.resume("r"), PauseTimeoutError);
    expect(error.message).toMatch(/^the pause was not answered by /);
    await rejection(graph.resume("r", { input: "yes" }), PauseTimeoutError);
    expect(await store.load("r")).toMatchObject({ status: "paused", sequence });
  });

  test("accepts an answer before it, or one given earlier", async () => {
    const graph = graphOf(waits({ late: true }));
    await graph.execute(first());
    expect((await graph.resume("r", { input: "yes" })).data).toEqual({
      answer: "yes",
      late: false,
    });
  });

  test("checks its options", () => {
    const state = first();
    expect(() => pause(state, { reason: "r", timeout: 0 })).toThrow(
      "pause.timeout must be a number of milliseconds > 0; got 0",
    );
    expect(() => pause(state, { reason: "r", onTimeout: { late: true } })).toThrow(
      "pause.onTimeout needs pause.timeout",
    );
    expect(() =>
      pause(state, { reason: "r", timeout: 1, onTimeout: 5 as unknown as Partial<Desk> }),
    ).toThrow("pause.onTimeout must be a plain object; got 5");
  });
});

describe("ctx.pause with a schema", () => {
  const verdict = z.object({ score: z.number().min(0), by: z.string().default("nobody") });
  const graded: NodeFunction<Desk> = async (_state, context) => {
    const { score, by } = await context.pause("grade", {
      reason: "grade",
      ask: "How good?",
      schema: verdict,
    });
    return { answer: `${score.toFixed(1)} by ${by}` };
  };

  test("returns the schema's output", async () => {
    const graph = graphOf(graded);
    await graph.execute(first());
    expect((await graph.resume("r", { input: { score: 2 } })).data.answer).toBe("2.0 by nobody");
  });

  test("keeps the JSON Schema for forms, if the library provides one", async () => {
    const paused = await graphOf(graded).execute(first());
    expect(paused.pauses[0]?.schema).toMatchObject({
      type: "object",
      properties: { score: { type: "number", minimum: 0 } },
    });
    const loaded = await store.load("r");
    expect(State.fromJSON(JSON.stringify(loaded.toJSON())).pauses).toEqual(paused.pauses);
    const ark = type({ ok: "boolean" });
    const other = graphOf(async (_state, context) => {
      await context.pause("x", { reason: "x", schema: ark });
      return {};
    });
    const second = await other.execute(State.create<Desk>({ answer: "", late: false }));
    expect(second.pauses[0]?.schema).toMatchObject({ required: ["ok"] });
  });

  test("refuses an invalid answer: the run is paused again with the reason", async () => {
    const graph = graphOf(graded);
    await graph.execute(first());
    const error = await rejection(graph.resume("r", { input: { score: -1 } }), SchemaError);
    expect(error.issues[0]?.path).toBe("score");
    const paused = await store.load("r");
    expect(paused.status).toBe("paused");
    expect(paused.pauses[0]).toMatchObject({ name: "grade", ask: "How good?" });
    expect(paused.pauses[0]?.refused).toBe(error.message);
    const final = await graph.resume("r", { input: { score: 1, by: "Ada" } });
    expect(final.data.answer).toBe("1.0 by Ada");
  });

  test("refuses an invalid answer given early", async () => {
    const graph = graphOf(graded);
    await graph.execute(first());
    await graph.answer("r", "grade", "good");
    const paused = await graph.resume("r");
    expect(paused.status).toBe("paused");
    expect(paused.pauses[0]?.refused).toContain("does not fit its schema");
  });
});
