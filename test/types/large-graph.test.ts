import { expect, test } from "vitest";
import { typeCheck } from "./type-check.js";

/** A graph in one chain of calls, with an edge from each node to the next. */
function chain(nodes: number, exit = `node${nodes - 1}`): string {
  const calls = Array.from({ length: nodes }, (_, at) => [
    `.addNode("node${at}", (state) => ({ count: state.data.count + 1 }))`,
    at > 0 ? `.addEdge("node${at - 1}", "node${at}", (state) => state.data.count > ${at})` : "",
  ]);
  return `
    import { State, StateGraph } from "waymark";
    const graph = new StateGraph<{ count: number }>()
      ${calls.flat().join("\n")}
      .setEntryPoint("node0")
      .setExitPoint("${exit}");
    export const final = await graph.execute(State.create({ count: 0 }));
  `;
}

test("a chained graph of 200 nodes type-checks fast", () => {
  const small = typeCheck(chain(2));
  const large = typeCheck(chain(200));
  expect(large.problems).toEqual([]);
  expect(large.seconds).toBeLessThan(20);
  // Each node costs the same few, however many there are.
  expect((large.instantiations - small.instantiations) / 198).toBeLessThan(250);
});

test("and still knows its nodes", () => {
  expect(typeCheck(chain(200, "node200")).problems).toEqual([
    expect.stringMatching(/^Argument of type '"node200"' is not assignable/),
  ]);
});

/** A State of so many keys, and the calls that touch one of them. */
function wide(keys: number): string {
  const fields = Array.from(
    { length: keys },
    (_, at) => `key${at}: { at: number; tags: string[] }`,
  );
  return `
    import { END, pause, State, StateGraph } from "waymark";
    interface Wide { ${fields.join("; ")} }
    declare const state: State<Wide>;
    export const set = state.set("key0", { at: 1, tags: [] }).merge({ key1: { at: 2, tags: ["x"] } });
    export const updated = set.update((draft) => { draft.key2.tags.push("y"); });
    export const tags: string[] = updated.get("key2").tags;
    export const graph = new StateGraph<Wide>()
      .addNode("change", async (given) => ({ key0: { at: given.data.key0.at + 1, tags: ["z"] } }))
      .addNode("ask", (given) => pause(given, { reason: "x", into: "key${keys - 1}" }))
      .addEdge("change", "ask", (given) => given.data.key1.at > 1)
      .addEdge("change", END)
      .setEntryPoint("change")
      .setExitPoint("ask");
  `;
}

test("a State of 300 keys type-checks fast", () => {
  const small = typeCheck(wide(3));
  const large = typeCheck(wide(300));
  expect(large.problems).toEqual([]);
  expect(large.seconds).toBeLessThan(20);
  expect((large.instantiations - small.instantiations) / 297).toBeLessThan(100);
});
