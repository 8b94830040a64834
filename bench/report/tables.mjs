/** Results as Markdown: the performance page, and the short tables of other pages. */
import { figure } from "./draw.mjs";

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
  ["`SqliteStore`", "sqlite", /^one run, a state of/],
  [
    '`SqliteStore`, `durability: "os"`',
    "sqlite",
    /^one run, a state of/,
    'waymark, SqliteStore, durability "os"',
  ],
  ["`SqliteStore`, 100 runs at once", "sqlite", /^100 runs at once/],
  ["`RedisStore`, synced", "redis", /^one run, .*appendfsync always/],
  ["`RedisStore`, synced, 100 runs at once", "redis", /^100 runs at once, .*appendfsync always/],
  ["`PostgresStore`, PGlite", "pglite", /^one run, a state of/],
  ["`PostgresStore`, a server", "postgres", /^one run, a state of/],
  ["`PostgresStore`, a server, 100 runs at once", "postgres", /^100 runs at once/],
];
const sizes = ["1 KB", "10 KB", "100 KB"];

/** Rows of the table in the README: where each was measured, and which row of ours it shows. */
const shown = [
  ["an engine step, nothing saved", "engine", /./, "waymark, state.set"],
  ["a step saved in memory", "memory-checkpoint", /^a state of 10 KB/, "waymark, MemoryStore"],
  ["a step saved in a file, synced", "file-store", /^save a state of 10 KB/],
  ["a step saved in SQLite, synced", "sqlite", /^one run, a state of 10 KB/],
  ["the same with 100 KB", "sqlite", /^one run, a state of 100 KB/],
  ["100 runs at once in SQLite", "sqlite", /^100 runs at once, a state of 10 KB/],
  ["a step saved in Postgres", "postgres", /^one run, a state of 10 KB/],
  ["100 runs at once in Postgres", "postgres", /^100 runs at once, a state of 10 KB/],
  ["a load from a file", "file-store", /^load a state of 10 KB/],
  ["import of the core", "import", /./],
  ["the core in a bundle, gzip", "size", /./],
];

/** Of the peers' rows of a table the one that is set beside ours: that which does the same work. */
const peers = [
  ["LangGraph.js", /^LangGraph\.js(?!.*not synced)/],
  ["XState", /^XState send, state entered again/],
  ["DBOS", /^DBOS/],
];

/** The tables of a suite whose title fits. */
export function tablesOf(results, suite, title) {
  const found = results.find(({ name }) => name === suite)?.tables ?? [];
  return found.filter((table) => title.test(table.title));
}

/** All tables of all suites; `drawn` has the plots of each. */
export function allTables(results, drawn) {
  const parts = machines(results).map(({ names, machine, packages }) => {
    const which = names.length === results.length ? "" : ` (${names.join(", ")})`;
    return `Measured with ${machine}${which}. Packages: ${packages}.`;
  });
  parts.push("### Targets", targetsTable(results));
  for (const { name, title, tables } of results) {
    parts.push(`### ${title}`, `\`npm --prefix bench start -- ${name}\``);
    for (const plot of drawn.get(name) ?? []) parts.push(`![${plot.title}](images/${plot.file})`);
    for (const table of tables) parts.push(wholeTable(table));
  }
  return parts.join("\n\n");
}

/** Each target once, with what was measured wherever it applies. */
function targetsTable(results) {
  const targets = new Map();
  for (const { name, tables } of results) {
    for (const { unit, rows } of tables) {
      for (const one of rows.flatMap((row) => row.verdicts.map((v) => ({ ...v, row })))) {
        const { id, times, minus, atMost, atLeast, row } = one;
        const against = times ? `× ${times}` : minus ? `${unit} over ${minus}` : unit;
        const bound = atMost === undefined ? `≥ ${figure(atLeast)}` : `≤ ${figure(atMost)}`;
        const who = row.role === "ours" ? "" : `${row.name} `;
        const key = [id, name, `${who}${bound} ${against.replace("ours", "waymark")}`].join(" | ");
        targets.set(key, [...(targets.get(key) ?? []), one]);
      }
    }
  }
  const lines = [...targets].map(([key, verdicts]) => {
    const actual = verdicts.map((one) => one.actual).sort((a, b) => a - b);
    const [least, most] = [actual[0], actual.at(-1)].map(figure);
    const missed = verdicts.filter(({ ok }) => !ok).length;
    const how = missed === 0 ? "reached" : `missed in ${missed} of ${verdicts.length}`;
    return [key, least === most ? least : `${least}–${most}`, how];
  });
  return table(["", "suite", "target", "measured", ""], lines, () => false);
}

function wholeTable({ title, unit, rounds, rows }) {
  const lines = rows.map(({ name, role, median, fastest, slowest, toFloor, toOurs, verdicts }) => [
    role === "ours" ? `**${name}**` : name,
    figure(median),
    `${figure(fastest)}–${figure(slowest)}`,
    figure(toFloor),
    figure(toOurs),
    verdicts.map(verdict).join(", "),
  ]);
  const head = ["", "median", "range", "× floor", "× waymark", "target"];
  const caption = `**${title[0].toUpperCase()}${title.slice(1)}**; ${unit}, ${rounds} ${rounds === 1 ? "round" : "rounds"}`;
  return `${caption}\n\n${table(head, lines, (column) => column > 0 && column < 5)}`;
}

function verdict({ id, atMost, atLeast, actual, ok }) {
  const bound = atMost === undefined ? `≥ ${figure(atLeast)}` : `≤ ${figure(atMost)}`;
  return `${id} ${bound}: ${ok ? "reached" : `missed, ${figure(actual)}`}`;
}

/** Median µs of one save, by store and size of the State. */
export function storesTable(results) {
  const used = new Set();
  const lines = stores.flatMap(([store, suite, title, row]) => {
    const tables = tablesOf(results, suite, title);
    const cells = sizes.map((size) => {
      const fits = tables.find((one) => one.title.includes(`state of ${size}`));
      return figure(oursOf(fits, row)?.median);
    });
    if (cells.every((cell) => cell === "")) return [];
    used.add(suite);
    return [[store, ...cells]];
  });
  if (lines.length === 0) return "Not measured yet.";
  const from = machines(results.filter(({ name }) => used.has(name)));
  return [
    `One step with its save in µs, median, by the size of the State. ${from.map(({ machine }) => machine).join("; ")}:`,
    table(["", ...sizes], lines, (column) => column > 0),
    "All results are on [Performance](performance.md).",
  ].join("\n\n");
}

/** Ours beside the floor and the peers; `performance` is the address of the page with all of it. */
export function ratiosTable(results, performance) {
  const used = new Set();
  const lines = shown.flatMap(([what, suite, title, row]) => {
    const [found] = tablesOf(results, suite, title);
    const ours = oursOf(found, row);
    if (ours === undefined) return [];
    used.add(suite);
    const beside = peers.map(([, pattern]) => {
      const peer = found.rows.find(({ name, role }) => role === "peer" && pattern.test(name));
      return peer === undefined ? "" : `${rough(peer.toOurs / ours.toOurs)} ×`;
    });
    const unit = found.unit.replace("/step", "");
    return [[what, `${figure(ours.median)} ${unit}`, times(ours.toFloor), ...beside]];
  });
  if (lines.length === 0) return "Not measured yet.";
  const from = machines(results.filter(({ name }) => used.has(name)));
  const verdicts = results.flatMap(({ tables }) =>
    tables.flatMap(({ rows }) => rows.flatMap((row) => row.verdicts)),
  );
  const reached = verdicts.filter(({ ok }) => ok).length;
  const head = ["", "waymark", "floor", ...peers.map(([name]) => name)];
  return [
    table(head, lines, (column) => column > 0),
    `States of 10 KB unless the row says otherwise. The other columns are ratios: waymark to the floor, the least that any library would have to do, and the peers to waymark. ${from.map(({ machine }) => machine).join("; ")}. ${reached} of ${verdicts.length} targets, set before measuring, are met; [Performance](${performance}) lists all of them, including the missed ones.`,
  ].join("\n\n");
}

function oursOf(found, row) {
  return found?.rows.find(({ name, role }) => (row === undefined ? role === "ours" : name === row));
}

function times(ratio) {
  return ratio === undefined ? "" : `${figure(ratio)} ×`;
}

/** A ratio between two things that are far apart says nothing by its last digits. */
function rough(ratio) {
  return ratio < 10 ? figure(ratio) : Number(ratio.toPrecision(2)).toLocaleString("en");
}

/** Where suites were measured, and with what; one entry when all of them were in the same place. */
function machines(results) {
  const groups = new Map();
  for (const { name, date, node, v8, system, cpu, memory, load, versions } of results) {
    const machine = `${cpu}, ${memory}, ${system}, Node ${node.slice(1)} (V8 ${v8}), on ${date.slice(0, 10)}`;
    const packages = Object.entries(versions).map(([one, version]) => `${one} ${version}`);
    const key = `${machine}, ${packages}`;
    const group = groups.get(key) ?? { names: [], machine, packages: packages.join(", "), load: 0 };
    group.names.push(name);
    // A machine that does other work blurs the figures, so the reader should know.
    if (load > Number.parseInt(cpu, 10)) group.load = Math.max(group.load, load);
    groups.set(key, group);
  }
  return [...groups.values()].map(({ machine, load, ...rest }) => ({
    ...rest,
    machine: load === 0 ? machine : `${machine}, load average up to ${figure(load)}`,
  }));
}

function table(head, lines, isNumber) {
  const rule = head.map((_, column) => (isNumber(column) ? "---:" : "---"));
  return [head, rule, ...lines].map((cells) => `| ${cells.join(" | ")} |`).join("\n");
}
