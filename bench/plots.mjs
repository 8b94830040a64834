/**
 * node plots.mjs: writes what `results/latest.json` has into the guide: tables between the marks of its pages,
 * and plots as SVG into `guide/images`. A suite without results is left out. `main.mjs` calls it after all
 * suites ran.
 */
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const guide = new URL("../guide/", import.meta.url);
const images = new URL("images/", guide);

/** What is worth a plot: the tables of a suite whose title fits. */
const plots = [
  { suite: "engine", tables: /./, title: "One engine step, no checkpoint" },
  {
    suite: "memory-checkpoint",
    tables: /one-key/,
    title: "A checkpoint in memory after every step",
  },
  { suite: "file-store", tables: /^save a state of (1|10|100) KB/, title: "Files: one save" },
  { suite: "journal", tables: /^one run, a state of/, title: "Journal: one save, one run" },
  { suite: "journal", tables: /runs at once/, title: "Journal: one save, many runs at once" },
  { suite: "postgres", tables: /^one run, a state of/, title: "Postgres: one save, one run" },
  { suite: "postgres", tables: /runs at once/, title: "Postgres: one save, many runs at once" },
  { suite: "import", tables: /./, title: "Start of a process" },
  { suite: "size", tables: /./, title: "Size of the core" },
];

/** Rows of the table in "Checkpoints and stores": what a row is called there, and where it was measured. */
const stores = [
  ["`MemoryStore`", "memory-checkpoint", /^a state of/, "waymark, MemoryStore"],
  ["`FileStore`", "file-store", /^save a state of/, "waymark, FileStore"],
  [
    '`FileStore`, `durability: "os"`',
    "file-store",
    /^save a state of/,
    'waymark, FileStore, durability "os"',
  ],
  ["`JournalStore`", "journal", /^one run, a state of/],
  ["`JournalStore`, 100 runs at once", "journal", /^100 runs at once/],
  ["`PostgresStore`, a server", "postgres", /^one run, a state of/],
  ["`PostgresStore`, a server, 100 runs at once", "postgres", /^100 runs at once/],
];
const sizes = ["1 KB", "10 KB", "100 KB"];

const roles = { floor: "floor", ours: "waymark", peer: "peer", reference: "other" };

/** Writes the pages and the plots. */
export function writeGuide(results) {
  for (const file of readdirSync(images))
    if (file.startsWith("bench-")) rmSync(new URL(file, images));
  const drawn = new Map();
  for (const [index, plot] of plots.entries()) {
    const tables = tablesOf(results, plot);
    if (tables.length === 0) continue;
    const file = `bench-${plot.suite}-${index + 1}.svg`;
    writeFileSync(new URL(file, images), draw(plot.title, tables));
    drawn.set(plot.suite, [...(drawn.get(plot.suite) ?? []), { file, title: plot.title }]);
  }
  fill("performance.md", "results", performance(results, drawn));
  fill("checkpoints-and-stores.md", "stores", storesTable(results));
}

function tablesOf({ suites }, { suite, tables }) {
  const found = suites.find(({ name }) => name === suite)?.tables ?? [];
  return found.filter(({ title }) => tables.test(title));
}

/** Puts text between `<!-- measured: name -->` and `<!-- /measured -->`. */
function fill(page, name, text) {
  const url = new URL(page, guide);
  const before = readFileSync(url, "utf8");
  const mark = new RegExp(`(<!-- measured: ${name} -->\n).*?(<!-- /measured -->)`, "s");
  if (!mark.test(before)) throw new Error(`guide/${page} has no mark "measured: ${name}"`);
  writeFileSync(
    url,
    before.replace(mark, (_, open, close) => `${open}\n${text}\n${close}`),
  );
}

function performance(results, drawn) {
  const { date, node, v8, system, cpu, memory, versions } = results;
  const packages = Object.entries(versions).map(([name, version]) => `${name} ${version}`);
  const parts = [
    `Measured on ${date.slice(0, 10)}: ${cpu}, ${memory}, ${system}, Node ${node.slice(1)} (V8 ${v8}).`,
    `Packages: ${packages.join(", ")}.`,
  ];
  for (const { name, title, tables } of results.suites) {
    parts.push(`### ${title}`, `\`npm --prefix bench start -- ${name}\``);
    for (const plot of drawn.get(name) ?? []) parts.push(`![${plot.title}](images/${plot.file})`);
    for (const table of tables) parts.push(markdown(table));
  }
  return `${parts.join("\n\n")}\n`;
}

function markdown({ title, unit, rounds, rows }) {
  const lines = rows.map(({ name, role, median, fastest, slowest, toFloor, toOurs, verdicts }) =>
    [
      role === "ours" ? `**${name}**` : name,
      figure(median),
      `${figure(fastest)}–${figure(slowest)}`,
      figure(toFloor),
      figure(toOurs),
      verdicts.map(verdict).join(", "),
    ].join(" | "),
  );
  return [
    `**${title[0].toUpperCase()}${title.slice(1)}**; ${unit}, ${rounds} rounds`,
    "",
    "| | median | range | × floor | × waymark | target |",
    "| --- | ---: | ---: | ---: | ---: | --- |",
    ...lines.map((line) => `| ${line} |`),
  ].join("\n");
}

function verdict({ id, atMost, atLeast, ok }) {
  const bound = atMost === undefined ? `≥ ${figure(atLeast)}` : `≤ ${figure(atMost)}`;
  return `${id} ${bound}: ${ok ? "reached" : "missed"}`;
}

/** Median µs of one save, by store and size of the State; nothing when no store was measured. */
function storesTable(results) {
  const lines = stores.flatMap(([store, suite, title, row]) => {
    const tables = tablesOf(results, { suite, tables: title });
    const cells = sizes.map((size) => {
      const table = tables.find(({ title }) => title.includes(`state of ${size}`));
      const found = table?.rows.find(({ name, role }) =>
        row === undefined ? role === "ours" : name === row,
      );
      return figure(found?.median);
    });
    return cells.some((cell) => cell !== "") ? [`| ${[store, ...cells].join(" | ")} |`] : [];
  });
  if (lines.length === 0) return "";
  const { date, cpu, node } = results;
  return [
    `One step with its save in µs, median, by the size of the State; ${cpu}, Node ${node.slice(1)}, ${date.slice(0, 10)}:`,
    "",
    `| | ${sizes.join(" | ")} |`,
    "| --- | ---: | ---: | ---: |",
    ...lines,
    "",
    "The whole of it is on [Performance](performance.md).",
    "",
  ].join("\n");
}

const width = 720;
const labels = 310;
const rowHeight = 22;

/** Bars on a logarithmic scale, one group for each table. */
function draw(title, tables) {
  const rows = tables.flatMap((table) => table.rows);
  const [least, most] = [Math.min, Math.max].map((of) => of(...rows.map(({ median }) => median)));
  const low = 10 ** Math.floor(Math.log10(least) - 0.3);
  const span = Math.log10(most / low) || 1;
  const length = (value) => ((width - labels - 90) * Math.log10(value / low)) / span;
  let y = 34;
  const body = [];
  for (const { title: group, unit, rows: bars } of tables) {
    y += 22;
    body.push(
      `<text class="group" x="8" y="${y}">${escaped(clip(`${group}, ${unit}`, 108))}</text>`,
    );
    for (const { name, role, median } of bars) {
      y += rowHeight;
      const bar = Math.max(2, length(median)).toFixed(1);
      body.push(
        `<text class="name" x="${labels - 8}" y="${y}">${escaped(clip(name, 50))}</text>`,
        `<rect class="${roles[role] ?? "other"}" x="${labels}" y="${y - 12}" width="${bar}" height="15" rx="2"/>`,
        `<text x="${labels + Number(bar) + 6}" y="${y}">${figure(median)}</text>`,
      );
    }
    y += 6;
  }
  const height = y + 34;
  const style = `text{font:12px system-ui,sans-serif;fill:#1f2328}.title{font-size:15px;font-weight:600}.group{font-weight:600}.name{text-anchor:end}.note{fill:#59636e}.waymark{fill:#2b8a3e}.floor{fill:#868e96}.peer{fill:#e67700}.other{fill:#74b816}.page{fill:#fff}@media(prefers-color-scheme:dark){text{fill:#e6edf3}.note{fill:#9198a1}.page{fill:#0d1117}.waymark{fill:#40c057}.peer{fill:#ff922b}}`;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img">`,
    `<title>${escaped(title)}</title><style>${style}</style>`,
    `<rect class="page" width="${width}" height="${height}" rx="6"/>`,
    `<text class="title" x="8" y="24">${escaped(title)}</text>`,
    ...body,
    `<text class="note" x="8" y="${height - 12}">Medians; logarithmic scale; shorter is better. Green is waymark, grey the floor, orange peers.</text>`,
    "</svg>\n",
  ].join("\n");
}

function clip(text, most) {
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}

function escaped(text) {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

function figure(value) {
  if (value === undefined || value === null) return "";
  const digits = Math.abs(value) < 10 ? 2 : Math.abs(value) < 100 ? 1 : 0;
  return value.toLocaleString("en", {
    minimumFractionDigits: Number.isInteger(value) ? 0 : digits,
    maximumFractionDigits: digits,
  });
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  const latest = new URL("results/latest.json", import.meta.url);
  if (!existsSync(latest)) {
    console.error("there are no results: run npm run bench");
    process.exit(1);
  }
  writeGuide(JSON.parse(readFileSync(latest, "utf8")));
  console.log(
    "written into guide/performance.md, guide/checkpoints-and-stores.md and guide/images",
  );
}
