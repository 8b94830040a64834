import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";
import manifest from "./package.json" with { type: "json" };

/** Each entry point of the package, by its public name, at its source file. */
const alias = Object.entries(manifest.exports).flatMap(([name, target]) => {
  if (typeof target === "string") return [];
  const source = target.default.replace("./dist/", "./src/").replace(/\.js$/, ".ts");
  return [
    {
      find: new RegExp(`^waymark${name.slice(1)}$`),
      replacement: fileURLToPath(new URL(source, import.meta.url)),
    },
  ];
});

export default defineConfig({
  resolve: { alias },
  test: {
    include: ["test/**/*.test.ts"],
    testTimeout: 30_000,
    hookTimeout: 30_000,
    // Crash tests signal and kill: a process of their own keeps that from the other tests.
    pool: "forks",
    typecheck: { include: ["test/types/**/*.test-d.ts"], tsconfig: "./tsconfig.json" },
    coverage: {
      provider: "v8",
      include: ["src/**/*.ts"],
      reporter: [["text", { skipFull: true }]],
      thresholds: { lines: 95, branches: 95, functions: 95, statements: 95 },
    },
  },
});
