// Builds the package into dist/: the declarations file by file, and the code of each entry point in one file, with
// what several share in files of their own. A process that starts has far fewer files to open.
//
//   node scripts/build.mjs [folder] [--no-types]   where dist/ is to be; without its declarations
//   node scripts/build.mjs --page                  only the studio's page
import { spawnSync } from "node:child_process";
import { copyFileSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { build as buildStyles } from "esbuild";
import { rolldown } from "rolldown";

const root = fileURLToPath(new URL("..", import.meta.url));
const { exports, imports, bin } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
const { values, positionals } = parseArgs({
  options: { "no-types": { type: "boolean" }, page: { type: "boolean" } },
  allowPositionals: true,
});
const dist = join(positionals[0] ?? root, "dist");

if (values.page) {
  await buildPage(join(dist, "studio/page"));
  process.exit();
}

// First nothing, so that a file deleted from src/ can't live on in the package.
rmSync(dist, { recursive: true, force: true });

if (!values["no-types"]) {
  const compiler = join(root, "node_modules/typescript/bin/tsc");
  const args = [compiler, "-p", "tsconfig.build.json", "--outDir", dist];
  const { status } = spawnSync(process.execPath, args, { cwd: root, stdio: "inherit" });
  if (status !== 0) process.exit(status ?? 1);
}

const files = [exports, imports, bin].flatMap(filesOf).filter((path) => path.endsWith(".js"));
const names = files.map((path) => path.slice("./dist/".length, -".js".length));
const bundle = await rolldown({
  cwd: root,
  input: Object.fromEntries(names.map((name) => [name, `src/${name}.ts`])),
  platform: "node",
  // Packages, and what is imported by a condition: which file that means is for the user's bundler to say.
  external: /^[^./]/,
  tsconfig: false,
});
await bundle.write({
  dir: dist,
  entryFileNames: "[name].js",
  // As deep as the module is that looks for package.json from where it is.
  chunkFileNames: "shared/[name]-[hash].js",
  // No source maps: the code is not minified, and they would be half of the package.
});
await bundle.close();
await buildPage(join(dist, "studio/page"));

/** The studio's page: one script, one style sheet, and the document that loads both. */
async function buildPage(target) {
  const source = join(root, "src/studio/page");
  const page = await rolldown({
    cwd: root,
    input: join(source, "main.tsx"),
    platform: "browser",
    tsconfig: join(source, "tsconfig.json"),
  });
  await page.write({ file: join(target, "page.js"), format: "iife", minify: true });
  await page.close();
  await buildStyles({
    entryPoints: [join(source, "styles/page.css")],
    outfile: join(target, "page.css"),
    bundle: true,
    minify: true,
    target: "es2022",
    logLevel: "error",
  });
  copyFileSync(join(source, "index.html"), join(target, "index.html"));
}

/** The paths in a field of package.json. */
function filesOf(value) {
  return typeof value === "string" ? [value] : Object.values(value).flatMap(filesOf);
}
