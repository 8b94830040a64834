// The tests that mutants have to pass: those of the core that start no process and search no space.
import base from "../vitest.config.ts";

const { coverage: _coverage, projects: _projects, ...test } = base.test;

export default {
  ...base,
  test: {
    ...test,
    include: [
      "test/{state,graph,run,nodes,checkpoint,codecs}/**/*.test.ts",
      "test/stores/memory*.test.ts",
    ],
    exclude: ["**/{crash,kill,model,memory,dag,child-store,difference}.test.ts"],
  },
};
