import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { articleRun, json, newFolder, project, slowRun, waymark } from "../harness.js";

describe("doctor", () => {
  test("finds no problems, even in an empty folder", async () => {
    const folder = project();
    const { code, out } = await waymark(folder, "doctor");
    expect(code).toBe(0);
    expect(out).toMatch(/ok +node +\d+/);
    expect(out).toMatch(
      /ok +config +.*waymark\.config\.ts, graphs: article, asking, flaky, phased, slow/,
    );
    expect(out).toMatch(/ok +store +file:.*, 0 runs/);
    expect(out).toMatch(/ok +permissions .*does not exist yet; it can be created/);
    await articleRun(folder);
    await waymark(folder, "rollback", "monday", "--at", "1", "--yes");
    const run = await slowRun(folder, "tuesday");
    const there = await waymark(folder, "doctor");
    await run.finish();
    expect(there.out).toMatch(/only its owner can read .* \(700\)/);
    expect(there.out).toMatch(/runs +1 run at work, 1 stopped before the end/);
    expect((await waymark(folder, "list")).out).toMatch(/monday +article +in_progress, stopped/);
    expect(await json(folder, "doctor")).toMatchObject({ ok: true });
    expect((await waymark(newFolder(), "doctor")).out).toMatch(/config +none/);
  });

  test("finds problems", async () => {
    const folder = project();
    mkdirSync(join(folder, ".waymark"));
    chmodSync(join(folder, ".waymark"), 0o755);
    const open = await waymark(folder, "doctor");
    expect(open.code).toBe(0);
    expect(open.out).toMatch(/warning +permissions .*is 755: others can read it/);
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

  test("checks stores of every kind", async () => {
    const folder = newFolder();
    const sqlite = await waymark(folder, "doctor", "--store", "sqlite:runs/runs.db");
    expect(sqlite.out).toMatch(/ok +permissions .*runs does not exist yet; it can be created/);
    writeFileSync(
      join(folder, "waymark.config.mjs"),
      `const fail = async () => { throw new Error("nothing is kept"); };
export default { store: { save: fail, load: fail, delete: fail, list: async () => ["a"] } };`,
    );
    const { code, out } = await waymark(folder, "doctor");
    expect(code).toBe(0);
    expect(out).toMatch(/ok +config +\S*waymark\.config\.mjs\n/);
    expect(out).toMatch(/ok +store +.*, 1 run\n/);
    expect(out).not.toMatch(/permissions|disk|at work/);
  });
});
