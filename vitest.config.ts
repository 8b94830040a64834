import { availableParallelism } from "node:os";
import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";
import manifest from "./package.json" with { type: "json" };

const toSource = (name: string, target: string) => ({
  find: new RegExp(`^${name}$`),
  replacement: fileURLToPath(
    new URL(target.replace("./dist/", "./src/").replace(/\.js$/, ".ts"), import.meta.url),
  ),
});

/** Each entry point of the package, and what it imports by condition, at its source file. */
const alias = [
  ...Object.entries(manifest.exports).flatMap(([name, target]) =>
    typeof target === "string" ? [] : [toSource(`waymark${name.slice(1)}`, target.default)],
  ),
  ...Object.entries(manifest.imports).map(([name, target]) => toSource(name, target.node)),
];

export default defineConfig({
  resolve: { alias },
  test: {
    include: ["test/**/*.test.ts"],
    // Only what hangs is to meet these: some tests work for long, on a machine that does other things as well.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    // Crash tests signal and kill: a process of their own keeps that from the other tests.
    pool: "forks",
    // Many tests wait for disks and processes; Vitest would leave a core of two idle.
    maxWorkers: Math.max(2, availableParallelism() - 1),
    typecheck: { include: ["test/types/**/*.test-d.ts"], tsconfig: "./tsconfig.json" },
    coverage: {
      provider: "v8",
      include: ["src/**/*.ts"],
      // What runs in a browser is tested there: `npm run test:site`.
      exclude: ["src/studio/page/**"],
      reporter: [["text", { skipFull: true }]],
      thresholds: { lines: 95, branches: 95, functions: 95, statements: 95 },
    },
  },
});
