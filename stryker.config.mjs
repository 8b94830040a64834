export default {
  testRunner: "vitest",
  mutate: ["src/state/**/*.ts", "src/graph/**/*.ts", "src/run/**/*.ts"],
  ignorePatterns: ["bench", "coverage", "docs"],
  coverageAnalysis: "perTest",
  reporters: ["clear-text", "progress", "html"],
  concurrency: 2,
};
