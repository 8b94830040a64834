import { existsSync, readFileSync, statSync } from "node:fs";
import { basename, dirname, join, relative } from "node:path";
import { describe, expect, test } from "vitest";
import { pages, root } from "./pages.js";

/** The page without its code, in which brackets are no links. */
function prose(path: string): string {
  return readFileSync(join(root, path), "utf8")
    .replace(/^```.*?^```$/gms, "")
    .replace(/`[^`\n]*`/g, (code) => code.replace(/[[\]()]/g, "_"));
}

/** The anchors of a page that are the same on GitHub and in TypeDoc, which leaves the code of a heading out. */
function anchorsOf(path: string): Set<string> {
  const seen = new Map<string, number>();
  const headings = readFileSync(join(root, path), "utf8")
    .replace(/^```.*?^```$/gms, "")
    .matchAll(/^#+ ([^`\n]+)$/gm);
  return new Set(
    [...headings].map(([, heading = ""]) => {
      const slug = heading
        .toLowerCase()
        .replace(/[^\p{L}\p{N}_ -]/gu, "")
        .replaceAll(" ", "-");
      const count = seen.get(slug) ?? 0;
      seen.set(slug, count + 1);
      return count === 0 ? slug : `${slug}-${count}`;
    }),
  );
}

function problem(from: string, link: string): string | undefined {
  const [target = "", anchor] = link.split("#");
  const path = target === "" ? from : relative(root, join(root, dirname(from), target));
  if (path.startsWith("..")) return `${from}: ${link} leads out of the project`;
  if (!existsSync(join(root, path))) return `${from}: ${link} is not there`;
  if (anchor === undefined) return undefined;
  if (statSync(join(root, path)).isDirectory() || !path.endsWith(".md")) {
    return `${from}: ${link} has an anchor and is no page`;
  }
  return anchorsOf(path).has(anchor) ? undefined : `${from}: ${link} has no such heading`;
}

/** The pages of the guide in the order of the site. */
function guideInOrder(): string[] {
  const groups: Record<string, string[]> = JSON.parse(
    readFileSync(join(root, "scripts/site/groups.json"), "utf8"),
  );
  return Object.values(groups)
    .flat()
    .map((page) => `guide/${page}.md`);
}

describe("links", () => {
  test.each(pages())("of %s lead somewhere", (path) => {
    const links = [...prose(path).matchAll(/\]\(([^()\s]+)\)/g)].map(([, link = ""]) => link);
    const isElsewhere = (link: string): boolean => /^[a-z]+:/.test(link);
    expect(links.filter((link) => isElsewhere(link) && !link.startsWith("https://"))).toEqual([]);
    const problems = links.filter((link) => !isElsewhere(link)).map((link) => problem(path, link));
    expect(problems.filter((one) => one !== undefined)).toEqual([]);
  });

  test("that are wrong are found", () => {
    expect(problem("README.md", "guide/nowhere.md")).toContain("is not there");
    expect(problem("README.md", "guide/troubleshooting.md#nothing")).toContain("no such heading");
    expect(problem("README.md", "../elsewhere.md")).toContain("leads out");
    expect(problem("README.md", "LICENSE#top")).toContain("no page");
    expect(problem("guide/concepts.md", "../README.md#measured")).toBeUndefined();
    expect(problem("guide/concepts.md", "#a-state")).toBeUndefined();
  });
});

describe("the guide", () => {
  const order = guideInOrder();

  test("has every page in one group of the site", () => {
    expect(order.toSorted()).toEqual(
      pages()
        .filter((path) => path.startsWith("guide/"))
        .toSorted(),
    );
  });

  test.each(order)("ends %s with a link to the page after it", (path) => {
    const next = order[(order.indexOf(path) + 1) % order.length] ?? "";
    const [, title = ""] = /^# (.+)$/m.exec(readFileSync(join(root, next), "utf8")) ?? [];
    const [last] = readFileSync(join(root, path), "utf8").trimEnd().split("\n").slice(-1);
    expect(last).toBe(`**Next:** [${title}](${basename(next)})`);
  });
});
