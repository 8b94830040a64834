/**
 * node main.mjs [--strict] [--write] [--quick] [--beside FOLDER] [suite…]: runs all suites, or those named. --strict
 * fails when a target is missed. A run of all suites writes its results and the guide; a run of some only with --write,
 * and leaves the others. --quick takes one round of a tenth of the steps, to see that a suite works, and writes nothing.
 * --beside measures the build of another checkout instead of the peers, in the same rounds, and writes nothing.
 */
import { readdirSync } from "node:fs";
import { resolve } from "node:path";
import { parseArgs } from "node:util";
import { setBeside } from "./lib/beside.mjs";
import { setQuick } from "./lib/quick.mjs";
import { isBuilt } from "./lib/waymark.mjs";
import { writeGuide } from "./report/plots.mjs";
import {
  environment,
  printEnvironment,
  printSummary,
  printTable,
  versionsApart,
} from "./report/print.mjs";
import { writeResult } from "./report/results.mjs";

const suitesFolder = new URL("./suites/", import.meta.url);
const project = new URL("../", import.meta.url);

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    strict: { type: "boolean" },
    write: { type: "boolean" },
    quick: { type: "boolean" },
    beside: { type: "string" },
  },
});
setQuick(values.quick === true);
if (values.beside !== undefined) setBeside(resolve(values.beside));
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

const isMeasured = isBuilt && !values.quick && values.beside === undefined;
const isWritten = isMeasured && (values.write || positionals.length === 0);
const suites = [];
for (const name of positionals.length > 0 ? positionals : available) {
  const { title, run } = await import(new URL(`${name}.mjs`, suitesFolder).href);
  console.log(`\n${title}  (${name})`);
  const tables = await run();
  for (const table of tables) printTable(table);
  suites.push({ name, title, tables });
  // At once, so that a suite that fails later does not take it along.
  if (isWritten) writeResult(project, { ...machine, name, title, tables });
}

const missed = printSummary(suites);
if (isWritten) {
  writeGuide(project);
  console.log("\nwritten to bench/results/, README.md and guide/");
}

if (!isBuilt) {
  console.error("waymark was not measured: dist/index.js is missing, build it first");
  process.exitCode = 1;
} else if (values.strict && missed > 0) {
  process.exitCode = 1;
}
