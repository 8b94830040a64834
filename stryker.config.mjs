import { readdirSync, readFileSync } from "node:fs";

const folders = ["src/state", "src/graph", "src/run"];
/** Of how many stretches of twelve lines one is mutated: the whole takes hours. */
const sample = Number(process.env.MUTATION_SAMPLE ?? 1);
const STRETCH = 12;

/** Every so manieth stretch of lines of each file, not beginning with the first of all. */
function sampled() {
  const stretches = folders.flatMap((folder) =>
    readdirSync(folder, { recursive: true })
      .filter((name) => name.endsWith(".ts"))
      .sort()
      .flatMap((name) => {
        const lines = readFileSync(`${folder}/${name}`, "utf8").split("\n").length;
        return Array.from({ length: Math.ceil(lines / STRETCH) }, (_, index) => {
          const first = index * STRETCH + 1;
          return `${folder}/${name}:${first}-${Math.min(first + STRETCH - 1, lines)}`;
        });
      }),
  );
  return stretches.filter((_, index) => index % sample === sample >> 1);
}

export default {
  testRunner: "vitest",
  mutate: sample === 1 ? folders.map((folder) => `${folder}/**/*.ts`) : sampled(),
  vitest: { configFile: "scripts/vitest.mutation.mjs" },
  ignorePatterns: ["bench", "coverage", "docs"],
  coverageAnalysis: "perTest",
  // What runs once at import would run every test for each of its mutants.
  ignoreStatic: true,
  reporters: ["clear-text", "progress-append-only", "html"],
  concurrency: 2,
};
