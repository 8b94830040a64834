import { execFileSync } from "node:child_process";
import { chmodSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { commandNames, loadCommands } from "../../src/cli/commands/index.js";
import { commandLinePage } from "../../src/cli/guide.js";
import { ownerName } from "../../src/stores/file/process.js";
import { articleRun, json, newFolder, project, waymark } from "./harness.js";

const root = join(import.meta.dirname, "../..");

describe("graph", () => {
  test("prints Mermaid, with a run what is done and next", async () => {
    const folder = project();
    await articleRun(folder);
    await waymark(folder, "rollback", "monday", "--to", "1", "--yes");
    const { out } = await waymark(folder, "graph", "article");
    expect(out).toMatch(/^flowchart TD\n/);
    expect(out).not.toContain("class n0 done");
    const marked = (await waymark(folder, "graph", "article", "--run", "monday")).out;
    expect(marked).toContain("class n0 done");
    expect(marked).toContain("class n1 next");
    expect(await json(folder, "graph", "article")).toMatchObject({ name: "article", mermaid: out });
  });

  test("draws", async () => {
    const folder = project();
    await articleRun(folder);
    await waymark(folder, "rollback", "monday", "--to", "1", "--yes");
    const { out } = await waymark(folder, "graph", "article", "--run", "monday", "--draw");
    expect(out).toMatchInlineSnapshot(`
      "    start
          │
          ▼
      ┌─────────┐
      │ ✓ draft │
      └───┬─────┘
          │
          ▼
      ┌──────────┐
      │ ▶ review │ ╌╌▷ draft  too long
      └───┬──────┘
          │
          ▼
      ╭─────────╮
      │ publish │
      ╰─────────╯
      "
    `);
    expect(await json(folder, "graph", "article", "--draw")).toMatchObject({
      entry: "n0",
      nodes: [{ name: "draft", isExit: false, mark: "" }, {}, { name: "publish", isExit: true }],
      edges: [{}, { label: "too long", isConditional: true }, {}],
    });
  });

  test("draws loops, branches and names of any kind", async () => {
    const folder = newFolder();
    writeFileSync(
      join(folder, "graph.ts"),
      `import { StateGraph } from "waymark";
export const one = new StateGraph({}).addNode("a", (s) => s).addNode("b [x] \\u001b", (s) => s).addNode("山", (s) => s).addNode("lost", (s) => s)
  .addEdge("a", "a", () => false, "again").addEdge("a", "山", () => true).addEdge("a", "b [x] \\u001b").addEdge("山", "b [x] \\u001b", () => true, "up")
  .addEdge("a", "lost").addEdge("lost", "a")
  .setEntryPoint("a").setExitPoint("b [x] \\u001b");
export const empty = new StateGraph({ name: "empty" });
export const notGraph = 1;
export class Thing {}
export const make = async () => one;`,
    );
    const { code, out } = await waymark(folder, "graph", "./graph.ts#one", "--draw");
    expect(code).toBe(0);
    expect(out).toMatchInlineSnapshot(`
      "    start
          │
          ▼
      ┌───────┐
      │ a     │ ╌╌▷ itself  again
      │       │ ──▶ b [x] \\x1b
      └───┬───┘ ──▶ lost
          ╎
          ▼
      ┌───────┐
      │ 山    │
      └───┬───┘
          ╎ up
          ▼
      ╭────────────╮
      │ b [x] \\x1b │
      ╰────────────╯

      ┌───────┐
      │ lost  │ ──▶ a
      └───────┘
      "
    `);
    expect((await waymark(folder, "graph", "./graph.ts#make")).code).toBe(0);
    writeFileSync(join(folder, "only.ts"), 'export { one, notGraph } from "./graph.ts";');
    expect((await waymark(folder, "graph", "./only.ts")).code).toBe(0);
    expect((await waymark(folder, "graph", "./graph.ts#empty", "--draw")).code).toBe(0);
    const wrong: readonly (readonly [string, number, RegExp])[] = [
      ["./graph.ts", 3, /has no export that is the graph \(name it: \.\/graph\.ts#name\)/],
      ["./graph.ts#nope", 3, /exports no "nope" \(it has /],
      ["./graph.ts#notGraph", 1, /wants to be a StateGraph, got 1/],
      ["./graph.ts#Thing", 1, /wants to be a StateGraph, got the function Thing/],
      ["./none.ts", 3, /there is no module .*none\.ts/],
      ["none", 3, /there is no graph "none" \(name it under graphs in waymark\.config\.ts/],
    ];
    for (const [graph, code, message] of wrong) {
      const ended = await waymark(folder, "graph", graph);
      expect(ended.err).toMatch(message);
      expect(ended.code).toBe(code);
    }
  });
});

describe("doctor", () => {
  test("finds all well, also where nothing is yet", async () => {
    const folder = project();
    const { code, out } = await waymark(folder, "doctor");
    expect(code).toBe(0);
    expect(out).toMatch(/ok +node +\d+/);
    expect(out).toMatch(/ok +config +.*waymark\.config\.ts, graphs: article, asking, flaky, slow/);
    expect(out).toMatch(/ok +store +file:.*, 0 runs/);
    expect(out).toMatch(/ok +permissions .*is not there yet; it can be made/);
    await articleRun(folder);
    const claims = join(folder, ".waymark/.claims");
    mkdirSync(claims, { recursive: true });
    const dead = ownerName().replace(/^\d+/, "999999999");
    for (const name of [`monday@${dead}.1`, `${dead}.alive`, `sunday@${ownerName()}.1`]) {
      writeFileSync(join(claims, name), "");
    }
    const there = await waymark(folder, "doctor");
    expect(there.out).toMatch(/for its owner only \(700\)/);
    expect(there.out).toMatch(/claims +1 run at work, 1 left by dead processes/);
    await waymark(folder, "rollback", "monday", "--to", "1", "--yes");
    expect((await waymark(folder, "list")).out).toMatch(/monday +article +in_progress, stopped/);
    expect(await json(folder, "doctor")).toMatchObject({ ok: true });
    expect((await waymark(newFolder(), "doctor")).out).toMatch(/config +none/);
  });

  test("finds what is wrong", async () => {
    const folder = project();
    mkdirSync(join(folder, ".waymark"));
    chmodSync(join(folder, ".waymark"), 0o755);
    const open = await waymark(folder, "doctor");
    expect(open.code).toBe(0);
    expect(open.out).toMatch(/warning +permissions .*is 755: others may look into it/);
    writeFileSync(join(folder, "broken.ts"), "export default { nope: 1 };");
    const broken = await waymark(folder, "doctor", "--config", "broken.ts");
    expect(broken.code).toBe(1);
    expect(broken.out).toMatch(/problem +config .*nope is not an option/);
    expect(broken.out).toMatch(/problem +store/);
    const small = await waymark({ cwd: folder, columns: 60 }, "doctor", "--config", "broken.ts");
    expect(small.out).toMatch(
      /config +.*…\n {2}.*nope is not an option; the options are .*, log\n/,
    );
    writeFileSync(join(folder, "file"), "");
    const unreadable = await waymark(folder, "doctor", "--no-config", "--store", "file:file");
    expect(unreadable.code).toBe(1);
  });
});

describe("the config", () => {
  test.each(["ts", "mts", "mjs", "json"])("is read as .%s", async (ending) => {
    const folder = newFolder();
    const config = { store: "main", stores: { main: "file:a", other: { store: "journal:b" } } };
    const text = JSON.stringify(config);
    writeFileSync(
      join(folder, `waymark.config.${ending}`),
      ending === "json" ? text : `export default ${text};`,
    );
    expect((await waymark(folder, "list")).out).toContain(`no runs in file:${join(folder, "a")}`);
    expect((await waymark(folder, "list", "--store", "other")).out).toContain(
      "no runs in journal:",
    );
    const env = { WAYMARK_STORE: "journal:c" };
    expect((await waymark({ cwd: folder, env }, "list")).out).toContain(join(folder, "c"));
    expect((await waymark({ cwd: folder, env: { WAYMARK_STORE: "" } }, "list")).out).toContain(
      join(folder, "a"),
    );
    const nope = await waymark(folder, "list", "--store", "nope");
    expect(nope.code).toBe(2);
    expect(nope.err).toMatch(
      /"nope" is no store \(file:DIR, .*or one of the config's: main, other\)/,
    );
  });

  test("that is no config is refused in one line", async () => {
    const wrong: readonly (readonly [string, string, number, RegExp])[] = [
      ["json", "{", 1, /waymark\.config\.json can't be read/],
      ["ts", "throw new Error('first\\nsecond')", 1, /can't be loaded: first \(--debug/],
      ["ts", "throw 'text'", 1, /can't be loaded: text/],
      ["mjs", "export const a = 1;", 1, /has no default export/],
      ["ts", "export default 1", 2, /wants an object of options, got 1/],
      ["json", '{ "store": 1 }', 2, /store wants a string that is not empty, got 1/],
      ["json", '{ "store": {} }', 2, /store\.store wants a string/],
      ["json", '{ "stores": [] }', 2, /stores wants an object, got an array/],
      ["json", '{ "graphs": 1 }', 2, /graphs wants an object, got 1/],
      ["json", '{ "redact": 1 }', 2, /redact/],
    ];
    for (const [ending, text, code, message] of wrong) {
      const folder = newFolder();
      writeFileSync(join(folder, `waymark.config.${ending}`), text);
      const ended = await waymark(folder, "list");
      expect(ended.err).toMatch(message);
      expect(ended.err.trimEnd()).not.toContain("\n");
      expect(ended.code).toBe(code);
      expect((await waymark(folder, "list", "--no-config")).code).toBe(0);
    }
    expect((await waymark(newFolder(), "list", "--config", "none.ts")).code).toBe(3);
  });

  test("a graph of another copy of waymark is told from one of this", async () => {
    const folder = newFolder();
    writeFileSync(
      join(folder, "waymark.config.mjs"),
      "export default { graphs: { other: { name: 'other', toMermaid() {} } } };",
    );
    const { code, err } = await waymark(folder, "run", "other");
    expect(code).toBe(1);
    expect(err).toContain(
      "comes from another copy of waymark than this command (run the command of its own copy",
    );
  });

  test("a run finds its graph also by the graph's own name", async () => {
    const folder = newFolder();
    const fixture = join(import.meta.dirname, "fixtures/graphs.ts");
    const graphs = { first: `${fixture}#slow`, second: `${fixture}#article` };
    writeFileSync(join(folder, "waymark.config.json"), JSON.stringify({ store: "file:a", graphs }));
    const data = '{"topic":"x","parts":[]}';
    expect((await waymark(folder, "run", "second", "--id", "monday", "--data", data)).code).toBe(0);
    await waymark(folder, "rollback", "monday", "--to", "1", "--yes");
    expect(await json(folder, "resume", "monday")).toMatchObject({ status: "completed" });
  });
});

describe("stores", () => {
  test("are given by an address", async () => {
    const folder = newFolder();
    const where = async (store: string) =>
      (await waymark(folder, "list", "--store", store)).out.trim();
    expect(await where("file:a")).toBe(`no runs in file:${join(folder, "a")}`);
    expect(await where("file:/tmp/none")).toBe("no runs in file:/tmp/none");
    expect(await where("file:///tmp/none")).toBe("no runs in file:/tmp/none");
    expect(await where("journal:b/c")).toBe(`no runs in journal:${join(folder, "b/c")}`);
    const empty = await waymark(folder, "list", "--store", "file:");
    expect(empty.code).toBe(2);
    expect(empty.err).toContain('store "file:" names no folder (as in file:.waymark)');
    const secret = await waymark(folder, "list", "--store", "mysql://me:s3cret@host/db");
    expect(secret.err).toContain('"mysql://me:***@host/db" is no store');
    const others = {
      "mysql://me:s3@cret:s@host:1/db": "mysql://me:***@host:1/db",
      "mysql://host/db?a=b&password=s3cret&c=d": "mysql://host/db?a=b&password=***&c=d",
      "mysql://me@host:1/db": "mysql://me@host:1/db",
    };
    for (const [store, shown] of Object.entries(others)) {
      const { err } = await waymark(folder, "list", "--store", store);
      expect(err).toContain(`"${shown}" is no store`);
    }
  });
});

describe("completion", () => {
  test.each(["bash", "zsh", "fish"])("has a script for %s", async (shell) => {
    const { code, out } = await waymark(newFolder(), "completion", shell);
    expect(code).toBe(0);
    for (const name of commandNames) expect(out).toContain(name);
    expect(out).toContain("max-age");
    expect(await json(newFolder(), "completion", shell)).toEqual({ shell, script: out });
    const parser = shell === "bash" ? "bash" : undefined;
    if (parser !== undefined) execFileSync(parser, ["-n"], { input: out });
  });

  test("completes in bash", async () => {
    const { out } = await waymark(newFolder(), "completion", "bash");
    const folder = newFolder();
    const ids = ["monday", "tuesday", "$(id>here)", "`id>here`", "it's", "*"];
    writeFileSync(join(folder, "runs"), `${ids.join("\n")}\n`);
    const complete = (...words: string[]): string[] => {
      const quoted = words.map((word) => `'${word}'`).join(" ");
      const script = `${out}
waymark() { cat runs; }
COMP_WORDS=(${quoted}); COMP_CWORD=${words.length - 1}; _waymark; printf '%s\\n' "\${COMPREPLY[@]}"`;
      const settings = { cwd: folder, encoding: "utf8" } as const;
      return execFileSync("bash", ["-c", script], settings).trim().split("\n");
    };
    expect(complete("waymark", "li")).toEqual(["list"]);
    expect(complete("waymark", "prune", "--max")).toEqual(["--max-age", "--max-runs"]);
    expect(complete("waymark", "show", "m")).toEqual(["monday"]);
    // An id is data, whatever is in it: no part of it is run, or stands for files.
    const all = ["monday", "tuesday", "\\$\\(id\\>here\\)"];
    expect(complete("waymark", "show", "")).toEqual([...all, "\\`id\\>here\\`", "it\\'s", "\\*"]);
    expect(complete("waymark", "show", "\\$")).toEqual(all.slice(2));
    expect(readdirSync(folder)).toEqual(["runs"]);
    expect(complete("waymark", "completion", "z")).toEqual(["zsh"]);
  });

  test("lists runs for the scripts, and refuses other shells", async () => {
    const folder = project();
    for (const id of ["monday", "a b", "-v"]) await articleRun(folder, id);
    expect((await waymark(folder, "completion", "--runs")).out).toBe("monday\n");
    expect(await json(folder, "completion", "--runs")).toEqual(["-v", "a b", "monday"]);
    for (const args of [["tcsh"], []]) {
      const { code, err } = await waymark(folder, "completion", ...args);
      expect(code).toBe(2);
      expect(err).toContain("(bash, zsh, fish)");
    }
  });
});

describe("help", () => {
  test("lists all commands and the exit codes", async () => {
    for (const args of [["--help"], ["help"], []]) {
      const { code, out } = await waymark(newFolder(), ...args);
      expect(code).toBe(0);
      for (const name of commandNames) expect(out).toMatch(new RegExp(`^  ${name}\\b`, "m"));
      expect(out).toMatch(/Exit codes:\n {2}0 +all went well\n/);
      expect(out).toMatch(/\n {2}130 +interrupted/);
    }
  });

  test.each(commandNames)("%s has an example", async (name) => {
    const { code, out } = await waymark(newFolder(), name, "--help");
    expect(code).toBe(0);
    expect(out).toMatch(new RegExp(`^Usage: waymark ${name}`));
    expect(out).toMatch(/Examples?:\n {2}\$ .*waymark/);
    expect(out).toContain("--json");
    expect((await waymark(newFolder(), "help", name)).out).toBe(out);
  });

  test("the version is that of the package", async () => {
    const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
    expect((await waymark(newFolder(), "--version")).out).toBe(`${version}\n`);
  });

  test("what is misspelt is told in one line", async () => {
    const wrong: readonly (readonly [string[], RegExp])[] = [
      [["lst"], /unknown command 'lst' .*[Dd]id you mean list\?.*\(try: waymark --help\)/],
      [["--json"], /there is no such command, or none was given \(try: waymark --help\)/],
      [["help", "nope"], /there is no such command, or none was given \(try: waymark --help\)/],
      [["list", "--nope"], /unknown option '--nope' \(try: waymark list --help\)/],
      [["list", "--status", "nope"], /argument 'nope' is invalid.*Allowed choices are/],
      [["list", "--limit", "0"], /--limit wants a whole number from 1 up, got "0"/],
      [["prune", "--max-runs", "-1"], /--max-runs wants|argument missing/],
      [["show"], /missing required argument 'run'/],
      [["show", "a", "b"], /too many arguments/],
    ];
    for (const [args, message] of wrong) {
      const { code, out, err } = await waymark(newFolder(), ...args);
      expect(err).toMatch(message);
      expect(err.trimEnd()).not.toContain("\n");
      expect(out).toBe("");
      expect(code).toBe(2);
    }
  });
});

test("the page of the guide is current; npm run cli:guide writes it", async () => {
  const page = commandLinePage(await loadCommands(commandNames));
  expect(readFileSync(join(root, "guide/command-line.md"), "utf8")).toBe(page);
});
