// The tests that mutants have to pass: those of the core that start no process and search no space.
import config from "../vitest.config.ts";

const base = config({ mode: "test", command: "serve" });
const { coverage: _coverage, projects: _projects, ...test } = base.test;

export default {
  ...base,
  test: {
    ...test,
    include: [
      "test/{state,graph,run,nodes,checkpoint,codecs}/**/*.test.ts",
      "test/stores/memory*.test.ts",
    ],
    exclude: [
      "**/{crash,crash-model,dag-model,difference,flat-memory,followed-log,kill,killed-process,model}.test.ts",
    ],
  },
};
