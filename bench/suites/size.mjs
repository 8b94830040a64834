import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";
import { compare } from "../lib/measure.mjs";
import { entry, isBuilt } from "../lib/waymark.mjs";

export const name = "size";
export const title = "P11: size of the core, dependencies included";

const here = fileURLToPath(new URL("..", import.meta.url));

export async function run() {
  return [
    await compare({
      title: "bundled for a browser and minified by esbuild, gzip level 9",
      unit: "KB",
      rounds: 1,
      warmUp: 0,
      contenders: [
        {
          name: "immer, mitt and uuid",
          role: "floor",
          sample: () => gzipped(["immer", "mitt", "uuid"]),
        },
        isBuilt && {
          name: "waymark, State and StateGraph",
          role: "ours",
          sample: () => bundled(`export { State, StateGraph } from ${JSON.stringify(entry)}`),
          goals: [{ id: "P11", atMost: 25 }],
        },
        isBuilt && {
          name: "waymark, all that the entry exports",
          role: "reference",
          sample: () => gzipped([entry]),
        },
        {
          name: "LangGraph.js",
          role: "peer",
          sample: () => gzipped(["@langchain/langgraph"], "node"),
        },
      ],
    }),
  ];
}

function gzipped(specifiers, platform) {
  return bundled(specifiers.map(exportAll).join("\n"), platform);
}

/** What is loaded at the start: the entry's chunk and those it imports statically; a dynamic import is not. */
async function bundled(contents, platform = "browser") {
  const { outputFiles, metafile } = await build({
    stdin: { contents, resolveDir: here },
    bundle: true,
    minify: true,
    splitting: true,
    format: "esm",
    target: "node20",
    platform,
    external: ["node:*"],
    // As a user's bundler sees it: without this project's own path mapping.
    tsconfigRaw: {},
    define: { "process.env.NODE_ENV": '"production"' },
    outdir: "out",
    absWorkingDir: here,
    metafile: true,
    write: false,
    logLevel: "error",
  });
  const start = Object.keys(metafile.outputs).find((path) => metafile.outputs[path].entryPoint);
  const loaded = new Set([start]);
  for (const path of loaded) {
    for (const imported of metafile.outputs[path].imports) {
      if (imported.kind === "import-statement" && !imported.external) loaded.add(imported.path);
    }
  }
  const chunks = outputFiles.filter(({ path }) => [...loaded].some((name) => path.endsWith(name)));
  if (chunks.length !== loaded.size)
    throw new Error(`found ${chunks.length} of ${loaded.size} chunks`);
  return (
    chunks.reduce((sum, { contents }) => sum + gzipSync(contents, { level: 9 }).length, 0) / 1000
  );
}

function exportAll(specifier, index) {
  return `export * as module${index} from ${JSON.stringify(specifier)}`;
}
