import { chownSync, existsSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { CheckpointSaveError } from "waymark";
import { PostgresStore } from "waymark/stores/postgres";
import { rejection } from "../../graphs.js";
import { type OwnServer, startOwnServer } from "./server.js";
import { type Notes, start } from "./tables.js";

/** A file that is always full: of Linux, and of some others. */
const FULL = "/dev/full";
let server: OwnServer;

beforeAll(async () => {
  server = await startOwnServer(["-c", "fsync=off"]);
});

afterAll(() => server.stop());

test("a save interrupted by a server crash is made exactly once when it is back", async () => {
  const store = new PostgresStore({ client: server.pool(), schema: "restart", retryFor: 20_000 });
  const first = await store.save(start());
  const watcher = server.pool({ max: 2 });
  const other = await watcher.connect();
  other.on("error", () => {});
  await other.query("BEGIN");
  await other.query("SELECT FROM restart.runs FOR UPDATE");
  const saving = store.save(first.set("n", 1));
  await vi.waitFor(
    async () => {
      const waiting = await watcher.query(
        "SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock'",
      );
      expect(waiting.rowCount).toBe(1);
    },
    { timeout: 20_000 },
  );
  await server.kill();
  await server.restart();
  expect((await saving).sequence).toBe(2);
  const { rows } = await server.pool().query("SELECT sequence FROM restart.checkpoints");
  expect(rows).toHaveLength(2);
  other.release(true);
});

/** The file in which the server keeps what is too large for a row. */
async function largeFile(): Promise<string> {
  const { rows } = await server
    .pool({ max: 1 })
    .query(
      `SELECT pg_relation_filepath(reltoastrelid) AS path FROM pg_class WHERE oid = 'waymark.checkpoints'::regclass`,
    );
  return join(server.folder, rows[0].path);
}

/** Text that can't be made smaller. */
function noise(length: number): string {
  let [text, seed] = ["", 1];
  while (text.length < length) {
    seed = (seed * 48_271) % 2_147_483_647;
    text += seed.toString(36);
  }
  return text;
}

test("a save on a full disk fails, and succeeds once there is room", async () => {
  expect(existsSync(FULL), `this test needs ${FULL}`).toBe(true);
  const first = await new PostgresStore({ client: server.pool() }).save(start());
  const file = await largeFile();
  const { uid, gid, size } = statSync(file);
  expect(size).toBe(0);
  rmSync(file);
  symlinkSync(FULL, file);

  // Connections that have not opened the file yet.
  const store = new PostgresStore({ client: server.pool() });
  const large = first.set("text", noise(100_000));
  const error = await rejection(store.save(large), CheckpointSaveError);
  expect(error.message).toMatch(
    /^the checkpoint of run "run" was not saved in Postgres schema "waymark": .*No space left/,
  );
  expect(error.message).toMatch(/the disk of the server is full: make room, then resume the run/);
  expect((error.cause as { code?: string }).code).toBe("53100");
  expect((await store.load<Notes>("run")).toJSON()).toEqual(first.toJSON());

  rmSync(file);
  writeFileSync(file, "", { mode: 0o600 });
  chownSync(file, uid, gid);
  const again = new PostgresStore({ client: server.pool() });
  const saved = await again.save(large);
  expect(saved.sequence).toBe(2);
  expect((await again.load<Notes>("run")).toJSON()).toEqual(saved.toJSON());
});
