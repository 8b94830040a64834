// Prints how large the house is and how far one call walks through it: from the syntax trees of src/, and from V8's coverage
// of calls through the public entry points.
//
//   npm run house [-- --files] [folder]   --files names the files that are counted; the folder is that of another
//                                         checkout with its node_modules, this one by default
import { spawn } from "node:child_process";
import { EventEmitter, once } from "node:events";
import {
  copyFileSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
} from "node:fs";
import { Session } from "node:inspector/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join, resolve, sep } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { buildSync } from "esbuild";
import ts from "typescript";

const { values, positionals } = parseArgs({
  options: { files: { type: "boolean" } },
  allowPositionals: true,
});
const project = resolve(positionals[0] ?? fileURLToPath(new URL("..", import.meta.url)));
const source = join(project, "src");

/** Sums that are watched, by the folders of src/ they are made of. */
const sums = {
  core: ["state", "graph", "run", "checkpoint", "nodes"],
  "stores + codecs + checkpoint": ["stores", "codecs", "checkpoint"],
};
/** What a program imports that runs a graph and saves in memory. */
const kernel = ["State", "StateGraph", "MemoryStore"];

/** Facts that should have one home each. */
const facts = [
  ["a field of State", "crashes"],
  ["a listed field of State", "phase"],
  ["a listed field of State", "startedAt"],
  ["a method of ctx", "recall"],
  ["a capability of a store", "unreadable"],
  ["a capability of a store", "saveTopology"],
];
/** The folders that show or test a fact: their files are counted apart. */
const shows = ["ai", "cli", "observers", "report", "studio", "testing"];

const files = readSource();
printLines();
printStructure();
printFacts();
await printWalks();

/** The syntax tree of every file in src/, by its path there. */
function readSource() {
  const names = readdirSync(source, { recursive: true }).filter((name) => /\.tsx?$/.test(name));
  return new Map(
    names.sort().map((name) => {
      const text = readFileSync(join(source, name), "utf8");
      return [
        name.replaceAll(sep, "/"),
        ts.createSourceFile(name, text, ts.ScriptTarget.Latest, true),
      ];
    }),
  );
}

function printLines() {
  const lines = new Map([...files].map(([name, tree]) => [name, codeLines(tree)]));
  const printSum = (title, isCounted, note) => {
    const counted = [...files.keys()].filter(isCounted);
    const sum = counted.reduce((total, name) => total + lines.get(name), 0);
    row(title, sum, `${counted.length} files${note ?? ""}`);
  };

  heading("lines of code: lines with a token on them, so neither blank nor only comment");
  for (const folder of new Set([...files.keys()].map(folderOf).sort())) {
    printSum(folder, (name) => folderOf(name) === folder);
  }
  printSum("all", () => true);
  for (const [title, folders] of Object.entries(sums)) {
    printSum(title, (name) => folders.includes(folderOf(name)));
  }
  const reached = reachedFrom(kernel);
  const how = `: what ${kernel.join(", ")} import statically, types aside`;
  printSum("kernel", (name) => reached.has(name), how);
}

/** How many lines of a file have a token on them. */
function codeLines(tree) {
  const lines = new Set();
  const lineOf = (position) => tree.getLineAndCharacterOfPosition(position).line;
  const visit = (node) => {
    if (ts.isJSDoc(node) || node.kind === ts.SyntaxKind.EndOfFileToken) return;
    const children = node.getChildren(tree);
    for (const child of children) visit(child);
    if (children.length > 0 || node.getWidth(tree) === 0) return;
    // A template of several lines is one token.
    for (let line = lineOf(node.getStart(tree)); line <= lineOf(node.end); line++) lines.add(line);
  };
  visit(tree);
  return lines.size;
}

function printStructure() {
  const imports = new Map([...files.keys()].map((name) => [name, importsOf(name)]));
  const importers = new Map([...files.keys()].map((name) => [name, 0]));
  for (const target of [...imports.values()].flatMap((targets) => [...targets])) {
    importers.set(target, importers.get(target) + 1);
  }
  const single = [...files.keys()].filter((name) => importers.get(name) === 1);
  const cycles = cyclesIn(imports);
  const isAny = (node) => node.kind === ts.SyntaxKind.AnyKeyword;
  const countAll = (test) =>
    [...files.values()].reduce((sum, tree) => sum + countIn(tree, test), 0);

  heading("structure");
  row("files with one importer", single.length, "", single);
  row("file cycles, by types too", cycles.length, "", cycles.flat());
  row("any", countAll(isAny));
  row("non-null !", countAll(ts.isNonNullExpression));
}

/** The files of src/ that a file imports: values and types, statically and not, and what it re-exports. */
function importsOf(name, { types = true, dynamic = true } = {}) {
  const found = new Set();
  const add = (specifier) => {
    if (specifier === undefined || !ts.isStringLiteralLike(specifier)) return;
    const target = fileOf(name, specifier.text);
    if (target !== undefined) found.add(target);
  };
  walk(files.get(name), (node) => {
    if (ts.isImportDeclaration(node)) {
      if (types || !node.importClause?.isTypeOnly) add(node.moduleSpecifier);
    } else if (ts.isExportDeclaration(node)) {
      if (types || !node.isTypeOnly) add(node.moduleSpecifier);
    } else if (ts.isImportTypeNode(node)) {
      if (types && ts.isLiteralTypeNode(node.argument)) add(node.argument.literal);
    } else if (ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.ImportKeyword) {
      if (dynamic) add(node.arguments[0]);
    }
  });
  return found;
}

/** The file in src/ that a module specifier names. */
function fileOf(from, specifier) {
  const path = specifier.startsWith("#")
    ? specifier.slice(1)
    : specifier.startsWith(".") && join(dirname(from), specifier).replaceAll(sep, "/");
  if (!path) return undefined;
  const stem = path.replace(/\.jsx?$/, "");
  return [`${stem}.ts`, `${stem}.tsx`, path].find((name) => files.has(name));
}

/** The files that an import of names from the core's entry point brings along, those of types aside. */
function reachedFrom(names) {
  const reached = new Set();
  const reach = (name) => {
    if (reached.has(name)) return;
    reached.add(name);
    for (const next of importsOf(name, { types: false, dynamic: false })) reach(next);
  };
  for (const { exportClause, moduleSpecifier } of files.get("index.ts").statements) {
    const exported = exportClause?.elements?.map(({ name }) => name.text) ?? [];
    if (exported.some((name) => names.includes(name)))
      reach(fileOf("index.ts", moduleSpecifier.text));
  }
  return reached;
}

/** Groups of files that import each other in a circle (Tarjan). */
function cyclesIn(imports) {
  const state = new Map();
  const stack = [];
  const cycles = [];
  const visit = (name) => {
    const own = { index: state.size, low: state.size, isOpen: true };
    state.set(name, own);
    stack.push(name);
    for (const next of imports.get(name)) {
      const other = state.get(next) ?? visit(next);
      if (other.isOpen) own.low = Math.min(own.low, other.low);
    }
    if (own.low === own.index) {
      const group = stack.splice(stack.indexOf(name));
      for (const member of group) state.get(member).isOpen = false;
      if (group.length > 1 || imports.get(name).has(name)) cycles.push(group);
    }
    return own;
  };
  for (const name of imports.keys()) if (!state.has(name)) visit(name);
  return cycles;
}

function printFacts() {
  heading(
    "homes of a fact: files with a member of that name, in a type, a class or an object, or with it in a list",
  );
  for (const [what, name] of facts) {
    const filesWith = (test) =>
      [...files]
        .filter(([, tree]) => countIn(tree, (node) => test(node, name)) > 0)
        .map(([file]) => file);
    const homes = filesWith(isHome);
    const core = homes.filter((file) => !shows.includes(folderOf(file)));
    const others = `${homes.length - core.length} more show or test it; named in ${filesWith(isName).length}`;
    row(`${what}: ${name}`, core.length, others, core);
  }
}

/** Whether a node is the name, as an identifier or a string. */
function isName(node, name) {
  return (ts.isIdentifier(node) || ts.isStringLiteralLike(node)) && node.text === name;
}

/** Whether a node names a member where it is declared or passed on, or stands in a list as a string. */
function isHome(node, name) {
  if (!isName(node, name)) return false;
  const { parent } = node;
  if (ts.isStringLiteralLike(node)) {
    return ts.isLiteralTypeNode(parent) || ts.isArrayLiteralExpression(parent);
  }
  const isMember =
    ts.isTypeElement(parent) || ts.isClassElement(parent) || ts.isObjectLiteralElement(parent);
  return isMember && parent.name === node;
}

/** Prints how many files of src/ some calls pass through. */
async function printWalks() {
  const folder = transpile();
  const load = (name) => import(pathToFileURL(join(folder, "dist", `${name}.js`)).href);
  const newPath = (name) => join(mkdtempSync(join(folder, "run-")), name);
  try {
    const core = await load("index");
    const { FileStore } = await load("stores/file");
    const { SqliteStore } = await load("stores/sqlite");
    const worker = await load("worker/index");
    const walks = {
      "execute, nothing saved": (measure) => execute(measure, core),
      "execute, MemoryStore": (measure) => execute(measure, core, new core.MemoryStore()),
      "execute, FileStore": (measure) =>
        execute(measure, core, new FileStore({ root: newPath("runs") })),
      "resume, SqliteStore": (measure) => {
        const path = newPath("runs.db");
        return resume(measure, core, () => new SqliteStore({ path }));
      },
    };
    heading("walks: files of which a function ran, other than the module itself, during the call");
    for (const [name, walk] of Object.entries(walks)) await printWalk(name, walk, folder);
    await withRedis(folder, async (connection) => {
      const retry = (measure) => {
        const store = new SqliteStore({ path: newPath("runs.db") });
        return retryOnWorker(measure, core, worker, connection, store);
      };
      const note = "with the client that waits for the result; timers make it 1 more or less";
      await printWalk("a worker's retry, SqliteStore", retry, folder, note);
    });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Takes the walk twice and prints the second: the first loads what is loaded on demand. */
async function printWalk(name, walk, folder, note = "") {
  await walk((call) => call());
  let passed = [];
  await walk(async (call) => {
    passed = await filesPassed(call, folder);
  });
  row(name, passed.length, note, passed);
}

/** The package with its code file by file, in a folder of its own: what V8 reports of it are the files of src/. */
function transpile() {
  const folder = mkdtempSync(join(realpathSync(tmpdir()), "waymark-house-"));
  copyFileSync(join(project, "package.json"), join(folder, "package.json"));
  symlinkSync(join(project, "node_modules"), join(folder, "node_modules"));
  buildSync({
    entryPoints: [...files.keys()]
      .filter((name) => name.endsWith(".ts"))
      .map((name) => join(source, name)),
    outbase: source,
    outdir: join(folder, "dist"),
    format: "esm",
    platform: "node",
    target: "node20",
    tsconfigRaw: {},
    logLevel: "error",
  });
  return folder;
}

/** The files of which a function, other than the module itself, ran during a call. */
async function filesPassed(call, folder) {
  const session = new Session();
  session.connect();
  await session.post("Profiler.enable");
  await session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: false });
  await call();
  const { result } = await session.post("Profiler.takePreciseCoverage");
  session.disconnect();
  const dist = `${pathToFileURL(join(folder, "dist")).href}/`;
  // A module's own code begins where the file does, and its static fields are set when it is loaded.
  const hasRun = ({ functionName, ranges: [range] }) =>
    range.count > 0 && range.startOffset > 0 && functionName !== "<static_initializer>";
  return result
    .filter(({ url, functions }) => url.startsWith(dist) && functions.some(hasRun))
    .map(({ url }) => url.slice(dist.length).replace(/js$/, "ts"))
    .sort();
}

/** A graph of three nodes with a condition. */
function newGraph({ StateGraph }, store, second = (state) => state) {
  return new StateGraph({ name: "house", ...(store && { checkpoint: { store, interval: 1 } }) })
    .addNode("first", (state) => state.set("n", state.data.n + 1))
    .addNode("second", second)
    .addNode("third", (state) => state)
    .addEdge("first", "second", (state) => state.data.n > 0)
    .addEdge("second", "third")
    .setEntryPoint("first")
    .setExitPoint("third");
}

async function execute(measure, core, store) {
  const graph = newGraph(core, store);
  await measure(() => graph.execute(core.State.create({ n: 0 })));
  await store?.close?.();
}

/** A run whose second node failed, resumed on a store that was opened anew. */
async function resume(measure, core, openStore) {
  const store = openStore();
  const state = core.State.create({ n: 0 });
  const fail = () => {
    throw new Error("not yet");
  };
  await newGraph(core, store, fail)
    .execute(state)
    .catch(() => {});
  await store.close();
  const opened = openStore();
  const graph = newGraph(core, opened);
  await measure(() => graph.resume(state.runId));
  await opened.close();
}

/** A run on a worker, from where its second node fails to its result, which a second attempt brings. */
async function retryOnWorker(measure, core, { Client, Worker }, connection, store) {
  const node = new EventEmitter();
  const reached = once(node, "reached");
  const released = once(node, "released");
  let tries = 0;
  const graph = newGraph(core, undefined, async (state) => {
    if (tries++ > 0) return state;
    node.emit("reached");
    await released;
    throw new Error("not yet");
  });
  const client = new Client({ connection, store });
  const worker = new Worker({ connection, store, graphs: [graph], backoff: 1 });
  await worker.ready();
  const run = await client.submit("house", { n: 0 });
  await reached;
  await measure(() => {
    node.emit("released");
    return run.result();
  });
  await worker.close();
  await client.close();
  await store.close();
}

/** Calls back with the address of a Redis that is started for it; without a redis-server, says so. */
async function withRedis(folder, use) {
  const port = await freePort();
  const place = ["--port", String(port), "--bind", "127.0.0.1", "--dir", folder, "--save", ""];
  const server = spawn("redis-server", place, { stdio: ["ignore", "pipe", "inherit"] });
  const ended = once(server, "close");
  const isStarted = await new Promise((resolve) => {
    server.once("error", () => resolve(false));
    server.stdout.on("data", (text) => {
      if (String(text).includes("eady to accept connections")) resolve(true);
    });
  });
  if (!isStarted)
    return console.log("  a worker's retry was not measured: no redis-server is installed");
  try {
    await use(`redis://127.0.0.1:${port}`);
  } finally {
    server.kill();
    await ended;
  }
}

async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  server.close();
  await once(server, "close");
  return port;
}

/** The folder of src/ that a file is in. */
function folderOf(name) {
  return name.includes("/") ? name.split("/")[0] : "(beside the folders)";
}

/** Calls back for a node and all below it. */
function walk(node, see) {
  see(node);
  node.forEachChild((child) => walk(child, see));
}

/** How many nodes of a tree pass a test. */
function countIn(tree, test) {
  let count = 0;
  walk(tree, (node) => {
    if (test(node)) count++;
  });
  return count;
}

function heading(text) {
  console.log(`\n${text}`);
}

/** A line of the output; with --files, the files that were counted below it. */
function row(title, value, note = "", counted = []) {
  console.log(`  ${title.padEnd(40)} ${value.toLocaleString("en").padStart(7)}  ${note}`.trimEnd());
  if (values.files) for (const file of counted) console.log(`    ${file}`);
}
