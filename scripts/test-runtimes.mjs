// Tries the packed package on other runtimes, bundlers and compilers, and prints what works as a table.
//
//   node scripts/test-runtimes.mjs [--write]   --write puts the table into guide/runtimes.md
import { execFile } from "node:child_process";
import { once } from "node:events";
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs, promisify } from "node:util";
import { chromium } from "playwright-core";
import { runtimes } from "./runtimes.mjs";

const run = promisify(execFile);
const root = fileURLToPath(new URL("..", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "waymark-runtimes-"));
const { values } = parseArgs({ options: { write: { type: "boolean" } } });

const compilers = ["5.8", "5.9", "6.0", "7.0"];
const resolutions = { node16: "node16", nodenext: "nodenext", bundler: "esnext" };

/** What was tried, in the order of the table: `undefined` is well, else the reason. */
const results = [];

async function attempt(where, what, action) {
  try {
    await action();
    results.push({ where, what });
  } catch (error) {
    const said = `${error.stderr ?? ""}${error.stdout ?? ""}` || String(error.message ?? error);
    const problem = said.split("\n").find((line) => /error/i.test(line)) ?? said.split("\n")[0];
    results.push({ where, what, problem: problem.trim().slice(0, 200) });
  }
  const { problem } = results.at(-1);
  console.log(
    problem === undefined ? `ok    ${where}: ${what}` : `FAIL  ${where}: ${what}: ${problem}`,
  );
}

function expect(actual, expected) {
  if (actual.trim() !== expected) throw new Error(`expected ${expected}; got ${actual.trim()}`);
}

/** A folder with the package and others installed. */
async function project(name, packages = []) {
  const cwd = join(folder, name);
  mkdirSync(cwd, { recursive: true });
  writeFileSync(join(cwd, "package.json"), JSON.stringify({ private: true, type: "module" }));
  const args = [
    "install",
    "--silent",
    "--no-audit",
    "--no-fund",
    "--prefer-offline",
    tarball,
    ...packages,
  ];
  await run("npm", args, { cwd });
  return cwd;
}

/** The hash of the simulations of the first Node. */
let simulations;

async function tryRuntime({ name, package: bringsIt, command, args: first = [] }) {
  // SQLite is in Node from 22.13 on, in Bun and in Deno.
  const extra = bringsIt ?? "libsql@0.5.29";
  const cwd = await project(name.replace(" ", "-"), [extra]);
  cpSync(join(root, "test/runtimes"), cwd, { recursive: true });
  const binary = command(join(cwd, "node_modules"));
  const start = (script, ...args) => run(binary, [...first, script, ...args], { cwd });
  for (const store of ["file:runs", "sqlite:runs.db"]) {
    await attempt(name, `a killed run resumes, ${store.split(":")[0]}`, async () => {
      const killed = await start("crash.mjs", store, "start").catch((error) => error);
      if (killed.signal !== "SIGKILL")
        throw killed instanceof Error ? killed : new Error("it was not killed");
      const { stdout } = await start("crash.mjs", store, "resume");
      expect(stdout, "completed 4 pack,drive,cross,arrive typed");
    });
  }
  await attempt(name, "the command", async () => {
    const { stdout } = await start(
      "node_modules/waymark/dist/cli/main.js",
      "list",
      "--store",
      "file:runs",
      "--json",
    );
    expect(String(JSON.parse(stdout)[0].status), "completed");
  });
  if (name.startsWith("Node")) {
    await attempt(name, "the same simulations", async () => {
      const { stdout } = await start("simulate.mjs");
      simulations ??= stdout.trim();
      expect(stdout, simulations);
    });
  }
  if (name !== "Deno 2.9") {
    await attempt(name, "require()", async () => {
      expect((await start("require.cjs", "required")).stdout, "completed 2");
    });
  }
}

async function tryBundler(name, bundle) {
  await attempt(`${name} and Chromium`, "a failed run resumes in a page", async () => {
    const cwd = await project(name.toLowerCase(), name === "Vite" ? ["vite@8"] : ["esbuild@0.28"]);
    cpSync(join(root, "test/runtimes/page.js"), join(cwd, "page.js"));
    const built = await bundle(cwd);
    const server = createServer((request, response) => {
      const isPage = request.url === "/";
      response.setHeader("content-type", isPage ? "text/html" : "text/javascript");
      const page = `<!doctype html><link rel="icon" href="data:,"><script type="module" src="/${basename(built)}"></script>`;
      response.end(isPage ? page : readFileSync(join(dirname(built), basename(request.url))));
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
    const browser = await chromium.launch({
      executablePath: process.env.CHROMIUM_PATH ?? "/usr/bin/chromium",
      args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync"],
    });
    try {
      const page = await browser.newPage();
      const errors = [];
      page.on("pageerror", (error) => errors.push(error));
      await page.goto(`http://127.0.0.1:${server.address().port}/`);
      await page
        .waitForFunction(() => document.title !== "", undefined, { timeout: 20_000 })
        .catch((error) => {
          throw errors[0] ?? error;
        });
      expect(await page.title(), "completed /a.html");
    } finally {
      await browser.close();
      server.close();
    }
  });
}

const bundlers = {
  esbuild: async (cwd) => {
    const args = ["page.js", "--bundle", "--format=esm", "--minify", "--outfile=out.js"];
    await run(join(cwd, "node_modules/.bin/esbuild"), args, { cwd });
    return join(cwd, "out.js");
  },
  Vite: async (cwd) => {
    writeFileSync(join(cwd, "index.html"), '<script type="module" src="/page.js"></script>');
    const args = ["build", "--logLevel", "error", "--assetsDir", "."];
    await run(join(cwd, "node_modules/.bin/vite"), args, { cwd });
    const [file] = readdirSync(join(cwd, "dist")).filter((name) => /^index-.*\.js$/.test(name));
    return join(cwd, "dist", file);
  },
};

/** The packages whose types are checked, in the versions of this project. */
const sdks = ["ai", "openai", "@anthropic-ai/sdk", "zod", "type-fest"];
const { devDependencies } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));

async function tryCompiler(version) {
  const packages = sdks.map((name) => `${name}@${devDependencies[name]}`);
  const cwd = await project(`typescript-${version}`, [
    ...[`typescript@${version}`, "@types/node@20"],
    ...packages,
  ]);
  const compile = (what, file, options) =>
    attempt(`TypeScript ${version}`, what, async () => {
      cpSync(join(root, "test/runtimes", file), join(cwd, file));
      const compilerOptions = {
        ...{ target: "es2023", lib: ["es2023"], types: ["node"], strict: true, noEmit: true },
        ...options,
      };
      writeFileSync(join(cwd, "tsconfig.json"), JSON.stringify({ compilerOptions, files: [file] }));
      await run(join(cwd, "node_modules/.bin/tsc"), ["-p", "."], { cwd });
    });
  for (const [moduleResolution, module] of Object.entries(resolutions)) {
    const strictest = { skipLibCheck: false, exactOptionalPropertyTypes: true };
    await compile(moduleResolution, "types.ts", { module, moduleResolution, ...strictest });
  }
  // The SDKs' own declarations are theirs to check.
  const sdk = { module: "nodenext", moduleResolution: "nodenext", skipLibCheck: true };
  await compile("types of LLM SDKs", "sdk-types.ts", { ...sdk, lib: ["es2023", "dom"] });
}

/** The AI SDK from its major 7 on does not run on Node 20, with which the tests run. */
async function tryNewestSdk() {
  const { name, package: bringsIt, command } = runtimes.node22;
  const cwd = await project("ai-7", [bringsIt, "ai@7", `zod@${devDependencies.zod}`]);
  cpSync(join(root, "examples/cookbook/durable-agent-loop.ts"), join(cwd, "loop.ts"));
  await attempt(`AI SDK 7 on ${name}`, "a durable agent loop", async () => {
    const args = ["--experimental-strip-types", "loop.ts"];
    const { stdout } = await run(command(join(cwd, "node_modules")), args, { cwd });
    expect(stdout, "A pile of stones. 3 cairn 0,cairn 1");
  });
}

/** The results as a table: a row a place, what does not work with its reason. */
function table() {
  const rows = new Map();
  for (const { where, what, problem } of results) {
    const row = rows.get(where) ?? { works: [], fails: [] };
    rows.set(where, row);
    if (problem === undefined) row.works.push(what);
    else row.fails.push(`${what}: ${problem.replaceAll("|", "\\|")}`);
  }
  const lines = [...rows].map(
    ([where, { works, fails }]) => `| ${where} | ${works.join("; ")} | ${fails.join("; ")} |`,
  );
  return ["| | works | does not work |", "| --- | --- | --- |", ...lines].join("\n");
}

let tarball = "";
try {
  await run("npm", ["run", "--silent", "build"], { cwd: root });
  const { stdout } = await run("npm", ["pack", "--silent", "--pack-destination", folder], {
    cwd: root,
  });
  tarball = join(folder, stdout.trim().split("\n").at(-1));
  for (const [name, bundle] of Object.entries(bundlers)) await tryBundler(name, bundle);
  for (const runtime of Object.values(runtimes)) await tryRuntime(runtime);
  await tryNewestSdk();
  for (const version of compilers) await tryCompiler(version);
} finally {
  rmSync(folder, { recursive: true, force: true });
}

if (values.write) {
  const page = join(root, "guide/runtimes.md");
  const text = readFileSync(page, "utf8");
  const block = /(?<=<!-- runtimes -->\n).*?(?=<!-- \/runtimes -->)/s;
  writeFileSync(
    page,
    text.replace(block, () => `\n${table()}\n\n`),
  );
}
const failed = results.filter(({ problem }) => problem !== undefined).length;
console.log(`${results.length - failed} passed, ${failed} failed`);
process.exitCode = failed > 0 ? 1 : 0;
