/**
 * node plots.mjs [--check]: writes what is in `results/` into README and guide: tables between the marks of their
 * pages, and plots as SVG into `guide/images`. With --check it writes nothing, and fails if something would change.
 * `main.mjs` calls it when it has written results.
 */
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { draw } from "./draw.mjs";
import { readResults } from "./results.mjs";
import { allTables, ratiosTable, storesTable, tablesOf } from "./tables.mjs";
import { workersTables } from "./worker-model.mjs";

const project = new URL("../../", import.meta.url);
const images = "guide/images/";

/** What is worth a plot: the tables of a suite whose title fits. Of a suite that is not here, all tables are. */
const plots = [
  { suite: "engine", tables: /./, title: "One engine step, no checkpoint" },
  { suite: "memory-checkpoint", tables: /one-key/, title: "A one-key State, saved in memory" },
  { suite: "memory-checkpoint", tables: /^a state of/, title: "A larger State, saved in memory" },
  { suite: "file-store", tables: /^save a state of (1|10|100) KB/, title: "Files: one save" },
  { suite: "file-store", tables: /^load a state of (1|10|100) KB/, title: "Files: one load" },
  { suite: "sqlite", tables: /^one run, a state of/, title: "SQLite: one save, one run" },
  { suite: "sqlite", tables: /^100 runs at once/, title: "SQLite: one save, many runs at once" },
  { suite: "postgres", tables: /^one run, a state of/, title: "Postgres: one save, one run" },
  { suite: "postgres", tables: /runs at once/, title: "Postgres: one save, many runs at once" },
  { suite: "workers", tables: /nodes that/, title: "Runs in a second, by the number of workers" },
  { suite: "workers", tables: /^one node/, title: "One node in a worker, beside its save" },
  { suite: "codecs", tables: /^(en|de)code a conversation/, title: "A State as JSON and back" },
  { suite: "codecs", tables: /sealed/, title: "Compressed and encrypted documents" },
];

/** The plots of a suite: those named above, or else one for each unit that it measures in. */
function plotsOf(results, { name, title, tables }) {
  const named = plots.filter(({ suite }) => suite === name);
  const groups =
    named.length > 0
      ? named.map((plot) => [plot.title, tablesOf(results, name, plot.tables)])
      : [...new Set(tables.map(({ unit }) => unit))].map((unit, _, { length }) => [
          length === 1 ? title : `${title}, ${unit}`,
          tables.filter((table) => table.unit === unit),
        ]);
  return groups
    .filter(([, group]) => group.some(({ rows }) => rows.length > 1))
    .map(([plotTitle, group], index) => ({
      title: plotTitle,
      file: `bench-${name}-${index + 1}.svg`,
      svg: draw(plotTitle, group),
    }));
}

/** Each file of README and guide that shows results, as it is to be. */
function filesOf(folder, results) {
  const drawn = new Map(results.map((result) => [result.name, plotsOf(results, result)]));
  const files = new Map();
  const fill = (page, name, text) => {
    const before = files.get(page) ?? readFileSync(new URL(page, folder), "utf8");
    const mark = new RegExp(`(<!-- measured: ${name} -->\n).*?(<!-- /measured -->)`, "s");
    if (!mark.test(before)) throw new Error(`${page} has no mark "measured: ${name}"`);
    files.set(
      page,
      before.replace(mark, (_, open, close) => `${open}\n${text}\n\n${close}`),
    );
  };
  const all = results.length === 0 ? "Not measured yet." : allTables(results, drawn);
  fill("guide/performance.md", "results", all);
  fill("guide/checkpoints-and-stores.md", "stores", storesTable(results));
  fill("guide/many-machines.md", "workers", workersTables(results));
  fill("guide/comparison.md", "ratios", ratiosTable(results, "performance.md"));
  fill("README.md", "ratios", ratiosTable(results, "guide/performance.md"));
  for (const { file, svg } of [...drawn.values()].flat()) files.set(images + file, svg);
  return files;
}

/** Plots of results that are no more. */
function strayPlots(folder, files) {
  return readdirSync(new URL(images, folder))
    .filter((file) => file.startsWith("bench-"))
    .map((file) => images + file)
    .filter((path) => !files.has(path));
}

/** The files that are not what the results say; an empty list when all are. */
export function staleFiles(folder = project) {
  const files = filesOf(folder, readResults(folder));
  const isStale = ([path, text]) => {
    const url = new URL(path, folder);
    return !existsSync(url) || readFileSync(url, "utf8") !== text;
  };
  return [...[...files].filter(isStale).map(([path]) => path), ...strayPlots(folder, files)];
}

/** Writes the pages and the plots. */
export function writeGuide(folder = project) {
  const files = filesOf(folder, readResults(folder));
  for (const path of strayPlots(folder, files)) rmSync(new URL(path, folder));
  for (const [path, text] of files) writeFileSync(new URL(path, folder), text);
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  if (process.argv.includes("--check")) {
    const stale = staleFiles();
    for (const path of stale) console.error(`${path} is not what bench/results says`);
    process.exitCode = stale.length === 0 ? 0 : 1;
  } else {
    writeGuide();
    console.log("tables and plots written to README.md and guide/");
  }
}
