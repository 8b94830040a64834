import {
  appendFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import MarkdownIt from "markdown-it";
import { afterAll, describe, expect, test } from "vitest";
import { type AnyEvent, MemoryStore, State, StateGraph } from "../../src/index.js";
import { section } from "../../src/observers/markdown/sections.js";
import { markdownProgress } from "../../src/observers/markdown.js";
import { event } from "./events.js";

const folder = mkdtempSync(join(tmpdir(), "waymark-progress-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

let paths = 0;
const newPath = (): string => join(folder, `${++paths}`, "progress.md");

const part = (title: string, runId = "r", step = 0): AnyEvent =>
  event("progress", runId, { node: "n", step, title, summary: `About ${title}.`, sources: [] });
const titles = (path: string): string[] =>
  [...readFileSync(path, "utf8").matchAll(/^## (.*)$/gm)].map((match) => match[1] ?? "");

describe("sections", () => {
  test("each has its title, summary and sources", () => {
    const path = newPath();
    const observer = markdownProgress({ path });
    const sources = ["https://example.com/a?b=1", "a book, p. 3"];
    const data = { node: "n", step: 0, title: "Cairns", summary: "One.\n\n- two", sources };
    observer.onEvent(event("progress", "r", data));
    const [, body] = readFileSync(path, "utf8").split(/<!-- waymark:[\da-f]{24} -->\n/);
    expect(body?.replace(/<!-- \/waymark:[\da-f]{24} -->\n$/, "END")).toBe(
      "## Cairns\n\nOne.\n\n- two\n\n**Sources:**\n\n- <https://example.com/a?b=1>\n- a book, p. 3\n\nEND",
    );
  });

  test("a run that fails and resumes in another process continues in the same file, without duplicates", async () => {
    const path = newPath();
    const store = new MemoryStore();
    let crashes = 2;
    const run = () =>
      new StateGraph<{ done: string[] }>({
        observer: markdownProgress({ path }),
        checkpoint: { store, interval: 1 },
      })
        .addNode("first", (state, context) => {
          context.progress({ title: "A", summary: "a" });
          return { done: [...state.data.done, "A"] };
        })
        .addNode("second", (state, context) => {
          context.progress({ title: "B", summary: `told ${crashes}` });
          if (crashes-- > 0) throw new Error("crash");
          context.progress({ title: "C", summary: "c" });
          context.progress({ title: "C", summary: "another c" });
          return { done: [...state.data.done, "B", "C"] };
        })
        .addEdge("first", "second")
        .addEdge("second", "first", (state) => state.data.done.length < 4)
        .addNode("end", (state) => state)
        .addEdge("second", "end")
        .setEntryPoint("first")
        .setExitPoint("end")
        .resumeOrStart(State.create({ done: [] as string[] }, { runId: "r" }));
    await run().catch(() => {});
    await run().catch(() => {});
    await run();
    expect(titles(path)).toEqual(["A", "B", "C", "C", "A", "B", "C", "C"]);
    expect(readFileSync(path, "utf8")).toContain("told 2");
  });

  test("a retry writes no section twice", () => {
    const path = newPath();
    const observer = markdownProgress({ path });
    const retry = { node: "n", step: 0, attempt: 1, error: "x", delayMs: 0 };
    observer.onEvent(part("A"));
    observer.onEvent(event("node.retry", "r", retry));
    observer.onEvent(part("A"));
    observer.onEvent(part("B"));
    expect(titles(path)).toEqual(["A", "B"]);
  });

  test("each run has its own file in a root, and a run id is never a path", async () => {
    const root = join(folder, "root");
    const observer = markdownProgress({ root });
    observer.onEvent(part("A", "one"));
    observer.onEvent(part("A", "../two"));
    observer.onEvent(event("graph.complete", "one", { exitPoint: "n", step: 1 }));
    await observer.close();
    expect(readdirSync(root).sort()).toEqual(["%2e.%2ftwo", "one"]);
    expect(titles(join(root, "one", "progress.md"))).toEqual(["A"]);
  });

  test("other text in the file stays, and a torn section is written again", async () => {
    const path = newPath();
    const first = markdownProgress({ path });
    first.onEvent(part("A"));
    first.onEvent(part("B", "r", 1));
    await first.close();
    const whole = readFileSync(path, "utf8");
    const start = whole.lastIndexOf("\n<!-- waymark:");
    for (let length = start + 5; length < whole.length - 1; length += 7) {
      writeFileSync(path, `# My notes\n${whole.slice(0, length)}`);
      const observer = markdownProgress({ path });
      observer.onEvent(part("A"));
      observer.onEvent(part("B", "r", 1));
      await observer.flush();
      const text = readFileSync(path, "utf8");
      expect(titles(path), `cut at ${length}`).toEqual(["A", "B"]);
      expect(text.startsWith("# My notes\n\n<!-- waymark:")).toBe(true);
      expect(text.match(/<!-- waymark:/g)).toHaveLength(2);
      await observer.close();
    }
    appendFileSync(path, "\nA note of mine: 1 < 2\n");
    const observer = markdownProgress({ path });
    observer.onEvent(part("C", "r", 2));
    expect(readFileSync(path, "utf8")).toContain("A note of mine: 1 < 2\n");
    await observer.close();
  });

  test("a failing disk loses a section but not the run", async () => {
    const path = newPath();
    mkdirSync(path, { recursive: true });
    const errors: unknown[] = [];
    const observer = markdownProgress({ path, onError: (error) => errors.push(error) });
    observer.onEvent(part("A"));
    observer.onEvent(part("B"));
    await observer.close();
    expect(errors).toMatchObject([{ code: "EISDIR" }]);
    expect(observer.dropped).toBe(2);
    expect(() => markdownProgress({} as never)).toThrow("must have either a root or a path");
  });
});

describe("text from nodes", () => {
  const markdown = new MarkdownIt({ html: true });
  const bits = fc.constantFrom(
    ..."```|~~~~|# |## x|---|===|<!--|-->|<div>|<script>|- |> |1. |    |\t|[a]: http://evil".split(
      "|",
    ),
    ..."[Ada]: <x>|[^1]: f|a|b |`|**|_|\\|&lt;|<|</|<?php|<![CDATA[|* * *|[Ada]|]:".split("|"),
    ...[
      "\n",
      "\n\n",
      "\r",
      "\u2028",
      "\u0000",
      "[a\nb]: /evil",
      "<a\nhref=x>",
      "|",
      "$$",
      "=",
      "+ ",
    ],
  );
  const hostile = fc.array(bits, { maxLength: 14 }).map((parts) => parts.join(""));

  test("can't break the document, whatever it contains", () => {
    const other = section("b".repeat(24), {
      node: "n",
      step: 1,
      title: "Second",
      summary: "See [Ada] and [a] [^1] [a b].",
      sources: ["s"],
    });
    const alone = markdown.render(other);
    fc.assert(
      fc.property(
        hostile,
        hostile,
        fc.array(hostile, { maxLength: 3 }),
        (title, summary, sources) => {
          const mine = section("a".repeat(24), { node: "n", step: 0, title, summary, sources });
          expect(markdown.render(mine + other).endsWith(alone)).toBe(true);
          const blocks = markdown.parse(mine, {});
          const headings = blocks.filter((one) => one.type === "heading_open" && one.level === 0);
          expect(headings.map((one) => one.tag)).toEqual(["h2"]);
          const html = blocks.filter((one) => one.type === "html_block").map((one) => one.content);
          expect(html).toEqual([
            `<!-- waymark:${"a".repeat(24)} -->\n`,
            `<!-- /waymark:${"a".repeat(24)} -->\n`,
          ]);
          const inline = blocks.flatMap((one) => one.children ?? []);
          expect(inline.filter((one) => one.type === "html_inline")).toEqual([]);
        },
      ),
      { numRuns: 1000 },
    );
  });

  test("plain text stays as it is", () => {
    const summary =
      "Ada & Bob: 1 < 2, *really*.\n\n1. one\n2. `two`\n\nsnake_case [link](http://x)";
    const text = section("k", { node: "n", step: 0, title: "1 < 2 (a_b)", summary, sources: [] });
    expect(text).toContain(`## 1 < 2 (a_b)\n\n${summary}\n`);
  });
});
