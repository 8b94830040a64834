import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { articleRun, json, newFolder, project, waymark } from "../harness.js";

describe("graph", () => {
  test("prints Mermaid, and with a run its completed and next nodes", async () => {
    const folder = project();
    await articleRun(folder);
    await waymark(folder, "rollback", "monday", "--at", "1", "--yes");
    const { out } = await waymark(folder, "graph", "article");
    expect(out).toMatch(/^flowchart TD\n/);
    expect(out).not.toContain("class n0 done");
    const marked = (await waymark(folder, "graph", "article", "--run", "monday")).out;
    expect(marked).toContain("class n0 done");
    expect(marked).toContain("class n1 next");
    expect(await json(folder, "graph", "article")).toMatchObject({ name: "article", mermaid: out });
  });

  test("draws a graph in the terminal", async () => {
    const folder = project();
    await articleRun(folder);
    await waymark(folder, "rollback", "monday", "--at", "1", "--yes");
    const { out } = await waymark(folder, "graph", "article", "--run", "monday", "--draw");
    expect(out).toMatchInlineSnapshot(`
      "    start
          │
          ▼
      ┌─────────┐
      │ ✓ draft │
      └───┬─────┘
          │
          ▼
      ┌──────────┐
      │ ▶ review │ ╌╌▷ draft  too long
      └───┬──────┘
          │
          ▼
      ╭─────────╮
      │ publish │
      ╰─────────╯
      "
    `);
    expect(await json(folder, "graph", "article")).toMatchObject({
      entry: "draft",
      nodes: [{ name: "draft", exit: false }, {}, { name: "publish", exit: true }],
      edges: [{}, { name: "too long", conditional: true }, {}],
    });
    // The store knows the graph, too.
    const known = await waymark(folder, "graph", "--run", "monday", "--draw", "--no-config");
    expect(known).toMatchObject({ code: 0, out });
    const neither = await waymark(folder, "graph");
    expect(neither).toMatchObject({ code: 2 });
    expect(neither.err).toContain("graph needs a graph or --run");
  });

  test("draws loops, branches and names of any kind", async () => {
    const folder = newFolder();
    writeFileSync(
      join(folder, "graph.ts"),
      `import { StateGraph } from "waymark";
export const one = new StateGraph({}).addNode("a", (s) => s).addNode("b [x] \\u001b", (s) => s).addNode("山", (s) => s).addNode("lost", (s) => s)
  .addEdge("a", "a", () => false, "again").addEdge("a", "山", () => true).addEdge("a", "b [x] \\u001b").addEdge("山", "b [x] \\u001b", () => true, "up")
  .addEdge("a", "lost").addEdge("lost", "a")
  .setEntryPoint("a").setExitPoint("b [x] \\u001b");
export const empty = new StateGraph({ name: "empty" });
export const notGraph = 1;
export class Thing {}
export const make = async () => one;`,
    );
    const { code, out } = await waymark(folder, "graph", "./graph.ts#one", "--draw");
    expect(code).toBe(0);
    expect(out).toMatchInlineSnapshot(`
      "    start
          │
          ▼
      ┌───────┐
      │ a     │ ╌╌▷ itself  again
      │       │ ──▶ b [x] \\x1b
      └───┬───┘ ──▶ lost
          ╎
          ▼
      ┌───────┐
      │ 山    │
      └───┬───┘
          ╎ up
          ▼
      ╭────────────╮
      │ b [x] \\x1b │
      ╰────────────╯

      ┌───────┐
      │ lost  │ ──▶ a
      └───────┘
      "
    `);
    expect((await waymark(folder, "graph", "./graph.ts#make")).code).toBe(0);
    writeFileSync(join(folder, "only.ts"), 'export { one, notGraph } from "./graph.ts";');
    expect((await waymark(folder, "graph", "./only.ts")).code).toBe(0);
    expect((await waymark(folder, "graph", "./graph.ts#empty", "--draw")).code).toBe(0);
    const wrong: readonly (readonly [string, number, RegExp])[] = [
      ["./graph.ts", 3, /has no export that is the graph \(name it: \.\/graph\.ts#name\)/],
      ["./graph.ts#nope", 3, /exports no "nope" \(it has /],
      ["./graph.ts#notGraph", 1, /must be a StateGraph; got 1/],
      ["./graph.ts#Thing", 1, /must be a StateGraph; got the function Thing/],
      ["./none.ts", 3, /there is no module .*none\.ts/],
      ["none", 3, /there is no graph "none" \(name it under graphs in waymark\.config\.ts/],
    ];
    for (const [graph, code, message] of wrong) {
      const ended = await waymark(folder, "graph", graph);
      expect(ended.err).toMatch(message);
      expect(ended.code).toBe(code);
    }
  });
});
