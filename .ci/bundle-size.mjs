// Bundles the core for a browser, all of its exports kept, and holds its gzip size under a limit. A
// `node:` import anywhere in it fails the build.
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";

const limit = 58 * 1024;

const result = await build({
  entryPoints: [fileURLToPath(new URL("../dist/index.js", import.meta.url))],
  bundle: true,
  minify: true,
  write: false,
  format: "esm",
  platform: "browser",
  target: "es2022",
  logLevel: "error",
  // As a user's bundler sees it: without this project's own path mapping.
  tsconfigRaw: {},
}).catch(() => process.exit(1)); // esbuild has printed why

const [{ contents }] = result.outputFiles;
const size = gzipSync(contents, { level: 9 }).length;
const kilobytes = (bytes) => `${(bytes / 1024).toFixed(2)} KB`;
console.log(`= ${kilobytes(size)} gzip, limit ${kilobytes(limit)}`);
if (size > limit) {
  console.error(`The core is ${size - limit} bytes over its limit.`);
  process.exit(1);
}
