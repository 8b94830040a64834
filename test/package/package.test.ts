import { execFileSync, spawnSync } from "node:child_process";
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import manifest from "../../package.json" with { type: "json" };
import { blocksOf } from "../docs/pages.js";
import { unimportable } from "./signatures.js";

const root = join(import.meta.dirname, "../..");
const folder = mkdtempSync(join(tmpdir(), "waymark-package-"));
const app = join(folder, "app");

/** Builds, packs and unpacks the package into an app's node_modules, beside its dependencies. */
beforeAll(() => {
  const source = join(folder, "source");
  mkdirSync(source);
  for (const file of ["package.json", "README.md", "CHANGELOG.md", "LICENSE", "guide"]) {
    cpSync(join(root, file), join(source, file), { recursive: true });
  }
  run(process.execPath, [join(root, "scripts/build.mjs"), source]);
  run("npm", ["pack", "--silent", "--pack-destination", folder], source);
  const tarball = readdirSync(folder).find((name) => name.endsWith(".tgz")) ?? "";
  const installed = join(app, "node_modules/waymark");
  mkdirSync(installed, { recursive: true });
  run("tar", ["-xzf", join(folder, tarball), "-C", installed, "--strip-components=1"]);
  // What the ten-minute page installs besides.
  for (const name of [...Object.keys(manifest.dependencies), "typescript", "tsx"]) {
    symlinkSync(join(root, "node_modules", name), join(dirname(installed), name));
  }
  mkdirSync(join(app, "node_modules/.bin"));
  for (const name of ["tsc", "tsx"]) {
    const bin = join("node_modules/.bin", name);
    symlinkSync(join(root, bin), join(app, bin));
  }
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

function run(command: string, args: readonly string[], cwd = folder): string {
  return execFileSync(command, args, { cwd, encoding: "utf8" });
}

describe("the packed package", () => {
  test("ships what it says and no source", () => {
    const files = readdirSync(join(app, "node_modules/waymark")).sort();
    expect(files).toEqual([
      "CHANGELOG.md",
      "LICENSE",
      "README.md",
      "dist",
      "guide",
      "package.json",
    ]);
  });

  test("is smaller than 3 MB when it is installed", () => {
    const installed = join(app, "node_modules/waymark");
    const files = readdirSync(installed, { recursive: true, encoding: "utf8" });
    const bytes = files.reduce((sum, file) => sum + statSync(join(installed, file)).size, 0);
    expect(bytes).toBeLessThan(3_000_000);
  });

  const entries = Object.keys(manifest.exports)
    .filter((name) => name !== "./package.json")
    .map((name) => `waymark${name.slice(1)}`);

  test("exports every entry point", () => {
    const script = `for (const name of ${JSON.stringify(entries)}) console.log(name, Object.keys(await import(name)).length > 0);`;
    writeFileSync(join(app, "entries.mjs"), script);
    expect(run(process.execPath, ["entries.mjs"], app).trim().split("\n")).toEqual(
      entries.map((name) => `${name} true`),
    );
  });

  test("has declarations that compile without the optional packages", () => {
    const lines = entries.map((name, index) => `export * as e${index} from "${name}";`);
    writeFileSync(join(app, "entries.mts"), lines.join("\n"));
    const strictest = ["--strict", "--skipLibCheck", "false", "--exactOptionalPropertyTypes"];
    const types = [
      "--target",
      "es2023",
      "--types",
      "node",
      "--typeRoots",
      join(root, "node_modules/@types"),
    ];
    const args = ["tsc", "--noEmit", "--module", "nodenext", ...strictest, ...types, "entries.mts"];
    const { stdout } = spawnSync("npx", ["--no-install", ...args], { cwd: app, encoding: "utf8" });
    expect(stdout).toBe("");
  });

  test("lets every type that its declarations name be imported", () => {
    const installed = join(app, "node_modules/waymark");
    const declarations = Object.entries(manifest.exports).flatMap(([name, target]) =>
      typeof target === "string"
        ? []
        : [[`waymark${name.slice(1)}`, join(installed, target.types)] as const],
    );
    expect(unimportable(new Map(declarations))).toEqual([]);
  });

  test("lets a module that returns its types have declarations of its own", () => {
    // Without a package around it, TypeScript lets a declaration reach into node_modules.
    writeFileSync(join(app, "package.json"), JSON.stringify({ type: "module" }));
    cpSync(join(import.meta.dirname, "fixtures/declarations.ts"), join(app, "declarations.ts"));
    const args = ["--declaration", "--emitDeclarationOnly", "--strict", "--module", "nodenext"];
    const { stdout } = spawnSync("npx", ["--no-install", "tsc", ...args, "declarations.ts"], {
      cwd: app,
      encoding: "utf8",
    });
    rmSync(join(app, "package.json"));
    expect(stdout).toBe("");
  });

  test("calls its classes and functions by the names they are exported by", () => {
    const script = `
      const misnamed = Object.entries(await import("waymark")).filter(
        ([name, value]) => typeof value === "function" && value.name !== name);
      console.log(JSON.stringify(misnamed.map(([name]) => name)));`;
    writeFileSync(join(app, "names.mjs"), script);
    expect(JSON.parse(run(process.execPath, ["names.mjs"], app))).toEqual([]);
  });

  test("does what the ten-minute page says, word by word", () => {
    let commands: string[] = [];
    const done: string[] = [];
    // The first commands make the folder and install the package: that is what the app is.
    for (const { info, code } of blocksOf("guide/start-here.md").slice(1)) {
      const [, file] = /^\/\/ (\S+\.m[jt]s)$/m.exec(code) ?? [];
      if (file !== undefined) writeFileSync(join(app, file), code);
      if (info === "sh") commands = code.trim().split("\n");
      if (info !== "text") continue;
      const printed = commands.map((command) => {
        const { stdout } = spawnSync(command, { cwd: app, shell: true, encoding: "utf8" });
        return stdout;
      });
      expect(printed.join(""), commands.join("; ")).toBe(code);
      done.push(...commands);
    }
    expect(done).toEqual([
      "node article.mjs draft",
      "ls .waymark/monday",
      "node article.mjs",
      "node article.mjs",
      "node history.mjs",
      "npx tsc --noEmit --strict --module nodenext typed.mts",
      "npx tsx typed.mts",
    ]);
  });

  test("has the command, which loads a config and its graph in TypeScript", () => {
    // Links what a package says is a command, as an installation does.
    run("npm", ["rebuild", "--ignore-scripts", "--silent"], app);
    writeFileSync(
      join(app, "waymark.config.ts"),
      `import { StateGraph } from "waymark";
      interface Data { n: number }
      const graph = new StateGraph<Data>({ name: "count" })
        .addNode("one", ({ data }) => ({ n: data.n + 1 }))
        .setEntryPoint("one")
        .setExitPoint("one");
      export default { store: "file:counted", graphs: { count: graph } };`,
    );
    const waymark = (...args: string[]) => run("npx", ["--no-install", "waymark", ...args], app);
    expect(waymark("--version")).toBe(`${manifest.version}\n`);
    const counted = waymark("run", "count", "--id", "monday", "--data", '{"n":1}', "--json");
    expect(JSON.parse(counted)).toMatchObject({ status: "completed", data: { n: 2 } });
    expect(waymark("list")).toMatch(/monday +count +completed +one +1\/1 /);
  });

  test("has the page that an error's help names", () => {
    writeFileSync(
      join(app, "help.mjs"),
      `import { readFileSync } from "node:fs";
      import { ConfigError } from "waymark";
      const [page, anchor] = new ConfigError("keep", "is wrong").help.split("#");
      const text = readFileSync(new URL("node_modules/" + page, import.meta.url), "utf8");
      console.log(text.includes("### " + anchor.toUpperCase()));`,
    );
    expect(run(process.execPath, ["help.mjs"], app)).toBe("true\n");
  });

  test("runs, checkpoints and resumes", () => {
    writeFileSync(
      join(app, "run.mjs"),
      `import { MemoryStore, State, StateGraph } from "waymark";
      let broken = true;
      const graph = new StateGraph({ checkpoint: { store: new MemoryStore(), interval: 1 } })
        .addNode("one", () => ({ a: 1n }))
        .addNode("two", (state) => {
          if (broken) throw new Error("broken");
          return { b: state.data.a + 1n };
        })
        .addEdge("one", "two")
        .setEntryPoint("one")
        .setExitPoint("two");
      const state = State.create({});
      await graph.execute(state).catch((error) => console.log(error.code));
      broken = false;
      console.log((await graph.resume(state.runId)).data.b);`,
    );
    expect(run(process.execPath, ["run.mjs"], app)).toBe("NODE_FAILED\n2n\n");
  });
});
