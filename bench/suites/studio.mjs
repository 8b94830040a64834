import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { gzipSync } from "node:zlib";
import { newFolder } from "../lib/folder.mjs";
import { compare } from "../lib/measure.mjs";
import { isQuick } from "../lib/quick.mjs";
import { entry, isBuilt, root } from "../lib/waymark.mjs";

export const name = "studio";
export const title = "P17: the studio";

const browserPath = process.env.CHROMIUM_PATH ?? "/usr/bin/chromium";
const pageFolder = join(root, "dist/studio/page");

export async function run() {
  if (!isBuilt) return [];
  const folder = newFolder();
  const path = join(folder, "waymark.db");
  const counts = isQuick() ? [1000, 10_000] : [10_000, 100_000];
  const tables = [await pageSize()];
  for (const [index, count] of counts.entries()) {
    await addRuns(path, index === 0 ? 0 : counts[index - 1], count);
    if (index === 0) tables.push(await firstPaint(path));
    tables.push(await runsPage(path, count));
  }
  return tables;
}

function pageSize() {
  const gzipped = (file) => gzipSync(readFileSync(join(pageFolder, file)), { level: 9 }).length;
  const sample = () => readdirSync(pageFolder).reduce((sum, file) => sum + gzipped(file), 0) / 1000;
  return compare({
    title: "the page, all its files, gzip level 9",
    unit: "KB",
    rounds: 1,
    warmUp: 0,
    contenders: [{ name: "waymark", role: "ours", sample, goals: [{ id: "P17", atMost: 150 }] }],
  });
}

/** From the start of the command to what an open tab of a browser paints first. */
async function firstPaint(path) {
  const { chromium } = await import("playwright-core").catch(() => ({}));
  const isThere = chromium !== undefined && existsSync(browserPath);
  const browser = isThere
    ? await chromium.launch({ executablePath: browserPath, args: ["--no-sandbox"] })
    : undefined;
  try {
    return await compare({
      title: "waymark studio, from the start of the command",
      unit: "ms",
      rounds: 9,
      warmUp: 2,
      contenders: [
        {
          name: "waymark, until it prints its link",
          role: browser ? "reference" : "ours",
          sample: () => withCommand(path, async () => Date.now()),
        },
        browser && {
          name: "waymark, until the first paint",
          role: "ours",
          sample: () => paint(browser, path),
          goals: [{ id: "P17", atMost: 500 }],
        },
      ],
    });
  } finally {
    await browser?.close();
  }
}

/** The milliseconds from the start of the command to the moment that `reach` gives. */
async function withCommand(path, reach) {
  const command = join(root, "dist/cli/main.js");
  const args = ["studio", "--no-config", "--no-open", "--port", "0", "--store", `sqlite:${path}`];
  const started = Date.now();
  const child = spawn(process.execPath, [command, ...args, "--json"], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  try {
    const [text] = await once(child.stdout, "data");
    return (await reach(JSON.parse(text).url)) - started;
  } finally {
    child.kill("SIGINT");
    await once(child, "exit");
  }
}

async function paint(browser, path) {
  const page = await browser.newPage();
  try {
    return await withCommand(path, async (link) => {
      await page.goto(link);
      return page.evaluate(paintedAt);
    });
  } finally {
    await page.close();
  }
}

const paintedAt = `new Promise((resolve) => {
  const observer = new PerformanceObserver((list) => {
    const paint = list.getEntriesByName("first-contentful-paint")[0];
    if (paint) resolve(performance.timeOrigin + paint.startTime);
  });
  observer.observe({ type: "paint", buffered: true });
})`;

/** The first page of runs, and one from the middle; each of a studio that has seen none of them. */
async function runsPage(path, count) {
  const [{ SqliteStore }, { studio }] = await Promise.all(
    ["stores/sqlite.js", "studio/index.js"].map(
      (file) => import(pathToFileURL(join(root, "dist", file)).href),
    ),
  );
  const store = new SqliteStore({ path });
  const summaries = await store.runs({ limit: count / 2 });
  const { savedAt, runId } = summaries.at(-1);
  const middle = Buffer.from(JSON.stringify([savedAt, runId])).toString("base64url");
  const token = "a-token-for-the-bench";
  const sample = (query) => async () => {
    const handler = studio({ store, token });
    const headers = { authorization: `Bearer ${token}` };
    const start = performance.now();
    const response = await handler(new Request(`http://localhost/api/runs${query}`, { headers }));
    const { runs } = JSON.parse(await response.text());
    const elapsed = performance.now() - start;
    if (runs.length !== 50) throw new Error(`a page of ${runs.length} runs`);
    await handler.close();
    return elapsed;
  };
  const goals = [{ id: "P17", atMost: 100 }];
  return compare({
    title: `a page of 50 runs out of ${count.toLocaleString("en")} in SQLite`,
    unit: "ms",
    contenders: [
      { name: "waymark, the newest", role: "ours", sample: sample(""), goals },
      {
        name: "waymark, from the middle",
        role: "reference",
        sample: sample(`?cursor=${middle}`),
        goals,
      },
    ],
  });
}

/** Saves runs in a database, as far as there are fewer. */
async function addRuns(path, from, to) {
  const [{ State }, { SqliteStore }] = await Promise.all(
    [entry, join(root, "dist/stores/sqlite.js")].map((file) => import(pathToFileURL(file).href)),
  );
  const store = new SqliteStore({ path });
  for (let first = from; first < to; first += 1000) {
    await Promise.all(
      Array.from({ length: 1000 }, (_, index) => {
        const metadata = { customer: `c${(first + index) % 50}` };
        return store.save(State.create({ n: first + index }, { metadata }));
      }),
    );
  }
  await store.close();
}
