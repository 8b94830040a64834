/** node main.mjs [--strict] [suite…]: runs all suites, or those named; --strict fails when a target is missed. */
import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { writeGuide } from "./plots.mjs";
import {
  environment,
  printEnvironment,
  printSummary,
  printTable,
  versionsApart,
} from "./report.mjs";
import { isBuilt } from "./waymark.mjs";

const suitesFolder = new URL("./suites/", import.meta.url);
const resultsFolder = new URL("./results/", import.meta.url);

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { strict: { type: "boolean" } },
});
const available = readdirSync(suitesFolder)
  .filter((file) => file.endsWith(".mjs"))
  .map((file) => file.slice(0, -".mjs".length));
const unknown = positionals.filter((name) => !available.includes(name));
if (unknown.length > 0) {
  console.error(`no suite named ${unknown.join(", ")}; there are ${available.join(", ")}`);
  process.exit(2);
}

const machine = environment();
printEnvironment(machine);
for (const warning of versionsApart(machine.versions)) console.warn(`warning: ${warning}`);

const suites = [];
for (const name of positionals.length > 0 ? positionals : available) {
  const { title, run } = await import(new URL(`${name}.mjs`, suitesFolder).href);
  console.log(`\n${title}  (${name})`);
  const tables = await run();
  for (const table of tables) printTable(table);
  suites.push({ name, title, tables });
}

const missed = printSummary(suites);
mkdirSync(resultsFolder, { recursive: true });
const results = { ...machine, suites };
writeFileSync(new URL("latest.json", resultsFolder), `${JSON.stringify(results, null, 2)}\n`);
console.log("\nwritten to bench/results/latest.json");
// The guide shows all suites of one run, or none of it.
if (positionals.length === 0 && isBuilt) {
  writeGuide(results);
  console.log("tables and plots written to guide/");
}

if (!isBuilt) {
  console.error("waymark was not measured: dist/index.js is missing, build it first");
  process.exitCode = 1;
} else if (values.strict && missed > 0) {
  process.exitCode = 1;
}
