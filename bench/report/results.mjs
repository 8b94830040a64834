/**
 * What was measured, one file for each suite, so that a run of some suites leaves the others as they were. The
 * files are kept with the source: every figure of README and guide comes out of them.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";

/**
 * A suite, and the machine it was measured on.
 * @typedef {{ name: string, title: string, tables: import("../lib/measure.mjs").Table[] } & Machine} Result
 * @typedef {{ date: string, node: string, v8: string, system: string, cpu: string, memory: string,
 *   load?: number, versions: Record<string, string> }} Machine `load`: the load average when the run started
 */

/** Where a project has its results. */
export function resultsFolder(project) {
  return new URL("bench/results/", project);
}

/** @returns {Result[]} in the order of the targets in their titles (P1, P2, …); those without one at the end */
export function readResults(project) {
  const folder = resultsFolder(project);
  if (!existsSync(folder)) return [];
  return readdirSync(folder)
    .filter((file) => file.endsWith(".json"))
    .sort()
    .map((file) => JSON.parse(readFileSync(new URL(file, folder), "utf8")))
    .sort((a, b) => firstTarget(a) - firstTarget(b));
}

function firstTarget({ title }) {
  return Number(/^P(\d+)/.exec(title)?.[1] ?? 100);
}

/** @param {Result} result */
export function writeResult(project, result) {
  const folder = resultsFolder(project);
  mkdirSync(folder, { recursive: true });
  const text = `${JSON.stringify(result, null, 1)}\n`;
  writeFileSync(new URL(`${result.name}.json`, folder), text);
}
