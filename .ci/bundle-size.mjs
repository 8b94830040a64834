// Bundles the core for a browser, all of its exports kept, and holds its gzip size under a limit.
import { isBuiltin } from "node:module";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";

const limit = 15 * 1024;

const staticGraphOnly = {
  name: "static-graph-only",
  setup({ onResolve }) {
    onResolve({ filter: /.*/ }, ({ path, kind, importer }) => {
      // A store that is loaded when first used is not part of the core.
      if (kind === "dynamic-import") return { external: true };
      if (isBuiltin(path)) return { errors: [{ text: `${importer} imports ${path}` }] };
      return undefined;
    });
  },
};

const result = await build({
  entryPoints: [fileURLToPath(new URL("../dist/index.js", import.meta.url))],
  bundle: true,
  minify: true,
  write: false,
  format: "esm",
  platform: "browser",
  target: "es2022",
  logLevel: "error",
  plugins: [staticGraphOnly],
}).catch(() => process.exit(1)); // esbuild has printed why

const [{ contents }] = result.outputFiles;
const size = gzipSync(contents, { level: 9 }).length;
const kilobytes = (bytes) => `${(bytes / 1024).toFixed(2)} KB`;
console.log(`= ${kilobytes(size)} gzip, limit ${kilobytes(limit)}`);
if (size > limit) {
  console.error(`The core is ${size - limit} bytes over its limit.`);
  process.exit(1);
}
