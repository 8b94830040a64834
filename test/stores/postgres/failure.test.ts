import { beforeEach, expect, test } from "vitest";
import { CheckpointConflictError, CheckpointSaveError, ConfigError } from "waymark";
import type { PostgresStore, PostgresStoreOptions } from "waymark/stores/postgres";
import { rejection } from "../../graphs.js";
import { listen } from "../folders.js";
import { Flaky, failure } from "./flaky.js";
import { ended, type Notes, start, stepTo, Tables } from "./tables.js";

const tables = Tables.use();
let flaky: Flaky;

beforeEach(() => {
  flaky = new Flaky(tables.pool);
});

const open = (options: Partial<PostgresStoreOptions> = {}): PostgresStore =>
  tables.open({ client: flaky, retryFor: 1000, ...options });

const SAVE = /INSERT INTO .*checkpoints/;

test.each([
  ["before the server has done it", "before"],
  ["after the server has done it", "after"],
] as const)("a save whose connection is lost %s is made exactly once", async (_, when) => {
  const store = open();
  const first = await store.save(start());
  flaky[when] = Flaky.once(SAVE, failure("ECONNRESET"), failure("57P01"), failure("08006"));
  const second = await store.save(first.set("n", 1));
  expect([second.sequence, await tables.stored()]).toEqual([2, [1, 2]]);
  const third = await store.save(second.set("n", 2));
  expect((await open().load<Notes>("run")).toJSON()).toEqual(third.toJSON());
});

test("a first save whose connection is lost is made exactly once", async () => {
  const store = open();
  flaky.after = Flaky.once(SAVE, failure("ECONNRESET"), failure("ECONNRESET"));
  expect((await store.save(start())).sequence).toBe(1);
  expect(await store.history("run")).toHaveLength(1);
});

test.each([
  ["53300", "too many connections"],
  ["57P03", "the database system is starting up"],
  ["ENOTFOUND", "getaddrinfo ENOTFOUND postgres"],
  ["57P05", "terminating connection due to idle-session timeout"],
  ["40001", "could not serialize"],
  ["40P01", "deadlock detected"],
  ["", "timeout exceeded when trying to connect"],
  ["", "timeout expired"],
  ["", "Connection terminated unexpectedly"],
])("a failure by %s %s is retried", async (code, message) => {
  const store = open();
  flaky.before = Flaky.once(/./, failure(code, message), failure(code, message));
  expect((await store.save(start())).sequence).toBe(1);
  flaky.before = Flaky.once(/./, failure(code, message));
  expect((await store.load<Notes>("run")).data.n).toBe(0);
});

test("an unreachable server is an error within the time limit, and the run resumes when it is back", async () => {
  const store = open({ retryFor: 100 });
  const first = await store.save(start());
  flaky.before = () => failure("ECONNREFUSED", "connect ECONNREFUSED");
  const error = await rejection(store.save(first.set("n", 1)), CheckpointSaveError);
  expect(error.message).toBe(
    `the checkpoint of run "run" was not saved in Postgres schema "${tables.schema}": connect ECONNREFUSED`,
  );
  expect((error.cause as { code?: string }).code).toBe("ECONNREFUSED");
  flaky.before = () => undefined;
  expect((await store.save(first.set("n", 1))).sequence).toBe(2);
});

test("a save with an unknown outcome makes no claims, and the next save finds out", async () => {
  const store = open({ retryFor: 0 });
  const first = await store.save(start());
  flaky.after = Flaky.once(SAVE, failure("ECONNRESET"));
  const error = await rejection(store.save(first.set("n", 1)), CheckpointSaveError);
  expect(error.message).toMatch(/^the checkpoint of run "run" may not have been saved/);
  // It was, so what continues from the State before goes after it.
  const second = await store.save(first.set("n", 2));
  expect(second.sequence).toBe(3);
  expect((await open().load<Notes>("run")).data.n).toBe(2);
  // Another writer's save is a conflict all the same.
  flaky.before = Flaky.once(SAVE, failure("", "Query read timeout"));
  await rejection(store.save(second.set("n", 3)), CheckpointSaveError);
  await open().save((await open().load<Notes>("run")).set("n", 4));
  await rejection(store.save(second.set("n", 5)), CheckpointConflictError);
});

test("a save with an unknown outcome that another writer turns out to have made is a conflict", async () => {
  const store = open({ retryFor: 0 });
  const first = await store.save(start());
  flaky.after = Flaky.once(SAVE, failure("ECONNRESET"));
  await rejection(store.save(first.set("n", 1)), CheckpointSaveError);
  flaky.before = async (text) => {
    if (!/^SELECT sequence, checkpoint_id, epoch/.test(text)) return undefined;
    flaky.before = () => undefined;
    flaky.after = async () => {
      flaky.after = () => undefined;
      const other = open({ client: tables.pool });
      await other.save((await other.load<Notes>("run")).set("n", 7));
      return undefined;
    };
    return undefined;
  };
  await rejection(store.save(first.set("n", 2)), CheckpointConflictError);
  expect((await store.load<Notes>("run")).data.n).toBe(7);
});

test.each([
  ["53100", /disk of the server is full/],
  ["26000", /set prepare: false/],
  ["42P05", /set prepare: false/],
  ["25006", /read-only/],
  ["57014", /statement_timeout/],
  ["55P03", /lock_timeout/],
  ["42501", /CREATE on the database/],
  ["XX000", /^the checkpoint of run "run" was not saved in Postgres schema ".*": went wrong$/],
])("%s is reported at once with a remedy, and nothing is saved", async (code, advice) => {
  const store = open({ retryFor: 60_000 });
  const first = await store.save(start());
  flaky.before = Flaky.once(SAVE, failure(code, "went wrong"));
  const error = await rejection(store.save(first.set("n", 1)), CheckpointSaveError);
  expect(error.message).toMatch(advice);
  expect((await store.load<Notes>("run")).data.n).toBe(0);
  expect((await store.save(first.set("n", 2))).sequence).toBe(2);
});

test("a thrown value that is not an Error is reported too", async () => {
  const store = open({ retryFor: 0 });
  const refused = new AggregateError([failure("x", "no route"), failure("y", "no door")]);
  flaky.before = Flaky.once(/./, refused, "gone" as unknown as Error);
  expect((await rejection(store.save(start()), CheckpointSaveError)).message).toMatch(
    /no route; no door/,
  );
  expect((await rejection(store.save(start()), CheckpointSaveError)).message).toMatch(/gone$/);
});

test("one refused save does not harm the others in its batch", async () => {
  const store = open();
  const firsts = await Promise.all(
    Array.from({ length: 12 }, (_, index) => store.save(start(`run-${index}`))),
  );
  const hasBad = (params: readonly unknown[]): boolean => /\brun-7\b/.test(String(params[0]));
  flaky.before = (text, params) =>
    SAVE.test(text) && hasBad(params) ? failure("54000", "too much") : undefined;
  const outcomes = await Promise.allSettled(firsts.map((state) => store.save(state.set("n", 1))));
  expect(outcomes.flatMap(({ status }, index) => (status === "rejected" ? index : []))).toEqual([
    7,
  ]);
  expect(flaky.asked.some((text) => text.includes("unnest"))).toBe(true);
  flaky.before = () => undefined;
  const all = await Promise.all(firsts.map(({ runId }) => store.load<Notes>(runId)));
  expect(all.map(({ data }) => data.n)).toEqual(firsts.map((_, index) => (index === 7 ? 0 : 1)));
});

test("each conflict in a batch of saves is reported to its own run", async () => {
  const store = open();
  const firsts = await Promise.all(
    Array.from({ length: 12 }, (_, index) => store.save(start(`run-${index}`))),
  );
  await Promise.all(firsts.slice(0, 6).map((state) => open().save(state.set("n", 9))));
  const outcomes = await Promise.allSettled(firsts.map((state) => store.save(state.set("n", 1))));
  for (const [index, outcome] of outcomes.entries()) {
    expect(outcome.status).toBe(index < 6 ? "rejected" : "fulfilled");
    if (outcome.status === "rejected") {
      expect(outcome.reason).toBeInstanceOf(CheckpointConflictError);
    }
  }
});

test("a batch whose connection is lost rejects every save, and each is saved once when it is back", async () => {
  const store = open({ retryFor: 0 });
  const firsts = await Promise.all(
    Array.from({ length: 12 }, (_, index) => store.save(start(`run-${index}`))),
  );
  flaky.after = (text) => (SAVE.test(text) ? failure("ECONNRESET") : undefined);
  const outcomes = await Promise.allSettled(firsts.map((state) => store.save(state.set("n", 1))));
  expect(new Set(outcomes.map(({ status }) => status))).toEqual(new Set(["rejected"]));
  flaky.after = () => undefined;
  const again = await Promise.all(firsts.map((state) => store.save(state.set("n", 2))));
  expect(new Set(again.map(({ sequence }) => sequence))).toEqual(new Set([3]));
});

test("a failed background cleanup emits an event and blocks nothing", async () => {
  const store = open({ keep: 2, snapshotEvery: 1 });
  const { context, events } = listen();
  flaky.before = (text) => (/DELETE/.test(text) ? failure("XX000", "no") : undefined);
  let state = start();
  for (let n = 1; n <= 34; n++) state = await store.save(stepTo(state, n), context);
  await store.close();
  expect(events).toEqual([
    { type: "checkpoint.error", data: { action: "delete", node: "", error: "no" } },
  ]);
  expect((await store.load<Notes>("run")).data.n).toBe(34);
});

test("leftovers of a completed run are removed with those of the next", async () => {
  const store = open({ keep: 2, snapshotEvery: 1 });
  flaky.before = (text) => (/DELETE/.test(text) ? failure("XX000", "no") : undefined);
  let state = start();
  for (let n = 1; n <= 5; n++) state = await store.save(stepTo(state, n));
  await store.save(ended(state));
  await store.close();
  expect(await tables.stored()).toHaveLength(6);
  flaky.before = () => undefined;
  let other = start("other");
  for (let n = 1; n <= 5; n++) other = await store.save(stepTo(other, n));
  await store.save(ended(other));
  await store.close();
  expect(await tables.stored()).toEqual([5, 5, 6, 6]);
});

test("a delete whose answer is lost does not delete a run started since", async () => {
  const store = open();
  await store.save(start());
  const other = open({ client: tables.pool });
  let commits = 0;
  flaky.after = async (text) => {
    if (text !== "COMMIT" || commits++ > 0) return undefined;
    await other.save(start("run", { n: 42 }));
    throw failure("ECONNRESET");
  };
  await store.delete("run");
  expect((await other.load<Notes>("run")).data.n).toBe(42);
});

test("a delete that was rolled back succeeds the next time", async () => {
  const store = open();
  await store.save(start());
  flaky.before = Flaky.once(/^COMMIT$/, failure("ECONNRESET"));
  await store.delete("run");
  expect(await store.list()).toEqual([]);
});

test("a client that throws synchronously is handled like one that rejects", async () => {
  const released: unknown[] = [];
  const client = {
    query: (text: string, params: unknown[]) => tables.pool.query(text, params),
    connect: async () => {
      const inner = await tables.pool.connect();
      return {
        query: (text: string, params: unknown[]) => {
          if (/FOR UPDATE|ROLLBACK/.test(text)) throw new Error(`no ${text.trim().slice(0, 6)}`);
          return inner.query(text, params);
        },
        release: (error: unknown) => {
          released.push(error);
          inner.release(true);
        },
      };
    },
  };
  const store = open({ client: client as never });
  await store.save(start());
  released.length = 0;
  await expect(store.delete("run")).rejects.toThrow("no SELECT");
  // A connection in a transaction that nobody could end is not given back as a good one.
  expect(released).toEqual([new Error("no ROLLBA")]);
});

test("a database that can't be opened is tried again the next time", async () => {
  const store = open({ retryFor: 0 });
  flaky.before = Flaky.once(/pg_class/, failure("XX000", "not yet"));
  await expect(store.list()).rejects.toThrow("not yet");
  expect(await store.list()).toEqual([]);
});

// What follows asks a real server.

test("a save succeeds even if its connections are cut", async () => {
  const pool = tables.server.pool({ max: 3, application_name: "to be cut" });
  const store = open({ client: pool });
  let state = await store.save(start());
  const cutter = tables.server.pool({ max: 1 });
  for (let n = 1; n <= 20; n++) {
    const saving = store.save(state.set("n", n));
    await cutter.query(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'to be cut'`,
    );
    state = await saving;
  }
  expect([state.sequence, (await store.load<Notes>("run")).data.n]).toEqual([21, 20]);
});

test("an exhausted pool is reported as such", async () => {
  const pool = tables.server.pool({ max: 1 });
  const store = open({ client: pool, retryFor: 50 });
  const first = await store.save(start());
  const taken = await pool.connect();
  // Not before: a busy server may take longer to answer the first.
  pool.options.connectionTimeoutMillis = 100;
  const error = await rejection(store.save(first), CheckpointSaveError);
  expect(error.message).toMatch(
    /^the checkpoint of run .* was not saved .* all connections of the pool are in use/,
  );
  pool.options.connectionTimeoutMillis = 0;
  taken.release();
  expect((await store.save(first)).sequence).toBe(2);
});

test("a statement that takes too long is cancelled and saves nothing", async () => {
  // The tables are made without a limit: on a busy server they may take longer.
  const first = await open({ client: tables.pool }).save(start());
  const pool = tables.server.pool({ options: "-c statement_timeout=1000" });
  const store = open({ client: pool });
  const other = await tables.server.pool().connect();
  await other.query("BEGIN");
  await other.query(`SELECT 1 FROM "${tables.schema}".runs FOR UPDATE`);
  const error = await rejection(store.save(first), CheckpointSaveError);
  expect(error.message).toMatch(/raise statement_timeout/);
  await other.query("ROLLBACK");
  other.release();
  expect((await store.save(first)).sequence).toBe(2);
});

test("a statement the server does not answer is abandoned, and the next save finds out", async () => {
  const pool = tables.server.pool({ max: 2 });
  const store = open({ client: pool, statementTimeout: 500 });
  const first = await store.save(start());
  const other = await tables.server.pool().connect();
  await other.query("BEGIN");
  await other.query(`SELECT 1 FROM "${tables.schema}".runs FOR UPDATE`);
  const error = await rejection(store.save(first.set("n", 1)), CheckpointSaveError);
  expect(error.message).toMatch(/^the checkpoint of run "run" may not .* within statementTimeout/);
  await expect(store.delete("run")).rejects.toThrow(/did not answer within statementTimeout/);
  // Connections that nobody hears from any more are closed, not given back.
  expect(pool.totalCount).toBe(0);
  await other.query("ROLLBACK");
  other.release();
  const second = await store.save(first.set("n", 2));
  expect((await store.load<Notes>("run")).toJSON()).toEqual(second.toJSON());
});

test("a save that may have happened in an earlier attempt is not reported as failed", async () => {
  const store = open({ retryFor: 200 });
  const first = await store.save(start());
  flaky.after = Flaky.once(SAVE, failure("ECONNRESET"));
  let lost = false;
  flaky.before = (text) => {
    if (!SAVE.test(text)) return undefined;
    const now = lost;
    lost = true;
    return now ? failure("ECONNREFUSED") : undefined;
  };
  const error = await rejection(store.save(first.set("n", 1)), CheckpointSaveError);
  expect(error.message).toMatch(/^the checkpoint of run "run" may not have been saved/);
  flaky.before = () => undefined;
  expect((await store.save(first.set("n", 2))).sequence).toBe(3);
});

test("a read-only server can be read, and refuses writes by name", async () => {
  const first = await open({ client: tables.server.pool() }).save(start());
  const pool = tables.server.pool({ options: "-c default_transaction_read_only=on" });
  const store = open({ client: pool });
  expect((await store.load<Notes>("run")).data.n).toBe(0);
  expect(await store.runs()).toHaveLength(1);
  const error = await rejection(store.save(first.set("n", 1)), CheckpointSaveError);
  expect(error.message).toMatch(/connect to the primary/);
});

test("a single connection is refused as a pool", async () => {
  const client = { query: async () => ({ rows: [] }), connect: async () => undefined };
  const store = open({ client: client as never });
  expect((await rejection(store.delete("run"), ConfigError)).option).toBe("PostgresStore.client");
});

test("a failed transaction returns its connection", async () => {
  const pool = tables.server.pool({ max: 1 });
  const store = open({ client: pool });
  await store.save(start());
  await pool.query(`ALTER TABLE "${tables.schema}".checkpoints RENAME TO elsewhere`);
  await expect(store.delete("run")).rejects.toThrow(/does not exist/);
  await pool.query(`ALTER TABLE "${tables.schema}".elsewhere RENAME TO checkpoints`);
  await store.delete("run");
  expect(await store.list()).toEqual([]);
});
