import { expect, test } from "vitest";
import { typeCheck } from "./type-check.js";

const before = `
  import { chain, dag, parallel, pause, route, State, StateGraph, subgraph } from "waymark";
  interface Article { topic: string; text?: string; score: number; tags: string[]; kind: "a" | "b" }
  declare const graph: StateGraph<Article, "draft">;
  declare const inner: StateGraph<{ n: number }, "n">;
`;

const unknown = '"\\"txet\\" is not a key of the data"';
const wrong = '`"score" must be $' + "{number}`";

/** A mistake in one line, and what the first line of its message must have in it. */
const mistakes: readonly (readonly [code: string, says: string])[] = [
  [`graph.addNode("x", () => ({ txet: "" }))`, unknown],
  [`graph.addNode("x", () => ({ score: 1, txet: "" }))`, unknown],
  [`graph.addNode("x", async () => ({ score: 1, txet: "" }))`, unknown],
  [
    `graph.addNode("x", async (s) => { if (s.step > 1) return s; return { score: 1, txet: "" }; })`,
    unknown,
  ],
  [`graph.addNode("x", (s) => (s.step > 1 ? s : { score: 1, txet: "" }))`, unknown],
  [`graph.addNode("x", () => ({ score: "1" }))`, wrong],
  [`graph.addNode("x", (s) => { return { text: s.runId, score: "1" }; })`, wrong],
  [`graph.addNode("x", async () => ({ score: "1" }))`, wrong],
  [`graph.addNode("x", async (s) => { return { text: s.runId, score: "1" }; })`, wrong],
  [`graph.addNode("x", async (_, ctx) => ({ score: await ctx.once("k", () => "1") }))`, wrong],
  [
    `graph.addNode("x", async () => ({ kind: "c" }))`,
    '"\\"kind\\" must be a" | "\\"kind\\" must be b"',
  ],
  [
    `graph.addNode("x", async () => ({ tags: [1] }))`,
    '"\\"tags\\" must be of its type in the data"',
  ],
  [
    `graph.addNode("x", async () => State.create({ other: 1 }))`,
    '"must be built on the State that is given"',
  ],
  [`graph.addNode("x", async () => {})`, "NodeResult<Article>"],
  [`graph.addNode("x", async () => 5)`, "NodeResult<Article>"],
  [`graph.addNode("x", (s) => s, { errorHandler: () => ({ score: 1, txet: "" }) })`, unknown],
  [`graph.addNode("x", (s) => s, { errorHandler: async () => ({ score: "1" }) })`, wrong],
  [`graph.addNode("x", chain(["a"], (s, text) => (s.step > 1 ? s : { text, txet: "" })))`, unknown],
  [`graph.addNode("x", chain(["a"], async () => ({ score: "1" })))`, wrong],
  [`graph.addNode("x", chain(["a"], (s) => pause(s, { reason: "r" })))`, "Change<Article>"],
  [
    `graph.addNode("x", chain(["a"], (s) => s, { intermediate: () => ({ score: 1, txet: "" }) }))`,
    unknown,
  ],
  [
    `graph.addNode("x", parallel(["a"], (_, t) => t, { merge: (_, tags) => ({ tags, txet: "" }) }))`,
    unknown,
  ],
  [
    `graph.addNode("x", parallel(["a"], (_, t) => t, { merge: async (_, tags) => ({ tags }) }))`,
    '"must not be a promise"',
  ],
  [
    `graph.addNode("x", route((s) => s.data.kind, { a: (s) => s, b: async () => ({ score: 1, txet: "" }) }))`,
    unknown,
  ],
  [`graph.addNode("x", route((s) => s.data.kind, { a: async () => ({ score: "1" }) }))`, wrong],
  [
    `graph.addNode("x", route((s) => s.data.kind, {}, async () => ({ score: 1, txet: "" })))`,
    unknown,
  ],
  [
    `graph.addNode("x", subgraph(inner, { in: () => ({ n: 1 }), out: () => ({ score: 1, txet: "" }) }))`,
    unknown,
  ],
  [
    `graph.addNode("x", subgraph(inner, { in: () => ({ n: 1, txet: 1 }), out: (s) => s }))`,
    unknown,
  ],
  [`graph.addNode("x", subgraph(inner, { in: () => ({}), out: (s) => s }))`, "{ n: number; }"],
  ["dag<Article>()({ txet: () => 1 })", unknown],
  [`graph.addEdge("draft", "daft")`, '"daft"'],
  [`graph.addNode("x", async (s) => s.set("txet", ""))`, '"txet"'],
  [`graph.addNode("x", async (s) => pause(s, { reason: "r", into: "txet" }))`, '"txet"'],
];

test("each mistake is one message of at most three lines that names what is wrong", () => {
  const { problems } = typeCheck(before + mistakes.map(([code]) => `${code};`).join("\n"));
  expect(problems).toHaveLength(mistakes.length);
  for (const [index, [code, says]] of mistakes.entries()) {
    const lines = problems[index]?.split("\n") ?? [];
    expect(lines[0], code).toContain(says);
    expect(lines.length, code).toBeLessThanOrEqual(3);
  }
});
