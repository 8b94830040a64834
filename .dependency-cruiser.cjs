const { readdirSync } = require("node:fs");
const { join } = require("node:path");

// The layers. Each part of src/ names what it may import beside itself; all else is refused, so a
// new folder has to be put into a layer here before anything can use it.
const base = [
  "errors",
  "usage",
  "event-map",
  "events",
  "clock",
  "random",
  "options",
  "warnings",
  "concurrency",
  "call-scope",
  "optional-peer",
];
const core = [...base, "state", "graph", "checkpoint", "stores", "observers", "run"];

const layers = {
  errors: base,
  usage: base,
  "event-map": base,
  events: base,
  clock: base,
  random: base,
  options: base,
  warnings: base,
  concurrency: base,
  "call-scope": base,
  "optional-peer": base,
  state: base,
  graph: [...base, "state"],
  codecs: [...base, "state"],
  checkpoint: [...base, "state", "codecs", "graph"],
  stores: [...base, "state", "checkpoint", "codecs", "graph"],
  // They see events and nothing of the engine; a log lies beside the checkpoints of its run.
  observers: [...base, "state/ledger", "state/reasons", "codecs/redact", "stores/disk/layout"],
  report: [...base, "state", "checkpoint", "codecs", "observers"],
  run: [...base, "state", "graph", "checkpoint", "stores", "observers"],
  // Of the engine they know what a node may do and how it ends, never the loop or what is saved when.
  nodes: [
    ...base,
    "state",
    "graph",
    "checkpoint/store",
    ...["config", "loop/failure", "pauses", "state-graph", "visit/attempts", "visit/context"].map(
      (file) => `run/${file}`,
    ),
  ],
  ai: [...base, "state/ledger", "graph", "run/pauses"],
  environment: [...base, "state"],
  recovery: core,
  worker: [...core, "codecs", "nodes", "recovery"],
  studio: [...core, "codecs", "nodes/child-store", "report", "worker"],
  cli: [...core, "codecs", "nodes", "recovery", "report", "worker", "studio"],
  testing: [...core, "codecs", "nodes", "recovery", "worker", "index"],
  index: [...core, "codecs", "nodes", "recovery"],
};

/** A part is a folder of src/ or a file there. */
const inParts = (parts) => `^src/(${parts.join("|")})(/|\\.ts$)`;

// The folders with a file of their name beside them: state/ledger, as there is state/ledger.ts.
const paths = readdirSync(join(__dirname, "src"), { recursive: true });
const fronted = paths
  .filter((path) => paths.includes(`${path}.ts`) || paths.includes(`${path}.tsx`))
  .map((path) => path.replaceAll("\\", "/"));

// What may use Node. The rest is the core, which must also run in a browser.
const nodeOnly = [
  "^src/(environment|optional-peer)\\.ts$",
  "^src/(ai|cli|codecs|report|studio|testing|worker)/",
  "^src/checkpoint/records/",
  "^src/stores/(?!(memory|registry|address)\\.ts$)",
  "^src/observers/(?!(console|levels|registry)\\.ts$)",
];

module.exports = {
  forbidden: [
    ...Object.entries(layers).map(([part, below]) => ({
      name: `layer-${part}`,
      comment: `src/${part} imports only: ${below.join(", ")}.`,
      severity: "error",
      from: { path: inParts([part]) },
      to: { path: "^src/", pathNot: inParts([part, ...below]) },
    })),
    {
      name: "no-unknown-part",
      comment: "A new part of src/ needs its layer in .dependency-cruiser.cjs.",
      severity: "error",
      from: { path: "^src/", pathNot: inParts(Object.keys(layers)) },
      to: {},
    },
    ...fronted.map((folder) => ({
      name: `front-${folder}`,
      comment: `What is in src/${folder}/ is imported only by the file of that name beside it.`,
      severity: "error",
      from: { path: "^src/", pathNot: `^src/${folder}(/|\\.tsx?$)` },
      to: { path: `^src/${folder}/` },
    })),
    {
      name: "no-cycle",
      comment: "No cycles, of types either.",
      severity: "error",
      from: {},
      to: { circular: true },
    },
    {
      name: "core-without-node",
      comment: "What src/index.ts reaches by static import runs in a browser: no module of Node.",
      severity: "error",
      from: { path: "^src/", pathNot: nodeOnly },
      to: { dependencyTypes: ["core"] },
    },
    {
      name: "core-loads-node-parts-lazily",
      comment: "The core reaches a part that may use Node only by a dynamic import().",
      severity: "error",
      from: { path: "^src/", pathNot: nodeOnly },
      to: { path: nodeOnly, dynamic: false },
    },
    {
      name: "declared-packages-only",
      comment: "What ships imports only what package.json lists for the user.",
      severity: "error",
      // The studio's page is bundled with what it imports.
      from: { path: "^src/", pathNot: "^src/studio/page/" },
      to: {
        dependencyTypes: ["npm-dev", "npm-no-pkg", "npm-unknown"],
        // An optional peer is a dev dependency too, for the tests.
        dependencyTypesNot: ["npm-peer"],
      },
    },
    {
      name: "source-only",
      comment:
        "src/ imports itself by path, never by the package's name, and nothing beside itself.",
      severity: "error",
      from: { path: "^src/" },
      to: { path: "^(dist|test|examples|bench)/" },
    },
    {
      name: "resolvable",
      severity: "error",
      from: {},
      to: { couldNotResolve: true },
    },
  ],
  options: {
    // Types count as imports, for layers and for cycles.
    tsPreCompilationDeps: true,
    tsConfig: { fileName: "tsconfig.json" },
    doNotFollow: { path: "node_modules" },
    enhancedResolveOptions: {
      exportsFields: ["exports"],
      conditionNames: ["import", "types", "default"],
    },
  },
};
