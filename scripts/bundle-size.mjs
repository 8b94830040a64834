// Bundles the core for a browser as an application would, dependencies included, and holds its gzip size under a limit:
// once with State and StateGraph alone, once with all exports. A `node:` import anywhere in it fails the build. The page of the
// studio, all files of it, has a limit too.
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";

const entry = fileURLToPath(new URL("../dist/index.js", import.meta.url));
const from = JSON.stringify(entry);
const bundles = [
  { what: "State and StateGraph", code: `export { State, StateGraph } from ${from}`, limit: 52 },
  { what: "all exports", code: `export * from ${from}`, limit: 61 },
];

for (const { what, code, limit } of bundles) {
  const { outputFiles, metafile } = await build({
    stdin: { contents: code, resolveDir: fileURLToPath(new URL("..", import.meta.url)) },
    bundle: true,
    minify: true,
    write: false,
    metafile: true,
    format: "esm",
    platform: "browser",
    target: "es2022",
    logLevel: "error",
    define: { "process.env.NODE_ENV": '"production"' },
    // As a user's bundler sees it: without this project's own path mapping.
    tsconfigRaw: {},
  }).catch(() => process.exit(1)); // esbuild has printed why

  const size = gzipSync(outputFiles[0].contents, { level: 9 }).length / 1024;
  console.log(`= ${what}: ${size.toFixed(2)} KB gzip, limit ${limit} KB`);
  if (size > limit) {
    console.error(`${what}: ${(size - limit).toFixed(2)} KB over the limit.`);
    process.exitCode = 1;
  }
  // What only the entry point has, such as the node factories, must not come along with the graph.
  const [output] = Object.values(metafile.outputs);
  const rest = output.inputs["dist/index.js"]?.bytesInOutput ?? 0;
  if (what !== "all exports" && rest > 0) {
    console.error(`${what}: brings along ${rest} bytes that are not imported.`);
    process.exitCode = 1;
  }
}

const page = new URL("../dist/studio/page/", import.meta.url);
const pageLimit = 150;
const pageSize = readdirSync(page)
  .map((name) => gzipSync(readFileSync(new URL(name, page)), { level: 9 }).length / 1024)
  .reduce((sum, size) => sum + size, 0);
console.log(`= the studio's page: ${pageSize.toFixed(2)} KB gzip, limit ${pageLimit} KB`);
if (pageSize > pageLimit) {
  console.error(`The studio's page: ${(pageSize - pageLimit).toFixed(2)} KB over the limit.`);
  process.exitCode = 1;
}
