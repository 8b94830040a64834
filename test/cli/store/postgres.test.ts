import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Databases, startDatabases } from "../database.js";
import { articleRun, json, newFolder, project, slowRun, waymark } from "../harness.js";

describe("a server", () => {
  let databases: Databases;

  beforeAll(async () => {
    databases = await startDatabases();
  });

  afterAll(() => databases.stop());

  test("without saves has no runs, and reading creates no tables", async () => {
    const store = await databases.create();
    const folder = project(store);
    const { code, out, err } = await waymark(folder, "list");
    expect({ code, err }).toEqual({ code: 0, err: "" });
    expect(out).toMatch(/^no runs in postgres:\/\/postgres:\*\*\*@/);
    expect((await waymark(folder, "show", "monday")).code).toBe(3);
    expect((await waymark(folder, "validate")).code).toBe(0);
    expect(await json(folder, "prune", "--max-runs", "0", "--dry-run")).toMatchObject({
      removed: [],
    });
    const healthy = await waymark(folder, "doctor");
    expect(healthy.code).toBe(0);
    expect(healthy.out).toMatch(
      /ok +store .*, 0 runs\n +runs .*\n +server +Postgres [\d.]+, .*B in the database/,
    );
    expect(healthy.out).toMatch(/ok +rights +there are no tables yet; this user may create them/);
    const query = "SELECT FROM pg_namespace WHERE nspname = 'waymark'";
    expect(await databases.query(store, query)).toEqual([]);
  });

  test("shows its runs, including active ones", async () => {
    const store = await databases.create();
    const folder = project(store);
    await articleRun(folder);
    await waymark(folder, "rollback", "monday", "--at", "1", "--yes");
    expect((await waymark(folder, "list")).out).toMatch(/monday +article +in_progress, stopped/);
    const run = await slowRun(folder, "tuesday");
    expect((await waymark(folder, "list")).out).toMatch(/tuesday +slow +in_progress, live/);
    const shown = await waymark(folder, "show", "tuesday");
    expect(shown.out).toMatch(/status +in_progress, live\n/);
    expect(shown.out).toMatch(/next +review\n(.*\n)*follow +waymark watch tuesday\n/);
    const refused = await waymark(folder, "resume", "tuesday");
    expect(refused.code).toBe(1);
    expect(refused.err).toMatch(
      /is being worked on by process \d+.* \(waymark watch tuesday follows it\)/,
    );
    expect((await run.finish()).code).toBe(0);
    const report = await json(folder, "show", "tuesday");
    expect(report).toMatchObject({ status: "completed", live: false, waitsFor: [] });
  });

  test("is distinguished from an unusable one", async () => {
    const store = await databases.create();
    const folder = project(store);
    await articleRun(folder);
    const at = (change: (url: URL) => void): string => {
      const url = new URL(store);
      change(url);
      return url.href;
    };
    const list = (url: string) => waymark(folder, "list", "--store", url);
    const missing = await list(at((url) => (url.pathname = "/none")));
    expect(missing.code).toBe(1);
    expect(missing.err).toMatch(
      /"none" does not exist \(create the database first, or name another/,
    );
    await databases.query(
      store,
      "CREATE ROLE reader LOGIN PASSWORD 'reader'; GRANT USAGE ON SCHEMA waymark TO reader; GRANT SELECT ON ALL TABLES IN SCHEMA waymark TO reader",
    );
    const reader = at((url) => {
      url.username = "reader";
      url.password = "reader";
    });
    expect((await list(reader)).out).toMatch(/monday +article +completed/);
    const doctor = await waymark(folder, "doctor", "--store", reader);
    expect(doctor.code).toBe(1);
    expect(doctor.out).toMatch(/problem +rights +this user may not save/);
    const refused = await waymark(folder, "fork", "monday", "--store", reader);
    expect(refused.code).toBe(1);
    expect(refused.err).toMatch(/permission denied .*\(waymark doctor checks the store\)/);
    await databases.query(store, "DROP OWNED BY reader; DROP ROLE reader");
  });

  test("that can't be reached is reported with a remedy and without its password", async () => {
    const store = "postgres://me:s3cret@127.0.0.1:1/db";
    const { code, out, err } = await waymark(newFolder(), "doctor", "--store", store);
    expect(code).toBe(1);
    expect(out).toMatch(/problem +store .*ECONNREFUSED.* \(no server answers there; start it/);
    expect(out + err).not.toContain("s3cret");
  });
});

describe("a PGlite folder", () => {
  test("shows, checks, repairs, resumes and moves its runs", async () => {
    const folder = project("pglite:db");
    await articleRun(folder);
    expect((await waymark(folder, "list")).out).toMatch(
      /monday +article +completed +publish +3 .*\$0\.05/,
    );
    const { PGlite } = await import("@electric-sql/pglite");
    const database = await PGlite.create(join(folder, "db"));
    await database.exec(
      "UPDATE waymark.checkpoints SET content = content || ' ' WHERE sequence = 4",
    );
    await database.close();
    const found = await waymark(folder, "validate");
    expect(found.code).toBe(1);
    expect(found.out).toMatch(/problem +corrupt +monday +4/);
    // Looking did not set it aside: it is still there to repair.
    expect(await json(folder, "repair", "--yes")).toMatchObject([{ runId: "monday", step: 2 }]);
    expect((await waymark(folder, "list")).out).toMatch(/monday +article +in_progress, stopped/);
    expect(await json(folder, "resume", "monday")).toMatchObject({ status: "completed", step: 3 });
    expect(await json(folder, "convert", "--to", "file:files")).toMatchObject([{ problem: "" }]);
    expect((await waymark(folder, "validate", "--store", "file:files")).code).toBe(0);
    const { code, out } = await waymark(folder, "doctor");
    expect(code).toBe(0);
    expect(out).toMatch(/ok +rights +this user may save\n/);
    expect(out).toMatch(/ok +disk +.* free/);
  });

  test("that does not exist has no runs, and reading creates none", async () => {
    const folder = newFolder();
    const none = ["--store", "pglite:none"];
    expect((await waymark(folder, "list", ...none)).out).toBe(
      `no runs in pglite:${join(folder, "none")}\n`,
    );
    expect((await waymark(folder, "state", "monday", ...none)).code).toBe(3);
    expect((await waymark(folder, "doctor", ...none)).out).toMatch(
      /ok +permissions .*none does not exist yet; it can be created/,
    );
    expect(existsSync(join(folder, "none"))).toBe(false);
    writeFileSync(join(folder, "file"), "");
    const { code, err } = await waymark(folder, "list", "--store", "pglite:file");
    expect({ code, err }).toEqual({ code: 2, err: expect.stringContaining(join(folder, "file")) });
  });
});
