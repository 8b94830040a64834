import { describe, expect, test } from "vitest";
import { type NodeOptions, State } from "waymark";
import { start, type Trail } from "../graphs.js";
import { configError, schemaError } from "../matchers.js";
import { graphOf, names } from "./asking.js";
import { amount, decision } from "./schemas.js";

describe("several pauses at once", () => {
  /** Asks for three things at the same time; `note` needs no answer. */
  const three = (options: NodeOptions<Trail> = {}) =>
    graphOf(async (context) => {
      await context.once("first", () => 1);
      return Promise.all([
        context.pause("legal", { reason: "contract", ask: "Signed?" }),
        context.pause("money", { reason: "budget", ask: { eur: 5 } }),
        context.pause("note", { reason: "for the record" }),
      ]);
    }, options);

  test("are all reported by name, in their order", async () => {
    const { graph } = three();
    const paused = await graph.execute(start("r"));
    expect(names(paused)).toEqual(["legal", "money", "note"]);
    const told: string[] = [];
    graph.on("graph.pause", ({ data }) => told.push(data.reason));
    await graph.execute(start("s"));
    expect(told).toEqual(["contract, budget, for the record"]);
  });

  test("are answered together by an object", async () => {
    const { graph, ran } = three();
    await graph.execute(start("r"));
    const final = await graph.resume("r", { input: { legal: true, money: 4, note: "n" } });
    expect([final.data.trail, ran.times]).toEqual([['[true,4,"n"]'], 2]);
  });

  test("are answered one by one; each answer is kept, and only the last is still open", async () => {
    const { graph, ran } = three();
    await graph.execute(start("r"));
    const half = await graph.resume("r", { input: { money: 4 } });
    expect(half).toMatchObject({ status: "paused" });
    expect(names(half)).toEqual(["legal"]);
    const final = await graph.resume("r", { input: true });
    expect([final.data.trail, ran.times]).toEqual([["[true,4,null]"], 3]);
  });

  test("without input report what they ask, and leave the run unchanged", async () => {
    const { graph, store } = three();
    await graph.execute(start("r"));
    for (const input of [undefined, {}]) {
      const error = await graph.resume("r", { input }).catch((thrown: unknown) => thrown);
      expect(String(error)).toBe(
        'ConfigError: input is missing: the run is paused for "legal": contract ("Signed?"); ' +
          '"money": budget (see state.pauses). Call resume(runId, { input }) with a value for each name',
      );
    }
    expect(names(await store.load<Trail>("r"))).toHaveLength(3);
  });

  test("refuse an unknown name, and input that is not an object", async () => {
    const { graph } = three();
    await graph.execute(start("r"));
    const refused = (input: unknown) => expect(graph.resume("r", { input })).rejects;
    await refused({ legal: true, monye: 1 }).toEqual(
      configError("input.monye", /answers nothing: the run waits for "legal", "money", "note"/),
    );
    await refused({ __proto__: null, constructor: 1 }).toEqual(configError("input.constructor"));
    await refused(true).toEqual(configError("input", /an object with a value for one or more of/));
    await refused(["x"]).toEqual(configError("input", /got an array/));
  });

  test("may need no answer", async () => {
    const { graph } = graphOf((context) =>
      Promise.all(["a", "b"].map((name) => context.pause(name, { reason: name }))),
    );
    await graph.execute(start("r"));
    expect((await graph.resume("r")).data.trail).toEqual(["[null,null]"]);
  });

  test("are checked by one schema each, or by one for all", async () => {
    const each = three({ input: { legal: decision, money: amount } });
    await each.graph.execute(start("r"));
    await expect(each.graph.resume("r", { input: { money: "4" } })).rejects.toEqual(
      schemaError("input.money", "wants a number"),
    );
    const input = { legal: { yes: "true" }, money: 4, note: "anything" };
    const final = await each.graph.resume("r", { input });
    expect(final.data.trail).toEqual(['[{"yes":true},4,"anything"]']);
    const all = graphOf(
      (context) =>
        Promise.all(
          ["a", "constructor"].map((name) => context.pause(name, { reason: name, ask: 1 })),
        ),
      { input: amount },
    );
    await all.graph.execute(start("r"));
    const bad = all.graph.resume("r", { input: { a: 1, constructor: "2" } });
    await expect(bad).rejects.toEqual(schemaError("input.constructor", "wants a number"));
    const good = await all.graph.resume("r", { input: { a: 1, constructor: 2 } });
    expect(good.data.trail).toEqual(["[1,2]"]);
  });

  test("are not checked if no schema has their name", async () => {
    const { graph } = graphOf(
      (context) => context.pause("constructor", { reason: "odd name", ask: 1 }),
      { input: { other: amount } },
    );
    await graph.execute(start("r"));
    expect((await graph.resume("r", { input: "x" })).data.trail).toEqual(['"x"']);
  });

  test("with the same name are one, with one answer", async () => {
    const { graph } = graphOf((context) =>
      Promise.all([1, 2].map(() => context.pause("same", { reason: "same", ask: "?" }))),
    );
    expect(names(await graph.execute(start("r")))).toEqual(["same"]);
    expect((await graph.resume("r", { input: 7 })).data.trail).toEqual(["[7,7]"]);
  });

  test("may have any name, even that of a prototype's property", async () => {
    const odd = ["__proto__", "toString", "first"];
    const { graph } = graphOf((context) =>
      Promise.all(odd.map((name) => context.pause(name, { reason: "odd", ask: 1 }))),
    );
    expect(names(await graph.execute(start("r")))).toEqual(odd);
    const input = JSON.parse('{"__proto__":1,"toString":2,"first":3}') as unknown;
    expect((await graph.resume("r", { input })).data.trail).toEqual(["[1,2,3]"]);
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
  });

  test("survive being written to a file and read back", async () => {
    const { graph, store } = three();
    await graph.execute(start("r"));
    const saved = await store.load<Trail>("r");
    const again = State.fromJSON<Trail>(JSON.stringify(saved));
    expect(again.toJSON()).toEqual(saved.toJSON());
    expect(again.pauses).toEqual(saved.pauses);
  });
});
