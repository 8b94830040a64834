import * as v from "valibot";
import { describe, expectTypeOf, test } from "vitest";
import { pause, State, StateGraph } from "waymark";
import { z } from "zod";

interface Desk {
  answer: string;
  score: number;
  kind: "a" | "b";
}

const state = State.create<Desk>({ answer: "", score: 0, kind: "a" });

describe("ctx.pause", () => {
  test("is typed by the output of its schema", () => {
    new StateGraph<Desk>()
      .addNode("zod", async (_state, ctx) => {
        const schema = z.object({ score: z.string().transform(Number) });
        const answer = await ctx.pause("score", { reason: "score", schema });
        expectTypeOf(answer).toEqualTypeOf<{ score: number }>();
        return answer;
      })
      .addNode("valibot", async (_state, ctx) => {
        const schema = v.picklist(["a", "b"]);
        return { kind: await ctx.pause("kind", { reason: "kind", schema, timeout: 1000 }) };
      });
  });

  test("without one is unknown", () => {
    new StateGraph<Desk>().addNode("ask", async (_state, ctx) => {
      const answer = await ctx.pause("answer", { reason: "x", ask: "?" });
      expectTypeOf(answer).toBeUnknown();
      // @ts-expect-error an unknown answer is no text
      const text: string = answer;
      return { answer: text };
    });
  });

  test("of the wrong type does not compile", () => {
    // @ts-expect-error a number where the data has a text
    new StateGraph<Desk>().addNode("ask", async (_state, ctx) => ({
      answer: await ctx.pause("answer", { reason: "x", schema: z.number() }),
    }));
    new StateGraph<Desk>().addNode("ask", async (_state, ctx) => {
      // @ts-expect-error the option is timeout
      await ctx.pause("answer", { reason: "x", timeuot: 5 });
      return {};
    });
  });
});

describe("pause", () => {
  test("knows the keys of the data", () => {
    pause(state, { reason: "x", into: "answer", timeout: 5, onTimeout: { score: 1 } });
    // @ts-expect-error no such key
    pause(state, { reason: "x", into: "anwser" });
    // @ts-expect-error no such key
    pause(state, { reason: "x", timeout: 5, onTimeout: { scroe: 1 } });
    // @ts-expect-error a value of another type
    pause(state, { reason: "x", timeout: 5, onTimeout: { score: "high" } });
  });
});
