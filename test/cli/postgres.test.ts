import { existsSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { articleRun, json, newFolder, project, waymark } from "./harness.js";

test("runs in a PGlite are seen, checked, repaired, resumed and moved", async () => {
  const folder = project("pglite:db");
  await articleRun(folder);
  expect((await waymark(folder, "list")).out).toMatch(
    /monday +article +completed +publish +3 .*\$0\.05/,
  );
  const { PGlite } = await import("@electric-sql/pglite");
  const database = await PGlite.create(join(folder, "db"));
  await database.exec(
    "UPDATE waymark.checkpoints SET body = replace(body, 'publish', 'publiss') WHERE sequence = 4",
  );
  await database.close();
  // Looking does not set it aside.
  for (let again = 0; again < 2; again++) {
    const { code, out } = await waymark(folder, "validate");
    expect(code).toBe(1);
    expect(out).toMatch(/problem +corrupt +monday +4/);
  }
  expect(await json(folder, "repair", "--yes")).toMatchObject([{ runId: "monday", step: 2 }]);
  expect(await json(folder, "resume", "monday")).toMatchObject({ status: "completed", step: 3 });
  expect(await json(folder, "convert", "--to", "file:files")).toMatchObject([{ problem: "" }]);
  expect((await waymark(folder, "validate", "--store", "file:files")).code).toBe(0);
}, 90_000);

test("looking makes no database", async () => {
  const folder = newFolder();
  const { code, err } = await waymark(folder, "list", "--store", "pglite:none");
  expect(code).toBe(3);
  expect(err).toContain("there is no folder");
  expect(existsSync(join(folder, "none"))).toBe(false);
});

test("a server that can't be reached is told without its password", async () => {
  const store = "postgres://me:s3cret@127.0.0.1:1/db";
  const { code, out, err } = await waymark(newFolder(), "doctor", "--store", store);
  expect(code).toBe(1);
  expect(out).toMatch(/problem +store/);
  expect(out + err).not.toContain("s3cret");
});
