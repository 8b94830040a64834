import { readFileSync } from "node:fs";
import { cpus, loadavg, platform, release, totalmem } from "node:os";
import { root } from "../lib/waymark.mjs";

const bounds = { atMost: "≤", atLeast: "≥" };

/** The machine, Node and what is installed, read from the installed packages themselves. */
export function environment() {
  const { dependencies } = manifest(new URL("../package.json", import.meta.url));
  const versions = Object.keys(dependencies).map((name) => [
    name,
    manifest(new URL(`../node_modules/${name}/package.json`, import.meta.url)).version,
  ]);
  return {
    date: new Date().toISOString(),
    node: process.version,
    v8: process.versions.v8,
    system: `${platform()} ${release()}`,
    cpu: `${cpus().length} × ${cpus()[0]?.model.trim() ?? "unknown"}`,
    memory: `${Math.round(totalmem() / 2 ** 30)} GB`,
    load: loadavg()[1],
    versions: Object.fromEntries(versions),
  };
}

/** Dependencies that both manifests name in different versions: the floor would not be ours. */
export function versionsApart(versions) {
  const dependencies = manifest(new URL("package.json", `file://${root}`), {}).dependencies ?? {};
  return Object.keys(dependencies)
    .filter((name) => name in versions && versions[name] !== dependencies[name])
    .map((name) => `${name} is ${versions[name]} here and ${dependencies[name]} in waymark`);
}

export function printEnvironment({ node, v8, system, cpu, memory, load, versions }) {
  console.log(
    `node ${node} (V8 ${v8}), ${system}, ${cpu}, ${memory}, load average ${figure(load)}`,
  );
  console.log(
    Object.entries(versions)
      .map((entry) => entry.join(" "))
      .join(", "),
  );
}

/** @param {import("../lib/measure.mjs").Table} table */
export function printTable({ title, unit, rows }) {
  const cells = rows.map((row) => [
    row.name,
    figure(row.median),
    `${figure(row.fastest)}–${figure(row.slowest)}`,
    figure(row.toFloor),
    figure(row.toOurs),
    row.verdicts.map(verdict).join("; "),
  ]);
  const head = ["", `${unit}, median`, "range", "× floor", "× ours", "target"];
  const widths = head.map((_, column) =>
    Math.max(...[head, ...cells].map((line) => line[column].length)),
  );
  const print = (line) =>
    console.log(
      `  ${line.map((cell, column) => (column === 0 || column === 5 ? cell.padEnd(widths[column]) : cell.padStart(widths[column]))).join("  ")}`.trimEnd(),
    );
  console.log(`\n  ${title}`);
  print(head);
  for (const line of cells) print(line);
}

/** All verdicts of a run in one count, the missed ones by name. */
export function printSummary(suites) {
  const judged = suites.flatMap(({ name, tables }) =>
    tables.flatMap(({ title, rows }) =>
      rows.flatMap((row) => row.verdicts.map((v) => ({ ...v, name, title, row: row.name }))),
    ),
  );
  const missed = judged.filter(({ ok }) => !ok);
  console.log(`\n${judged.length - missed.length} of ${judged.length} targets reached`);
  for (const one of missed)
    console.log(`  missed in ${one.name}, ${one.title}: ${one.row}: ${verdict(one)}`);
  return missed.length;
}

function verdict(goal) {
  const bound = goal.atMost === undefined ? "atLeast" : "atMost";
  const against = goal.times ? ` × ${goal.times}` : goal.minus ? ` over ${goal.minus}` : "";
  return `${goal.id} ${bounds[bound]} ${goal[bound]}${against}: ${figure(goal.actual)} ${goal.ok ? "ok" : "MISSED"}`;
}

function figure(value) {
  if (value === undefined) return "";
  const digits = Math.abs(value) < 10 ? 2 : Math.abs(value) < 100 ? 1 : 0;
  return value.toLocaleString("en", {
    minimumFractionDigits: digits,
    maximumFractionDigits: digits,
  });
}

function manifest(url, otherwise) {
  try {
    return JSON.parse(readFileSync(url, "utf8"));
  } catch (error) {
    if (otherwise !== undefined && error.code === "ENOENT") return otherwise;
    throw error;
  }
}
