import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { json, newFolder, waymark } from "./harness.js";

describe("the config", () => {
  test.each(["ts", "mts", "mjs", "json"])("is read as .%s", async (ending) => {
    const folder = newFolder();
    const config = { store: "main", stores: { main: "file:a", other: { store: "sqlite:b.db" } } };
    const text = JSON.stringify(config);
    writeFileSync(
      join(folder, `waymark.config.${ending}`),
      ending === "json" ? text : `export default ${text};`,
    );
    expect((await waymark(folder, "list")).out).toContain(`no runs in file:${join(folder, "a")}`);
    expect((await waymark(folder, "list", "--store", "other")).out).toContain("no runs in sqlite:");
    const env = { WAYMARK_STORE: "sqlite:c.db" };
    expect((await waymark({ cwd: folder, env }, "list")).out).toContain(join(folder, "c.db"));
    expect((await waymark({ cwd: folder, env: { WAYMARK_STORE: "" } }, "list")).out).toContain(
      join(folder, "a"),
    );
    const nope = await waymark(folder, "list", "--store", "nope");
    expect(nope.code).toBe(2);
    expect(nope.err).toMatch(
      /store must be an address \(.*sqlite:FILE.*\), or a registered name: main, other; got "nope"/,
    );
  });

  test("that is invalid is refused in one line", async () => {
    const wrong: readonly (readonly [string, string, number, RegExp])[] = [
      ["json", "{", 1, /waymark\.config\.json can't be read/],
      ["ts", "throw new Error('first\\nsecond')", 1, /can't be loaded: first \(--debug/],
      ["ts", "throw 'text'", 1, /can't be loaded: text/],
      ["mjs", "export const a = 1;", 1, /has no default export/],
      ["ts", "export default 1", 2, /must be an object of options; got 1/],
      ["json", '{ "store": 1 }', 2, /store must be a non-empty string; got 1/],
      ["json", '{ "store": {} }', 2, /store\.store must be a non-empty string/],
      ["json", '{ "stores": [] }', 2, /stores must be an object; got an array/],
      ["json", '{ "graphs": 1 }', 2, /graphs must be an object; got 1/],
      ["json", '{ "redact": 1 }', 2, /redact/],
      ["json", '{ "redact": ["/(/"] }', 2, /redact\[0\] must be an expression; got "\/\(\/"/],
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

  test("distinguishes a graph of another copy of waymark", async () => {
    const folder = newFolder();
    writeFileSync(
      join(folder, "waymark.config.mjs"),
      "export default { graphs: { other: { name: 'other', toMermaid() {} } } };",
    );
    const { code, err } = await waymark(folder, "run", "other");
    expect(code).toBe(1);
    expect(err).toContain(
      'graph "other" was made by another copy of waymark (run the command of that copy',
    );
  });

  test("also finds a run's graph by the graph's own name", async () => {
    const folder = newFolder();
    const fixture = join(import.meta.dirname, "fixtures/graphs.ts");
    const graphs = { first: `${fixture}#slow`, second: `${fixture}#article` };
    writeFileSync(join(folder, "waymark.config.json"), JSON.stringify({ store: "file:a", graphs }));
    const data = '{"topic":"x","parts":[]}';
    expect((await waymark(folder, "run", "second", "--id", "monday", "--data", data)).code).toBe(0);
    await waymark(folder, "rollback", "monday", "--at", "1", "--yes");
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
    expect(await where("sqlite:b/c")).toBe(`no runs in sqlite:${join(folder, "b/c")}`);
    const empty = await waymark(folder, "list", "--store", "file:");
    expect(empty.code).toBe(2);
    expect(empty.err).toContain('got "file:"');
    const secret = await waymark(folder, "list", "--store", "mysql://me:s3cret@host/db");
    expect(secret.err).toContain('got "mysql://me:***@host/db"');
    const others = {
      "mysql://me:s3@cret:s@host:1/db": "mysql://me:***@host:1/db",
      "mysql://host/db?a=b&password=s3cret&c=d": "mysql://host/db?a=b&password=***&c=d",
      "mysql://me@host:1/db": "mysql://me@host:1/db",
    };
    for (const [store, shown] of Object.entries(others)) {
      const { err } = await waymark(folder, "list", "--store", store);
      expect(err).toContain(`got ${JSON.stringify(shown)}`);
    }
  });
});
