import { readdirSync, readFileSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, posix } from "node:path";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import manifest from "../../package.json" with { type: "json" };
import { blocksOf, pages } from "../docs/pages.js";
import { complaintsOf, launch, serve, site } from "./browser.js";

const phone = { width: 390, height: 844 };
const desktop = { width: 1280, height: 900 };

const files = readdirSync(site, { recursive: true, encoding: "utf8" })
  .map((file) => file.replaceAll("\\", "/"))
  .filter((file) => file.endsWith(".html"));
const entryPoints = Object.keys(manifest.exports)
  .filter((path) => path !== "./package.json")
  .map((path) => `waymark${path.slice(1)}`);
const guide = pages()
  .filter((path) => path.startsWith("guide/"))
  .map((path) => ({ path, title: titleOf(path) }));

function titleOf(path: string): string {
  const text = readFileSync(join(site, "..", path), "utf8");
  return /^# (.+)$/m.exec(text)?.[1] ?? "";
}

function fileOf(title: string): string {
  return `documents/${title.replaceAll(" ", "_")}.html`;
}

/** All pages but those of single symbols, and of these the largest of each kind. */
function sample(): string[] {
  const size = (file: string): number => statSync(join(site, file)).size;
  const ofKind = (kind: string): string[] =>
    files
      .filter((file) => file.startsWith(`${kind}/`))
      .toSorted((a, b) => size(b) - size(a))
      .slice(0, 4);
  const symbols = ["classes", "functions", "interfaces", "types", "variables"];
  const isSymbol = (file: string): boolean => symbols.includes(dirname(file));
  return [...files.filter((file) => !isSymbol(file)), ...symbols.flatMap(ofKind)];
}

let server: Awaited<ReturnType<typeof serve>>;
let browser: Browser;

beforeAll(async () => {
  [server, browser] = await Promise.all([serve(), launch()]);
});

afterAll(async () => {
  server?.close();
  await browser?.close();
});

// What runs in the page is text: the types of the DOM are not those of this project.
function widthOf(page: Page): Promise<number> {
  return page.evaluate<number>("document.documentElement.scrollWidth");
}

function styleOf(page: Page, selector: string, property: string): Promise<string> {
  const element = `document.querySelector(${JSON.stringify(selector)})`;
  return page.evaluate<string>(`getComputedStyle(${element})[${JSON.stringify(property)}]`);
}

/** Opens a page, lets `look` look at it, and says that it had nothing to complain about. */
async function visit(
  file: string,
  options: { viewport: typeof phone; colorScheme?: "light" | "dark" },
  look: (page: Page) => Promise<void>,
): Promise<void> {
  const page = await browser.newPage(options);
  try {
    const complaints = complaintsOf(page, server.url);
    await page.goto(`${server.url}/${file}`, { waitUntil: "load" });
    await look(page);
    expect(complaints).toEqual([]);
  } finally {
    await page.close();
  }
}

describe("pages", () => {
  test("render without a complaint, and are as wide as a phone", async () => {
    const wide: string[] = [];
    const left = sample();
    const look = async (): Promise<void> => {
      const page = await browser.newPage({ viewport: phone });
      const complaints = complaintsOf(page, server.url);
      for (let file = left.pop(); file !== undefined; file = left.pop()) {
        await page.goto(`${server.url}/${file}`, { waitUntil: "load" });
        const width = await widthOf(page);
        const text = (await page.locator(".col-content").textContent())?.trim().length ?? 0;
        if (width > phone.width || text < 20) wide.push(`${file}: ${width} px, ${text} characters`);
      }
      await page.close();
      expect(complaints).toEqual([]);
    };
    await Promise.all(Array.from({ length: 3 }, look));
    expect(wide).toEqual([]);
  });

  test("have only links that lead somewhere", () => {
    const ids = new Map<string, Set<string>>();
    const html = (file: string): string => readFileSync(join(site, file), "utf8");
    const idsOf = (file: string): Set<string> => {
      const known =
        ids.get(file) ?? new Set([...html(file).matchAll(/ id="([^"]+)"/g)].map((m) => m[1] ?? ""));
      ids.set(file, known);
      return known;
    };
    const all = new Set(
      readdirSync(site, { recursive: true, encoding: "utf8" }).map((file) =>
        file.replaceAll("\\", "/"),
      ),
    );
    const broken = files.flatMap((file) =>
      [...html(file).matchAll(/ (?:href|src)="([^"]*)"/g)]
        .map((match) => (match[1] ?? "").replaceAll("&amp;", "&"))
        .filter((link) => !/^[a-z]+:/.test(link))
        .filter((link) => {
          const [path = "", anchor] = link.split("#");
          const there = posix.join(dirname(file), decodeURIComponent(path));
          const target =
            path === "" ? file : path.endsWith("/") ? posix.join(there, "index.html") : there;
          if (!all.has(target)) return true;
          const isPage = anchor !== undefined && target.endsWith(".html");
          return isPage && anchor !== "" && !idsOf(target).has(decodeURIComponent(anchor));
        })
        .map((link) => `${file}: ${link}`),
    );
    expect([...new Set(broken)]).toEqual([]);
  });
});

describe("the navigation", () => {
  test("has every page of the guide and every entry point", async () => {
    await visit("index.html", { viewport: desktop }, async (page) => {
      await page.waitForSelector(".tsd-navigation a[href*='modules/']", { state: "attached" });
      const links = await page.locator("nav.tsd-navigation a").allTextContents();
      const names = links.map((link) => link.trim());
      expect(names).toEqual(expect.arrayContaining(guide.map(({ title }) => title)));
      expect(names).toEqual(expect.arrayContaining(entryPoints));
    });
  });

  test("of the core groups what it exports by the contract's words", async () => {
    await visit("modules/waymark.html", { viewport: desktop }, async (page) => {
      const headings = await page.locator(".col-content h2").allTextContents();
      const words = headings.map((heading) => heading.trim());
      expect(words).toEqual(
        expect.arrayContaining(["StateGraph", "State", "Checkpoints and stores", "Errors"]),
      );
      expect(words).not.toContain("Other");
    });
  });
});

test("search finds StateGraph", async () => {
  await visit("index.html", { viewport: desktop }, async (page) => {
    await page.click("#tsd-search-trigger");
    await page.fill("#tsd-search-input", "StateGraph");
    const first = page.locator("#tsd-search-results li a").first();
    await first.waitFor();
    expect(await first.getAttribute("href")).toContain("classes/waymark.StateGraph.html");
    await first.click();
    await page.waitForURL(/classes\/waymark\.StateGraph\.html/);
    expect(await page.locator("h1").textContent()).toContain("StateGraph");
  });
});

test.each([
  ["crash safety", "Crash_safety"],
  ["streaming", "Streaming"],
  ["retry", "Retries"],
  ["pause", "Pauses_and_people"],
  ["checkpoint", "Checkpoints_and_stores"],
  ["postgres", "Many_machines"],
])("search for %s finds the guide's page before the symbols", async (words, file) => {
  await visit("index.html", { viewport: desktop }, async (page) => {
    await page.click("#tsd-search-trigger");
    await page.fill("#tsd-search-input", words);
    const first = page.locator("#tsd-search-results li a").first();
    await first.waitFor();
    expect(await first.getAttribute("href")).toContain(`documents/${file}`);
  });
});

test("the navigation lists the guide in its groups", async () => {
  await visit("index.html", { viewport: desktop }, async (page) => {
    await page.waitForSelector(".tsd-navigation a[href*='modules/']", { state: "attached" });
    const links = await page.locator("nav.tsd-navigation a").allTextContents();
    const names = links.map((link) => link.trim());
    const order = ["Start here", "Streaming", "Concepts", "waymark", "Reference", "Changelog"];
    expect(names.filter((name) => order.includes(name))).toEqual(order);
  });
});

describe("diagrams", () => {
  const drawn = guide
    .map((page) => ({
      ...page,
      count: blocksOf(page.path).filter(({ info }) => info === "mermaid").length,
    }))
    .filter(({ count }) => count > 0);

  test("are on at least one page", () => expect(drawn.length).toBeGreaterThan(0));

  test.each(drawn)("of $title are drawn, in light and dark", async ({ title, count }) => {
    await visit(fileOf(title), { viewport: phone, colorScheme: "light" }, async (page) => {
      // They are drawn one after the other.
      const diagrams = page.locator("pre.mermaid[data-drawn] svg:has(.node)");
      await diagrams.nth(count - 1).waitFor();
      expect(await diagrams.count()).toBe(count);
      const fill = () => styleOf(page, "pre.mermaid svg .node :is(path, rect)", "fill");
      const light = await fill();
      await page.emulateMedia({ colorScheme: "dark" });
      await expect.poll(fill, { timeout: 30_000 }).not.toBe(light);
      expect(await widthOf(page)).toBeLessThanOrEqual(phone.width);
    });
  });

  test("show the names of nodes and edges", async () => {
    await visit("documents/Concepts.html", { viewport: desktop }, async (page) => {
      const first = page.locator("pre.mermaid[data-drawn] svg").first();
      await first.waitFor();
      for (const text of ["start", "draft", "review", "publish", "too short"]) {
        expect(await first.textContent()).toContain(text);
      }
    });
  });
});

test("a method says what it throws, and leads there", async () => {
  await visit("classes/waymark.MemoryStore.html", { viewport: desktop }, async (page) => {
    // It implements CheckpointStore.load, whose comment says so.
    const load = page.locator(".tsd-member:has(#load)");
    const link = load.locator("a", { hasText: "CheckpointNotFoundError" });
    expect(await link.getAttribute("href")).toContain("waymark.CheckpointNotFoundError.html");
  });
});

test("a type leads to an example of what uses it", async () => {
  await visit("interfaces/waymark.ItemContext.html", { viewport: desktop }, async (page) => {
    const link = page.locator(".tsd-tag-example a", { hasText: "map" });
    expect(await link.getAttribute("href")).toContain("functions/waymark.map.html");
  });
});

test("light and dark themes differ", async () => {
  const grounds: string[] = [];
  for (const colorScheme of ["light", "dark"] as const) {
    await visit("index.html", { viewport: desktop, colorScheme }, async (page) => {
      grounds.push(await styleOf(page, "body", "backgroundColor"));
    });
  }
  expect(new Set(grounds).size).toBe(2);
});

test.each(["light", "dark"] as const)("text has enough contrast in %s", async (colorScheme) => {
  const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
  for (const file of ["index.html", "documents/Comparison.html", "modules/waymark.html"]) {
    await visit(file, { viewport: desktop, colorScheme }, async (page) => {
      await page.evaluate(axe);
      const faint = await page.evaluate<string[]>(
        "axe.run({ runOnly: ['color-contrast'] }).then((r) => r.violations.flatMap(({ nodes }) => nodes.map(({ html }) => html)))",
      );
      expect(faint).toEqual([]);
    });
  }
});

test("an error's help leads to its section", async () => {
  await visit(
    "documents/Troubleshooting.html#checkpoint_conflict",
    { viewport: desktop },
    async (page) => {
      const top = (await page.locator("#checkpoint_conflict").boundingBox())?.y;
      expect(top).toBeGreaterThanOrEqual(0);
      expect(top).toBeLessThan(desktop.height);
    },
  );
});
