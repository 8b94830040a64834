import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { Browser, BrowserContext, Locator, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { END, MemoryStore, State, StateGraph } from "waymark";
import { complaintsOf, launch } from "./browser.js";
import { heapOfPage } from "./heap-snapshot.js";
import {
  hostile,
  type Served,
  serveMany,
  serveSamples,
  serveStudio,
  token,
} from "./studio-server.js";

const wide = { width: 1300, height: 900 };
const tablet = { width: 768, height: 1024 };
const phone = { width: 390, height: 844 };

/** Only what is broken takes longer. */
const PATIENCE_MS = 20_000;

let browser: Browser;
let samples: Awaited<ReturnType<typeof serveSamples>>;
let many: Awaited<ReturnType<typeof serveMany>>;

beforeAll(async () => {
  [browser, samples, many] = await Promise.all([launch(), serveSamples(), serveMany()]);
});

afterAll(async () => {
  await browser?.close();
  await Promise.all([samples?.close(), many?.close()]);
});

interface Visit {
  readonly at?: string;
  readonly server?: Served;
  readonly viewport?: typeof wide;
  readonly colorScheme?: "light" | "dark";
  /** Complaints that are expected. */
  readonly allow?: RegExp;
}

/** Opens a screen of the studio by its link, lets `look` look at it, and says that the page had nothing to complain about. */
async function visit(visited: Visit, look: (page: Page) => Promise<void>): Promise<void> {
  const { at = "/runs", server = samples, viewport = wide, colorScheme = "light" } = visited;
  const page = await browser.newPage({ viewport, colorScheme });
  page.setDefaultTimeout(PATIENCE_MS);
  try {
    const complaints = complaintsOf(page, server.url);
    await page.goto(`${server.url}/#${at}${at.includes("?") ? "&" : "?"}token=${token}`);
    await page.getByRole("link", { name: "waymark, all runs" }).waitFor();
    await look(page);
    expect(await page.evaluate("window.harmed")).toBeUndefined();
    expect(complaints.filter((text) => !visited.allow?.test(text))).toEqual([]);
  } finally {
    await page.close();
  }
}

const heading = (page: Page, name: string): Locator =>
  page.getByRole("heading", { name, exact: true });
const button = (page: Page, name: string | RegExp): Locator => page.getByRole("button", { name });
const run = (page: Page, runId: string): Locator =>
  page.getByRole("table", { name: "Runs" }).getByRole("link", { name: runId, exact: true });

/** Whether all of an element lies within another. */
async function isInside(inner: Locator, outer: Locator): Promise<boolean> {
  const [one, two] = await Promise.all([inner.boundingBox(), outer.boundingBox()]);
  if (one === null || two === null) return false;
  const isWithin = (axis: "x" | "y", size: "width" | "height"): boolean =>
    one[axis] >= two[axis] && one[axis] + one[size] <= two[axis] + two[size];
  return isWithin("x", "width") && isWithin("y", "height");
}

const require = createRequire(import.meta.url);
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

/** What axe finds wrong with a page as it is now. */
async function faultsOf(page: Page): Promise<string[]> {
  await page.evaluate(axe);
  return page.evaluate<string[]>(
    "axe.run().then((r) => r.violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => id + ': ' + html)))",
  );
}

/** The same in both themes. */
async function faultsInBothThemes(page: Page): Promise<string[]> {
  const found: string[] = [];
  for (const colorScheme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme });
    await page.locator(`html[data-theme=${colorScheme}]`).waitFor();
    found.push(...(await faultsOf(page)));
  }
  return found;
}

/** Confirms what a dialog asks, and gives the command that it showed. */
async function confirm(page: Page, name: string): Promise<string> {
  const dialog = page.getByRole("dialog");
  const command = (await dialog.locator(".command code").textContent()) ?? "";
  await dialog.getByRole("button", { name, exact: true }).click();
  await dialog.waitFor({ state: "detached" });
  return command;
}

describe("the token", () => {
  test("is taken from the fragment, removed from the address, and kept nowhere", async () => {
    await visit({ at: "/runs?status=failed" }, async (page) => {
      await run(page, "article-avalanches").waitFor();
      expect(page.url()).toBe(`${samples.url}/#/runs?status=failed`);
      const kept = await page.evaluate<string>(
        "JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie, history.state])",
      );
      expect(kept).not.toContain(token);
    });
  });

  test("is asked for where it is missing, and a wrong one is refused", async () => {
    const page = await browser.newPage();
    await page.goto(`${samples.url}/#/runs/article-cairns`);
    await page.getByLabel("Token").fill("not-this-one-either");
    await button(page, "Open the studio").click();
    await page.getByText("does not know this token").waitFor();
    await page.getByLabel("Token").fill(`${samples.url}/#token=${token}`);
    await button(page, "Open the studio").click();
    await heading(page, "Graph").waitFor();
    expect(page.url()).toBe(`${samples.url}/#/runs/article-cairns`);
    await page.close();
  });
});

describe("the runs", () => {
  test("are filtered by status, graph, metadata and text", async () => {
    await visit({}, async (page) => {
      const rows = page.getByRole("table", { name: "Runs" }).locator("tbody tr");
      await run(page, "article-cairns").waitFor();
      await button(page, "paused").click();
      await run(page, "article-cairns").waitFor({ state: "detached" });
      await run(page, "refund-A-1043").waitFor();
      await page.getByLabel("Graph").selectOption("refund");
      await expect.poll(() => rows.count()).toBe(2);
      await page.getByLabel("Metadata, as key=value").fill("customer=globex");
      await page.keyboard.press("Enter");
      await expect.poll(() => rows.count()).toBe(1);
      await button(page, "Remove the filter customer=globex").click();
      await expect.poll(() => rows.count()).toBe(2);
      await page.getByLabel("Search runs").fill("1077");
      await expect.poll(() => rows.count()).toBe(1);
      expect(page.url()).toContain("#/runs?status=paused&graph=refund&q=1077");
      await page.getByLabel("Search runs").fill("no such run");
      await page.getByText("No runs match").waitFor();
      await button(page, "Remove the filters").click();
      await run(page, "article-cairns").waitFor();
    });
  });

  test("that are new or change appear by themselves", async () => {
    await visit({}, async (page) => {
      await run(page, "article-cairns").waitFor();
      const handle = samples.startRun("live-one");
      const row = page.getByRole("row", { name: "live-one" });
      await row.getByText("running").waitFor();
      await expect.poll(() => row.locator(".c-steps").textContent()).toContain("1");
      samples.release();
      await handle.result();
      await row.getByText("completed").waitFor();
    });
  });

  test("that are deleted elsewhere disappear, old ones too", async () => {
    await samples.startRun("short-lived").cancel();
    await visit({}, async (page) => {
      await run(page, "short-lived").waitFor();
      await samples.store.delete("short-lived");
      await run(page, "short-lived").waitFor({ state: "detached" });
      await run(page, "article-cairns").waitFor();
    });
    await visit({ server: many, at: "/figures" }, async (page) => {
      // Before the screen is there that waits.
      await page.clock.install();
      await page.evaluate("location.hash = '#/runs?metadata=customer%3Dc7'");
      const oldest = page.getByRole("table", { name: "Runs" }).getByRole("link").last();
      // The first may be gone since the list is loaded again once the stream has begun.
      for (let turn = 0; turn < 2; turn++) {
        const runId = (await oldest.textContent()) ?? "";
        await many.store.delete(runId);
        await page.clock.runFor(20_000);
        await run(page, runId).waitFor({ state: "detached" });
      }
      await oldest.waitFor();
    });
  });

  test("are compared and deleted when several are selected", async () => {
    for (const runId of ["spare-1", "spare-2"]) {
      const handle = samples.startRun(runId);
      await expect.poll(async () => (await samples.store.load(runId)).step).toBe(1);
      samples.release();
      await handle.result();
    }
    await visit({ at: "/runs?q=spare" }, async (page) => {
      await page.getByLabel("Select spare-1").check();
      await page.getByLabel("Select spare-2").check();
      await button(page, "Compare").click();
      await page.getByRole("table", { name: "Runs side by side" }).waitFor();
      await heading(page, "Difference of the data").waitFor();
      await page.goBack();
      await page.getByLabel("Select all runs of this page").check();
      await button(page, "Delete").click();
      expect(await confirm(page, "Delete 2 runs")).toMatch(
        /^waymark delete spare-[12] spare-[12] --store file:.waymark$/,
      );
      await page.getByText("No runs match").waitFor();
      expect(await samples.store.list()).not.toContain("spare-1");
    });
  });

  test("come in pages of 50 out of 10,000, and are searched through", async () => {
    await visit({ server: many }, async (page) => {
      const rows = page.getByRole("table", { name: "Runs" }).locator("tbody tr");
      await rows.first().waitFor();
      expect(await rows.count()).toBe(50);
      const ids = (): Promise<string[]> => rows.getByRole("link").allTextContents();
      const first = await ids();
      await page.getByRole("link", { name: "Next 50" }).click();
      await run(page, first[0] ?? "").waitFor({ state: "detached" });
      await rows.first().waitFor();
      expect(new Set([...first, ...(await ids())]).size).toBe(100);
      await page.goBack();
      await run(page, first[0] ?? "").waitFor();
      await page.getByLabel("Search runs").fill("run-00007");
      await run(page, "run-00007").waitFor();
      await expect.poll(() => rows.count()).toBe(1);
    });
  });

  test("are searched through until somebody stops it", async () => {
    await visit({ server: many }, async (page) => {
      await page.route("**/api/runs?*cursor=*", () => {});
      await page.getByLabel("Search runs").fill("nobody");
      await page.getByText("Searching… 2,000 runs so far").waitFor();
      await button(page, "Stop").click();
      await page.getByText("2,000 runs were looked at").waitFor();
      await page.getByRole("link", { name: "Search further" }).waitFor();
      await page.unrouteAll({ behavior: "ignoreErrors" });
    });
  });

  test("are walked through and opened by keys", async () => {
    await visit({ at: "/runs?graph=refund" }, async (page) => {
      await run(page, "refund-A-1043").waitFor();
      await page.keyboard.press("j");
      await page.keyboard.press("x");
      await page.getByText("1 run selected").waitFor();
      await page.keyboard.press("Control+k");
      await page.getByLabel("Search runs and commands").fill("article-ava");
      await page.getByRole("option", { name: "article-avalanches" }).waitFor();
      await page.keyboard.press("Enter");
      await heading(page, "Error").waitFor();
      await page.keyboard.press("g");
      await page.keyboard.press("i");
      await heading(page, "Inbox").waitFor();
    });
  });
});

describe("a run", () => {
  test("that failed has its graph, timeline, State, history, ledger, events, error and details", async () => {
    await visit({ at: "/runs/article-avalanches" }, async (page) => {
      const names = [
        "Graph",
        "Timeline",
        "State",
        "History",
        "Ledger",
        "Events",
        "Error",
        "Details",
      ];
      for (const name of names) await heading(page, name).waitFor();
      await button(page, "review: failed").waitFor();
      await button(page, "draft ×2: completed").waitFor();
      for (const attempt of ["failed .* attempt 1", "failed .* attempt 2", ".* attempt 3"]) {
        await button(page, new RegExp(`^draft, step 3 · ${attempt} of 3`)).waitFor();
      }
      await button(page, "publish: not reached").waitFor();
      await page.locator(".edges text", { hasText: "too short" }).waitFor({ state: "attached" });
      await page.locator("summary", { hasText: "Stack" }).click();
      await page.locator("pre", { hasText: "RangeError: rate limit" }).waitFor();
      const usage = page.getByRole("table", { name: "Usage by node" });
      expect(await usage.getByRole("row", { name: /^draft/ }).textContent()).toContain("3,600");
      expect(await usage.getByRole("row", { name: /^Whole run/ }).textContent()).toContain("$0.06");
      await page.getByText("The text has 45 characters").waitFor();
      const events = page.getByRole("table", { name: "Events" });
      await events.getByText("graph.fail").waitFor();
      await page.getByText("acme", { exact: true }).first().waitFor();
    });
  });

  test("selects the same step everywhere", async () => {
    await visit({ at: "/runs/article-cairns" }, async (page) => {
      const bar = button(page, /^outline, step 1 /);
      await button(page, "outline: completed").click();
      await expect.poll(() => bar.getAttribute("aria-pressed")).toBe("true");
      const row = page.locator("tr[aria-selected=true]");
      expect(await row.textContent()).toContain("outline");
      await page.getByText("step 1, after outline").waitFor();
      await button(page, /^publish, step 9 /).click();
      await expect.poll(() => row.textContent()).toContain("publish");
      expect(await button(page, "publish: completed").getAttribute("aria-pressed")).toBe("true");
      await page.getByRole("button", { name: "Checkpoint 1", exact: true }).click();
      await page.getByText("before the first node").waitFor();
      expect(page.url()).toContain("at=1");
    });
  });

  test("shows the difference of any two checkpoints, and the State at each", async () => {
    await visit({ at: "/runs/article-cairns" }, async (page) => {
      const changes = page.getByRole("list", { name: "Changes" });
      await changes.getByText("data.publishedAt").waitFor();
      await page.getByLabel("Compare with checkpoint 1", { exact: true }).check();
      await changes.getByText("data.score").waitFor();
      expect(await changes.textContent()).toContain('"outdoors"');
      const tree = page.getByRole("list", { name: "Data" });
      expect(await tree.textContent()).toContain("9007199254740993n");
      expect(await tree.textContent()).toContain("Map(2)");
      expect(await tree.textContent()).toContain("Uint8Array 12 B 89 50 4e 47");
      expect(await tree.locator("time").textContent()).toMatch(/^\d{4}-\d\d-\d\dT/);
      await page.getByLabel("Search the State").fill("newsletter");
      await page.getByRole("list", { name: "Found" }).getByText('"newsletter"').waitFor();
    });
  });

  test("fetches a large value when it is asked for", async () => {
    await visit({ at: "/runs/letter" }, async (page) => {
      const tree = page.getByRole("list", { name: "Data" });
      await tree.getByText("array of 5,000").waitFor();
      await tree.getByRole("button", { name: "Show" }).first().click();
      await tree.getByText('"page 7 of the letter"').waitFor();
      await tree.getByText("bytes, 5.9 KB").waitFor();
      await tree.getByRole("button", { name: "Show" }).click();
      await tree.getByText("ab ab ab ab").waitFor();
    });
  });

  test("shows that a value was redacted", async () => {
    const redacting = await serveStudio({ store: samples.store, redact: ["data.topic"] });
    try {
      await visit({ server: redacting, at: "/runs/article-cairns" }, async (page) => {
        const topic = page.getByRole("list", { name: "Data" }).locator("li", { hasText: "topic" });
        await expect.poll(() => topic.textContent()).toBe("topic: redacted");
      });
    } finally {
      await redacting.close();
    }
  });

  test("of many steps shows the newest, and each checkpoint that is asked for", async () => {
    const store = new MemoryStore();
    const graph = new StateGraph<{ n: number }>({
      maxIterations: 2000,
      checkpoint: { store, interval: 1, preserve: true, keep: Number.POSITIVE_INFINITY },
    })
      .addNode("count", ({ data }) => ({ n: data.n + 1 }))
      .addEdge("count", "count", ({ data }) => data.n < 1200)
      .addEdge("count", END)
      .setEntryPoint("count");
    const { step, sequence } = await graph.execute(State.create({ n: 0 }, { runId: "many-steps" }));
    const server = await serveStudio({ store, graphs: [graph] });
    try {
      await visit({ server, at: "/runs/many-steps?at=3" }, async (page) => {
        await page
          .getByText(`without the first ${(step - 100).toLocaleString("en")} steps`)
          .waitFor();
        await page.getByText(`${sequence.toLocaleString("en")} checkpoints`).waitFor();
        await page.getByText("From 2 to 3").waitFor();
        expect(await page.locator(".gap").count()).toBe(0);
      });
    } finally {
      await server.close();
    }
  });

  test("is shown even if it is saved faster than it can be fetched", async () => {
    const store = new MemoryStore();
    let state = await State.create({ n: 0 }, { runId: "busy" }).checkpoint(store);
    const server = await serveStudio({ store });
    try {
      await visit({ server }, async (page) => {
        // Each answer waits until the page has noticed three more saves.
        await page.route("**/api/runs/busy", async (route) => {
          for (let saves = 0; saves < 3; saves++) {
            const noticed = page.waitForRequest("**/api/runs/busy/history*");
            state = await state.checkpoint(store);
            await noticed;
          }
          await route.continue();
        });
        await run(page, "busy").click();
        await heading(page, "Details").waitFor();
        await page.unrouteAll({ behavior: "ignoreErrors" });
      });
    } finally {
      await server.close();
    }
  });

  test("that was left is released from memory", async () => {
    await visit({ at: "/runs/article-avalanches" }, async (page) => {
      const session = await page.context().newCDPSession(page);
      await page.getByRole("table", { name: "Events" }).waitFor();
      await page.getByRole("table", { name: "Checkpoints" }).waitFor();
      await page.getByRole("link", { name: "Inbox" }).click();
      await heading(page, "Inbox").waitFor();
      // A few belong to what Chromium has yet to lay out again.
      await expect
        .poll(async () => (await heapOfPage(session)).detached, { timeout: PATIENCE_MS })
        .toBeLessThan(50);
    });
  });

  test("is named in the title of its tab", async () => {
    await visit({ at: "/runs/article-cairns" }, async (page) => {
      await expect.poll(() => page.title()).toBe("article-cairns · Runs · waymark");
      await page.getByRole("link", { name: "Figures" }).click();
      await expect.poll(() => page.title()).toBe("Figures · waymark");
    });
  });

  test("of a dag has its layers as groups, one with a subgraph that graph inside", async () => {
    await visit({ at: "/runs/import-tuesday" }, async (page) => {
      await button(page, "layer 2: completed").waitFor();
      await button(page, "matched: completed").waitFor();
    });
    await visit({ at: "/runs/onboarding-acme" }, async (page) => {
      await button(page, "verify: completed").first().waitFor();
      await button(page, "sanctions: completed").waitFor();
      await page.getByRole("img", { name: /^sanctions · completed/ }).waitFor();
    });
  });

  test("of a hundred nodes is drawn in rows whose names can be read", async () => {
    await visit({ at: "/runs/long" }, async (page) => {
      const failed = button(page, "stage 34: failed");
      await failed.waitFor();
      expect(await page.locator("button.node").count()).toBe(100);
      expect(await faultsInBothThemes(page)).toEqual([]);
      const canvas = page.locator(".canvas");
      await expect.poll(() => isInside(failed, canvas)).toBe(true);
      expect((await failed.boundingBox())?.height).toBeGreaterThan(20);
      // Nothing lies to the left or the right of what is seen.
      const edges = await page.evaluate<number[]>(
        "[...document.querySelectorAll('button.node')].map((e) => e.getBoundingClientRect()).flatMap((e) => [e.left, e.right])",
      );
      const { x = 0, width = 0 } = (await canvas.boundingBox()) ?? {};
      expect(Math.min(...edges)).toBeGreaterThan(x);
      expect(Math.max(...edges)).toBeLessThan(x + width);
      await button(page, "Larger graph").click();
      await expect.poll(() => isInside(button(page, "stage 70: not reached"), canvas)).toBe(true);
      await button(page, "Fit").click();
      for (const name of ["stage 1: completed", "stage 100: not reached"]) {
        await expect.poll(() => isInside(button(page, name), canvas)).toBe(true);
      }
    });
  });

  test("of a hundred nodes has a field to find one, and follows the selection", async () => {
    await visit({ at: "/runs/long", viewport: phone }, async (page) => {
      const canvas = page.locator(".canvas");
      const first = button(page, "stage 1: completed");
      const last = button(page, "stage 100: not reached");
      await button(page, "stage 34: failed").waitFor();
      expect(await isInside(last, canvas)).toBe(false);
      await page.getByLabel("Find a node").fill("stage 100");
      await expect.poll(() => isInside(last, canvas)).toBe(true);
      await page.getByLabel("Find a node").fill("AGE 1");
      await page.keyboard.press("Enter");
      await expect.poll(() => isInside(first, canvas)).toBe(true);
      await page.getByRole("list").getByRole("button", { name: "stage 30", exact: true }).click();
      const chosen = button(page, "stage 30: completed");
      await expect.poll(() => isInside(chosen, canvas)).toBe(true);
      // The focus takes the view along.
      await chosen.focus();
      for (let turn = 0; turn < 40; turn++) await page.keyboard.press("Tab");
      await expect.poll(() => isInside(button(page, "stage 70: not reached"), canvas)).toBe(true);
    });
  });

  test("has the many nodes of a choice in a grid, and a graph inside in rows of its own", async () => {
    await visit({ at: "/runs/wide" }, async (page) => {
      const canvas = page.locator(".canvas");
      await expect.poll(() => isInside(button(page, "option 7: failed"), canvas)).toBe(true);
      const shown = await page.locator("button.node").filter({ hasText: "option" }).all();
      const places = await Promise.all(shown.map((node) => node.boundingBox()));
      expect(new Set(places.map((box) => Math.round(box?.x ?? 0))).size).toBeGreaterThan(2);
      expect(new Set(places.map((box) => Math.round(box?.y ?? 0))).size).toBeGreaterThan(2);
      const inner = button(page, "inner 1: not reached");
      const other = button(page, "inner 20: not reached");
      const [one, two] = [await inner.boundingBox(), await other.boundingBox()];
      expect(two?.y).toBeGreaterThan((one?.y ?? 0) + (one?.height ?? 0));
    });
  });

  test("has room for the names of its nodes beside how often they ran", async () => {
    await visit({ at: "/runs/loop" }, async (page) => {
      await button(page, "think ×12: completed").waitFor();
      const cut =
        "[...document.querySelectorAll('.node .cut')].filter((e) => e.scrollWidth > e.clientWidth).length";
      expect(await page.evaluate(cut)).toBe(0);
    });
  });

  test("with a large checkpoint says so, in the list too", async () => {
    await visit({ at: "/runs/letter-large" }, async (page) => {
      await page.getByText(/more than warnBytes/).waitFor();
      await page.getByRole("link", { name: "Runs", exact: true }).first().click();
      const row = page.getByRole("row", { name: "letter-large" });
      await row.getByRole("img", { name: /more than warnBytes/ }).waitFor();
    });
  });

  test("whose checkpoints are corrupt says so, and what to do", async () => {
    await visit({ at: "/runs/broken", allow: /422/ }, async (page) => {
      await page.getByText("corrupt").first().waitFor();
      await page
        .getByText(/waymark repair broken/)
        .first()
        .waitFor();
    });
  });

  test("that is not there says so", async () => {
    await visit({ at: "/runs/nowhere", allow: /404/ }, async (page) => {
      await heading(page, "There is no such run").waitFor();
    });
  });
});

describe("actions ask once, show the command and happen", () => {
  test("fork with edited data, replay, roll back, delete", async () => {
    // What the page still asks of a run that it has just deleted is not there.
    await visit({ at: "/runs/article-cairns", allow: /404/ }, async (page) => {
      await button(page, "Fork").click();
      const dialog = page.getByRole("dialog");
      const data = dialog.getByLabel("Data to change");
      await data.fill('{"topic": ');
      await dialog.getByRole("button", { name: "Fork", exact: true }).click();
      await dialog.locator("textarea:focus").waitFor();
      expect(await faultsInBothThemes(page)).toEqual([]);
      await data.fill('{"topic": "trolls"}');
      expect(await confirm(page, "Fork")).toMatch(
        /^waymark fork article-cairns --at \S+ --data '\{"topic":"trolls"\}'/,
      );
      await page.locator(".crumbs", { hasText: "forked from" }).waitFor();
      await page.getByText('"trolls"').first().waitFor();
      await button(page, "More actions").click();
      await button(page, "Roll back").click();
      await page.getByRole("dialog").getByText("Its history stays").waitFor();
      await page.keyboard.press("Escape");
      await button(page, "More actions").click();
      await button(page, "Delete").click();
      await confirm(page, "Delete the run");
      await page.getByRole("table", { name: "Runs" }).waitFor();
    });
    // What a running node has saved is gone once the node is done, maybe before it is compared.
    await visit({ at: "/runs/article-cairns", allow: /404/ }, async (page) => {
      await button(page, "More actions").click();
      await button(page, "Replay from a checkpoint").click();
      await page.getByRole("dialog").getByLabel("Checkpoint").selectOption({ index: 2 });
      await confirm(page, "Replay");
      await page.locator(".crumbs", { hasText: "forked from" }).waitFor();
      await page.locator(".run-facts").getByText("completed").waitFor();
      await button(page, "More actions").click();
      await button(page, "Roll back").click();
      await page.getByRole("dialog").getByLabel("Checkpoint").selectOption({ index: 1 });
      await confirm(page, "Roll back");
      await page.getByRole("table", { name: "Checkpoints" }).getByText("rollback").waitFor();
    });
  });

  test("cancel and resume", async () => {
    const handle = samples.startRun("cancelled-one");
    handle.result().catch(() => "somebody else may stop it");
    await expect.poll(async () => (await samples.store.load("cancelled-one")).step).toBe(1);
    await handle.cancel();
    await visit({ at: "/runs/cancelled-one" }, async (page) => {
      await button(page, "Resume").click();
      await confirm(page, "Resume");
      await button(page, "wait: running").waitFor();
      await button(page, "Cancel").click();
      const dialog = page.getByRole("dialog");
      await dialog.getByText("Nothing that was saved is lost").waitFor();
      // No command stops a run of another process.
      expect(await dialog.getByText("The same from a terminal").count()).toBe(0);
      await dialog.getByRole("button", { name: "Cancel the run" }).click();
      await button(page, "Resume").waitFor();
    });
  });

  test("retry", async () => {
    await visit({ at: "/runs/long" }, async (page) => {
      const newest = button(page, /^Checkpoint /).first();
      const before = Number(await newest.textContent());
      await button(page, "Retry").click();
      expect(await confirm(page, "Retry")).toBe("waymark resume long --store file:.waymark");
      await expect.poll(async () => Number(await newest.textContent())).toBeGreaterThan(before);
      await page.getByText("stage 34 is not ready").first().waitFor();
    });
  });

  test("nothing where the studio is read-only", async () => {
    await visit({ server: many, at: "/runs/run-00001" }, async (page) => {
      await page.getByText("read-only").waitFor();
      await heading(page, "State").waitFor();
      await button(page, "More actions").click();
      for (const name of ["Fork", "Delete", "Resume"]) {
        expect(await page.getByRole("button", { name, exact: true }).count()).toBe(0);
      }
    });
  });
});

describe("dialogs and menus", () => {
  test.each([wide, tablet, phone])("fit a window of $width pixels", async (viewport) => {
    await visit({ at: "/runs/article-cairns", viewport }, async (page) => {
      const whole = page.locator("html");
      await button(page, "More actions").click();
      expect(await isInside(page.locator(".menu-panel"), whole)).toBe(true);
      await page.keyboard.press("Escape");
      for (const name of ["Replay from a checkpoint", "Roll back", "Delete"]) {
        await button(page, "More actions").click();
        await button(page, name).click();
        const dialog = page.getByRole("dialog");
        await dialog.waitFor();
        const { x = 0, width = 0 } = (await dialog.boundingBox()) ?? {};
        expect(x).toBeGreaterThanOrEqual(0);
        expect(x + width).toBeLessThanOrEqual(viewport.width);
        if (viewport === phone) expect(await faultsInBothThemes(page), name).toEqual([]);
        await dialog.getByRole("button", { name: "Keep as it is" }).click();
        await dialog.waitFor({ state: "detached" });
      }
      await page.goto(`${samples.url}/#/runs`);
      await page.getByLabel("Select article-cairns").check();
      const { x = 0, width = 0 } = (await button(page, "Clear").boundingBox()) ?? {};
      expect(x + width).toBeLessThanOrEqual(viewport.width);
      await button(page, "Columns").click();
      expect((await page.locator(".menu-panel").boundingBox())?.x).toBeGreaterThanOrEqual(0);
    });
  });

  test("take the focus, and give it back", async () => {
    await visit({ at: "/runs/article-cairns" }, async (page) => {
      const focused = page.locator(":focus");
      await button(page, "Fork").focus();
      await page.keyboard.press("Enter");
      await expect.poll(() => focused.textContent()).toBe("Fork");
      await page.getByRole("dialog").getByRole("button", { name: "Close" }).click();
      await page.getByRole("dialog").waitFor({ state: "detached" });
      await expect.poll(() => focused.textContent()).toBe("Fork");
      await button(page, "More actions").click();
      await button(page, "Delete").click();
      // Enter must not delete anything.
      await expect.poll(() => focused.textContent()).toBe("Keep as it is");
      await page.keyboard.press("Enter");
      await page.getByRole("dialog").waitFor({ state: "detached" });
      await expect.poll(() => focused.getAttribute("aria-label")).toBe("More actions");
    });
  });
});

describe("the inbox", () => {
  test("cuts a long key of what is asked", async () => {
    await visit({ at: "/inbox/wordy-paused" }, async (page) => {
      const key = page.getByRole("list", { name: "What is asked" }).locator(".key");
      expect((await key.textContent())?.length).toBeLessThan(200);
    });
  });

  test("has a form for each open pause, on a phone too, and a link to each", async () => {
    await visit({ at: "/inbox", viewport: phone }, async (page) => {
      const card = page.locator(".card", { hasText: "A-1043" });
      await card.getByText("Pay back 40 €").waitFor();
      await card.getByText(/answer due in 1 d/).waitFor();
      await card.getByLabel("Yes").check();
      await card.getByRole("button", { name: "Send the answer" }).click();
      const method = card.getByRole("group", { name: "Method" });
      await method.getByText("This is required.").waitFor();
      await card.getByLabel("voucher").check();
      await card.getByLabel(/^Reason/).fill("it was broken");
      await card.getByRole("button", { name: "Send the answer" }).click();
      await card.waitFor({ state: "detached" });
      await expect
        .poll(async () => (await samples.store.load("refund-A-1043")).status)
        .toBe("completed");
    });
    expect((await samples.store.load<{ approval: object }>("refund-A-1043")).data.approval).toEqual(
      {
        approve: true,
        method: "voucher",
        amount: 40,
        reason: "it was broken",
      },
    );
    await visit({ at: "/inbox" }, async (page) => {
      await page.locator(".card", { hasText: "Pay back 310 €" }).waitFor();
      await page.getByLabel("Graph").selectOption("refund");
      await expect.poll(() => page.locator(".card").count()).toBe(1);
      expect(page.url()).toContain("#/inbox?graph=refund");
    });
    await visit({ at: "/inbox/refund-A-1077/approval" }, async (page) => {
      await page.getByText("Pay back 310 €").waitFor();
      expect(await page.locator(".card").count()).toBe(1);
      await button(page, "As JSON").click();
      await page.getByLabel("Answer").fill('{ "approve": "perhaps" }');
      await button(page, "Send the answer").click();
      await page.getByText(/^The last answer was refused: /).waitFor();
    });
  });
});

test("a form has a field for everything in a schema, and says what is wrong where it is", async () => {
  await visit({ at: "/inbox/order/order", viewport: phone }, async (page) => {
    const group = (name: string): Locator => page.getByRole("group", { name, exact: true });
    const send = button(page, "Send the answer");
    await send.click();
    const decision = group("Decision");
    await decision.getByText("This is required.").waitFor();
    // The first field with something wrong has the focus.
    await decision.locator("input:focus").waitFor();
    expect(await faultsInBothThemes(page)).toEqual([]);
    await decision.getByLabel("Approve").check();
    await decision.getByLabel("Amount").fill("700");
    await decision.getByText("Must be at most 500.").waitFor();
    await decision.getByLabel("Reject").check();
    expect(await decision.getByLabel("Amount").count()).toBe(0);
    await decision.getByLabel("Why").fill("no");
    await decision.getByText("Must have at least 5 characters.").waitFor();
    await decision.getByLabel("Why").fill("It is late.");
    await group("Contact").getByLabel("Phone").check();
    await group("Contact").getByRole("textbox", { name: "Phone" }).fill("+123");
    const labels = group("Labels");
    for (const [index, value] of ["7", "8"].entries()) {
      await labels.getByRole("button", { name: "Add to Labels" }).click();
      await labels.getByLabel("Key").nth(index).fill("red");
      await labels.getByLabel("Value").nth(index).fill(value);
    }
    await labels.getByText("This key is there already.").first().waitFor();
    await labels.getByLabel("Key").nth(1).fill("<b>blue");
    await group("Lines").getByLabel("Sku").fill("S-1");
    await group("Lines").getByRole("button", { name: "Add to Lines" }).click();
    await group("Lines").getByLabel("Sku").nth(1).fill("S-2");
    await button(page, "Remove Lines 1").click();
    await page.getByLabel("none for Due").check();
    await page.getByLabel("At", { exact: true }).fill("2026-01-31T12:00");
    await button(page, "Add ship").click();
    await page.getByLabel("Street").fill("Main St");
    await group("Range").getByLabel("1", { exact: true }).fill("1");
    await group("Range").getByLabel("2", { exact: true }).fill("2");
    await page.getByLabel("Rest").fill('{ "any": ');
    await send.click();
    await page.getByText(/JSON/).first().waitFor();
    await page.getByLabel("Rest").fill('{ "any": "thing" }');
    await send.click();
    await page.getByText("This is settled").waitFor();
  });
  await expect.poll(async () => (await samples.store.load("order")).status).toBe("completed");
  const { answer } = (await samples.store.load<{ answer: object }>("order")).data;
  expect(answer).toEqual({
    decision: { kind: "reject", why: "It is late." },
    contact: { phone: "+123" },
    labels: { red: 7, "<b>blue": 8 },
    lines: [{ sku: "S-2", count: 1 }],
    due: null,
    at: new Date("2026-01-31T12:00").toISOString(),
    ship: { street: "Main St" },
    range: [1, 2],
    level: 3,
    rest: { any: "thing" },
  });
});

test("the figures have plots of each graph", async () => {
  await visit({ at: "/figures" }, async (page) => {
    await heading(page, "article").waitFor();
    for (const title of [
      "Runs a day",
      "Failure rate",
      "Cost a day",
      "Most expensive nodes",
      "Where runs failed",
    ]) {
      await page.getByRole("figure", { name: title }).first().waitFor();
    }
    await page.getByLabel("Graph").selectOption("refund");
    await heading(page, "article").waitFor({ state: "detached" });
    expect(page.url()).toContain("#/figures?graph=refund");
  });
});

test("data in every field stays text", async () => {
  for (const at of [
    "/runs",
    "/runs/hostile-paused",
    "/runs/hostile-failed",
    "/inbox",
    "/figures",
  ]) {
    await visit({ at }, async (page) => {
      await page.getByText(hostile).locator("visible=true").first().waitFor();
      expect(await page.locator("main img, main script, main a[href^=javascript]").count()).toBe(0);
    });
  }
});

test("a lost connection is said, and taken up again", async () => {
  await visit({ allow: /./ }, async (page) => {
    await run(page, "article-cairns").waitFor();
    await samples.stop();
    await page.getByText("Disconnected").waitFor();
    await run(page, "article-cairns").waitFor();
    await samples.start();
    await page.getByText("Disconnected").waitFor({ state: "detached" });
  });
});

describe("the look", () => {
  const screens = [
    "/runs",
    "/runs/article-avalanches",
    "/runs/refund-A-1077",
    "/runs/import-tuesday",
    "/runs/wordy-paused",
    "/runs/wordy-failed",
    "/compare?run=article-cairns&run=article-avalanches",
    "/inbox",
    "/figures",
  ];
  test.each(["light", "dark"] as const)(
    "has no fault that axe finds, in %s",
    async (colorScheme) => {
      for (const at of screens) {
        await visit({ at, colorScheme }, async (page) => {
          await page.locator("main :is(h1, h2)").first().waitFor();
          await expect.poll(() => page.locator(".loading").count()).toBe(0);
          expect(await faultsOf(page), at).toEqual([]);
        });
      }
    },
  );

  test.each([wide, tablet, phone])("fits a window of $width pixels", async (viewport) => {
    for (const at of screens) {
      await visit({ at, viewport }, async (page) => {
        await page.locator("main :is(h1, h2)").first().waitFor();
        await expect.poll(() => page.locator("main .loading").count()).toBe(0);
        const width = await page.evaluate<number>("document.documentElement.scrollWidth");
        expect(width, at).toBeLessThanOrEqual(viewport.width);
      });
    }
  });

  test("is light or dark by the system, or by the switch, from the first paint on", async () => {
    const context: BrowserContext = await browser.newContext({ colorScheme: "light" });
    const page = await context.newPage();
    await page.goto(`${samples.url}/#token=${token}`);
    const theme = (): Promise<string> => page.evaluate("document.documentElement.dataset.theme");
    const change = button(page, /^Theme: /);
    await change.waitFor();
    expect(await theme()).toBe("light");
    await change.click();
    await change.click();
    await expect.poll(theme).toBe("dark");
    // What the head's script does is done before there is a body to paint.
    await page.addInitScript(
      "new MutationObserver(() => { if (document.body) window.first ??= document.documentElement.dataset.theme; })" +
        ".observe(document, { childList: true, subtree: true })",
    );
    await page.reload();
    await page.getByLabel("Token").waitFor();
    expect(await page.evaluate("window.first")).toBe("dark");
    await context.close();
  });
});
