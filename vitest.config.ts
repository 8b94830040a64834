import { readdirSync, readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
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
export const alias = [
  ...Object.entries(manifest.exports).flatMap(([name, target]) =>
    typeof target === "string" ? [] : [toSource(`waymark${name.slice(1)}`, target.default)],
  ),
  ...Object.entries(manifest.imports).map(([name, target]) => toSource(name, target.node)),
];

const TESTS = "test/**/*.test.ts";

/** The folders of tests that leave nothing behind in their process, unless they replace modules or register something. */
const PURE = /^test\/(checkpoint|codecs|graph|nodes|recovery|report|run|state)\//;
const KEEPS = /vi\.(mock|doMock|resetModules)\(|register(Type|CheckpointStore|Observer)\(/;

const sharing = readdirSync(join(import.meta.dirname, "test"), {
  recursive: true,
  encoding: "utf8",
})
  .map((file) => `test/${file}`)
  .filter((file) => PURE.test(file) && file.endsWith(".test.ts"))
  .filter((file) => !KEEPS.test(readFileSync(join(import.meta.dirname, file), "utf8")));

export default defineConfig(({ mode }) => ({
  resolve: { alias },
  test: {
    // Only what hangs is to meet these: some tests work for long, on a machine that does other things as well.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    // Crash tests signal and kill, which a thread can't.
    pool: "forks",
    // Files share a process: whatever a test replaced is put back before the next, even if the test failed.
    restoreMocks: true,
    unstubEnvs: true,
    unstubGlobals: true,
    // A project does not inherit the mode: --mode torture or simulate.
    projects: [
      // Files share the modules of their process: to load them takes longer than most of these tests.
      {
        extends: true,
        mode,
        test: { name: "shared", isolate: false, include: sharing },
      },
      {
        extends: true,
        mode,
        test: { name: "isolated", include: [TESTS], exclude: sharing },
      },
      {
        extends: true,
        mode,
        test: {
          name: "types",
          include: [],
          typecheck: {
            enabled: true,
            include: ["test/types/**/*.test-d.ts"],
            tsconfig: "./test/types/tsconfig.json",
          },
        },
      },
    ],
    // Many tests wait for disks and processes; one worker more than cores keeps every core busy.
    maxWorkers: availableParallelism() + 1,
    coverage: {
      provider: "v8",
      include: ["src/**/*.ts"],
      // What runs in a browser is tested there: `npm run test:site`.
      exclude: ["src/studio/page/**"],
      reporter: [["text", { skipFull: true }]],
      thresholds: { lines: 95, branches: 95, functions: 95, statements: 95 },
    },
  },
}));
