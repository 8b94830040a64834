import { describe, expect, test, vi } from "vitest";
import type { NodeContext, NodeFunction } from "waymark";
import { gate, linear, mark, RecordingStore, start, type Trail } from "../graphs.js";
import { configError } from "../matchers.js";

describe("a context whose node has ended", () => {
  /** Runs a → b and gives back the context of `a`. */
  async function leaked(store?: RecordingStore): Promise<NodeContext<Trail>> {
    let context: NodeContext<Trail> | undefined;
    const a: NodeFunction<Trail> = (state, given) => {
      context = given;
      return mark(state, given);
    };
    const config = store && { checkpoint: { store, interval: 1, preserve: true } };
    await linear(["a", "b"], config, { a }).execute(start("r"));
    if (context === undefined) throw new Error("there is none");
    return context;
  }

  const ended = configError(
    "context",
    /belongs to step 0, which has ended: await all you start in a node/,
  );

  test("writes nothing, whichever method is called", async () => {
    const store = new RecordingStore();
    const context = await leaked(store);
    const before = store.saved.length;
    const action = vi.fn();
    await expect(context.once("late", action)).rejects.toEqual(ended);
    await expect(context.remember("late", 1)).rejects.toEqual(ended);
    await expect(context.checkpoint(start("r"), "late")).rejects.toEqual(ended);
    await expect(context.pause("late", { reason: "late" })).rejects.toEqual(ended);
    expect(() => context.ledger.usage({ inputTokens: 1 })).toThrow(ended as Error);
    expect(action).not.toHaveBeenCalled();
    expect(store.saved).toHaveLength(before);
  });

  test.each(["completed", "failed", "paused"])(
    "is refused if it was the last of a run that has %s",
    async (how) => {
      const store = new RecordingStore();
      let context: NodeContext<Trail> | undefined;
      const a: NodeFunction<Trail> = async (state, given) => {
        context = given;
        if (how === "failed") throw new Error("boom");
        if (how === "paused") await given.pause("ok", { reason: "wait" });
        return state;
      };
      const config = { checkpoint: { store, interval: 1, preserve: true } };
      await linear(["a"], config, { a })
        .execute(start("r"))
        .catch(() => {});
      await expect(context?.once("late", () => 1)).rejects.toEqual(ended);
      expect(await store.load("r")).toMatchObject({ status: how, sequence: store.saved.length });
    },
  );

  test("a once that was not awaited does not write into the next node's work", async () => {
    const store = new RecordingStore();
    const slow = gate();
    let stray: Promise<unknown> = Promise.resolve();
    const a: NodeFunction<Trail> = (state, context) => {
      stray = context.once("stray", () => slow.opened).catch((error: unknown) => error);
      return mark(state, context);
    };
    const b: NodeFunction<Trail> = async (state, context) => {
      slow.open();
      expect(await stray).toEqual(ended);
      await context.once("own", () => 1);
      return mark(state, context);
    };
    const config = { checkpoint: { store, interval: 1, preserve: true } };
    const final = await linear(["a", "b"], config, { a, b }).execute(start("r"));
    expect(final.data.trail).toEqual(["a", "b"]);
    expect(store.log).toEqual(["start:@0", "interval:a@1", "once:a@1", "complete:b@2"]);
  });
});
