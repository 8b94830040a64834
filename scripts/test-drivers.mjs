// The tests of SqliteStore on every SQLite driver, each in a runtime that has it.
//
//   npm run test:drivers [runtime …]   all by default: node node22 node24 node26 bun
import { bundle, install, run, runtimes } from "./runtimes.mjs";

const vitest = ["node_modules/vitest/vitest.mjs", "run", "test/stores/sqlite/", "--silent"];
// Where there is a driver in the runtime it is used first, then better-sqlite3, then libsql.
const drivers = {
  node: ["libsql", "better-sqlite3"],
  node22: ["node:sqlite"],
  node24: ["node:sqlite"],
  node26: ["node:sqlite"],
  bun: ["bun:sqlite"],
};

const asked = process.argv.slice(2);
const names = asked.length === 0 ? Object.keys(drivers) : asked;
const unknown = names.find((name) => !Object.hasOwn(drivers, name));
if (unknown !== undefined) throw new Error(`${unknown} is none of ${Object.keys(drivers)}`);

const modules = install(names.flatMap((name) => runtimes[name].package ?? []));
const native = names.includes("node") ? install(["better-sqlite3@12.11.1"]) : "";
const suite = await bundle("test/stores/fixtures/sqlite-suite.ts", modules);

let passes = true;
for (const name of names) {
  const command = runtimes[name].command(modules);
  for (const driver of drivers[name]) {
    const env = driver === "better-sqlite3" ? { NODE_PATH: native } : {};
    const title = `${driver} on ${name}`;
    // Vitest does not run on every runtime.
    if (name === "bun") passes = run(title, command, [suite, driver]) && passes;
    else passes = run(title, command, vitest, env) && passes;
  }
}
process.exit(passes ? 0 : 1);
