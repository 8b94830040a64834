import { hostname } from "node:os";
import { setTimeout } from "node:timers/promises";
import { expect, test, vi } from "vitest";
import { CheckpointConflictError, type Claim, ConfigError, State } from "waymark";
import type { PostgresPool, PostgresStore } from "waymark/stores/postgres";
import { rejection } from "../../graphs.js";
import { Flaky, failure } from "./flaky.js";
import { start, Tables } from "./tables.js";

/** However slow the machine is. */
const PATIENT = { timeout: 20_000 };
/** A lease that is soon renewed, and that a busy machine does not lose before. */
const SHORT = 3000;
const tables = Tables.use();

const open = (client: PostgresPool = tables.pool, retryFor = 1000): PostgresStore =>
  tables.open({ client, retryFor });

/** Lets the time of a lease run out in the database, where it counts. */
const expire = (): Promise<unknown> =>
  tables.ask("UPDATE $schema.runs SET lease_until = now() - interval '1 second'");

/** Whoever has claimed a run had a process that is gone. */
const die = (): Promise<unknown> =>
  tables.ask(
    `UPDATE $schema.runs SET owner = regexp_replace(owner, '"id":"\\d+', '"id":"99999999')`,
  );

/** Claims the run of somebody who renews its lease all the time. */
async function take(store: PostgresStore): Promise<Claim> {
  for (;;) {
    await expire();
    const claim = await store.claim("run");
    if (claim !== undefined) return claim;
  }
}

const rows = (): Promise<unknown[]> =>
  tables.ask("SELECT run_id, sequence, lease_until FROM $schema.runs");

/** Resolves when a claim is lost. */
const isLost = (signal: AbortSignal | undefined): Promise<string> =>
  new Promise((resolve) => {
    const tell = (): void => resolve(String(signal?.reason));
    if (signal?.aborted) tell();
    signal?.addEventListener("abort", tell);
  });

test("each claim of a run has a higher epoch than the previous one, even after a delete", async () => {
  const [one, two] = [open(), open()];
  const epochs: number[] = [];
  for (const store of [one, two, one]) {
    const claim = await store.claim("run");
    epochs.push(claim?.epoch ?? 0);
    await claim?.release();
    await store.delete("run");
  }
  expect(epochs).toEqual([...epochs].sort((a, b) => a - b));
  expect(new Set(epochs).size).toBe(3);
});

test("a previous claimant can't write", async () => {
  const [zombie, other] = [open(), open()];
  const first = await zombie.claim("run");
  const state = await zombie.save(start());
  expect(await other.claim("run")).toBeUndefined();
  await expire();
  const second = await other.claim("run");
  expect(second?.epoch).toBeGreaterThan(first?.epoch ?? 0);
  const error = await rejection(zombie.save(state.set("n", 1)), CheckpointConflictError);
  expect(error.message).toMatch(
    /^run "run" has since been claimed by process \d+ on .* can no longer write to it$/,
  );
  const loaded = await other.load<{ n: number }>("run");
  expect([loaded.sequence, loaded.data.n]).toEqual([1, 0]);
  expect((await other.save(loaded.set("n", 2))).sequence).toBe(2);
  await second?.release();
  await rejection(zombie.save(state.set("n", 1)), CheckpointConflictError);
  await first?.release();
  expect((await other.load<{ n: number }>("run")).data.n).toBe(2);
});

test("a zombie that never saved can't start the run, even after a delete", async () => {
  const [zombie, other] = [open(), open()];
  const claim = await zombie.claim("run");
  await expire();
  await rejection(
    (async () => {
      await (await other.claim("run"))?.release();
      await zombie.save(start());
    })(),
    CheckpointConflictError,
  );
  expect(await other.list()).toEqual([]);
  await claim?.release();
});

test("a previous claimant can't delete the run", async () => {
  const [zombie, other] = [open(), open()];
  const first = await zombie.claim("run");
  await zombie.save(start());
  await expire();
  const second = await other.claim("run");
  const error = await rejection(zombie.delete("run"), CheckpointConflictError);
  expect(error.message).toMatch(
    /^run "run" has since been claimed by process \d+ on .* can no longer remove it$/,
  );
  await second?.release();
  await rejection(zombie.delete("run"), CheckpointConflictError);
  expect(await other.list()).toEqual(["run"]);
  // Who has claimed nothing may.
  await first?.release();
  await other.delete("run");
  expect(await other.list()).toEqual([]);
});

test("an expired claim that nobody took still holds", async () => {
  const store = open();
  const claim = await store.claim("run");
  const state = await store.save(start());
  await expire();
  await store.save(state.set("n", 1));
  // The save has renewed it, too.
  expect(await open().claim("run")).toBeUndefined();
  expect(claim?.lost?.aborted).toBe(false);
});

test("a claim is renewed for as long as it is held", async () => {
  const store = open();
  const claim = await store.claim("run", { ttl: SHORT });
  await tables.ask("UPDATE $schema.runs SET lease_until = '2000-01-01'");
  await vi.waitFor(async () => {
    const alive = await tables.ask("SELECT 1 FROM $schema.runs WHERE lease_until > '2001-01-01'");
    expect(alive).toHaveLength(1);
  }, PATIENT);
  await claim?.release();
  expect(await rows()).toEqual([]);
});

test("a claim that is not renewed ends by the database's clock", async () => {
  const flaky = new Flaky(tables.pool);
  const first = await open(flaky).claim("run", { ttl: 50 });
  flaky.before = (text) => (/lease_until/.test(text) ? failure("ECONNREFUSED") : undefined);
  await vi.waitFor(async () => expect(await open().claim("run")).toBeDefined(), PATIENT);
  expect(await isLost(first?.lost)).toMatch(/could not be renewed|no answer came in time/);
  flaky.before = () => undefined;
});

test("a claimant is notified when its claim is taken", async () => {
  const store = open();
  const claim = await store.claim("run", { ttl: SHORT });
  await take(open());
  expect(await isLost(claim?.lost)).toMatch(/another process has claimed it/);
  await claim?.release();
  // It was not the first's to give away.
  expect(await store.claim("run")).toBeUndefined();
});

test("an expired claim is lost when the same store claims the run again", async () => {
  const store = open();
  // So long that nothing renews it, and nobody but the second claim can tell the first.
  const first = await store.claim("run", { ttl: 600_000 });
  await expire();
  const second = await store.claim("run");
  expect(second?.epoch).toBeGreaterThan(first?.epoch ?? 0);
  expect(await isLost(first?.lost)).toMatch(/another process has claimed it/);
  await first?.release();
  // It was not the first's to give away.
  expect(await open().claim("run")).toBeUndefined();
  expect(second?.lost?.aborted).toBe(false);
});

test("a claim renewed by a save survives a late answer to a renewal", async () => {
  const flaky = new Flaky(tables.pool);
  const store = open(flaky, 0);
  const claim = await store.claim("run", { ttl: SHORT });
  let state = await store.save(start());
  const asked = new Promise<void>((tell) => {
    flaky.before = (text) => {
      if (!/SET lease_until = clock/.test(text)) return undefined;
      tell();
      return new Promise(() => {});
    };
  });
  await asked;
  const began = performance.now();
  // Longer than the lease was good for when its renewal was asked for.
  while (performance.now() < began + SHORT) {
    state = await store.save(state.set("n", state.data.n + 1));
    await setTimeout(50);
  }
  expect(claim?.lost?.aborted).toBe(false);
  flaky.before = () => undefined;
});

test("a claim longer than the maximum timer is not renewed constantly", async () => {
  const warned = vi.spyOn(process, "emitWarning").mockImplementation(() => {});
  const claim = await open().claim("run", { ttl: 2 ** 40 });
  expect(warned.mock.calls).toEqual([]);
  warned.mockRestore();
  await claim?.release();
});

test("a renewal that is not answered in time loses the claim", async () => {
  const flaky = new Flaky(tables.pool);
  const claim = await open(flaky, 0).claim("run", { ttl: 60 });
  let answer = (): void => {};
  flaky.before = (text) =>
    /SET lease_until = clock/.test(text)
      ? new Promise((resolve) => {
          answer = () => resolve(undefined);
        })
      : undefined;
  expect(await isLost(claim?.lost)).toMatch(/no answer came in time/);
  flaky.before = () => undefined;
  answer();
});

test("a renewal after the release has no effect", async () => {
  const flaky = new Flaky(tables.pool);
  const store = open(flaky);
  const claim = await store.claim("run", { ttl: 900 });
  await store.save(start());
  const renewing = new Promise<() => void>((tell) => {
    flaky.before = (text) =>
      /SET lease_until = clock/.test(text)
        ? new Promise((resolve) => tell(() => resolve(undefined)))
        : undefined;
  });
  const renewed = new Promise<void>((tell) => {
    flaky.after = async (text) => {
      if (/SET lease_until = clock/.test(text)) tell();
      return undefined;
    };
  });
  const goOn = await renewing;
  await claim?.release();
  goOn();
  await renewed;
  expect(await open().claim("run")).toBeDefined();
});

test("a refused renewal is retried while there is time", async () => {
  const flaky = new Flaky(tables.pool);
  const claim = await open(flaky, 0).claim("run", { ttl: SHORT });
  let refused = 0;
  flaky.before = (text) =>
    /SET lease_until = clock/.test(text) && ++refused < 3 ? failure("XX000", "no") : undefined;
  await vi.waitFor(() => expect(refused).toBeGreaterThan(2), PATIENT);
  expect(claim?.lost?.aborted).toBe(false);
});

test("a renewal that keeps being refused loses the claim", async () => {
  const flaky = new Flaky(tables.pool);
  const claim = await open(flaky, 0).claim("run", { ttl: 60 });
  flaky.before = (text) =>
    /SET lease_until = clock/.test(text) ? failure("XX000", "no") : undefined;
  expect(await isLost(claim?.lost)).toMatch(/could not be renewed: no/);
});

test("a claim whose answer is lost is made only once", async () => {
  const flaky = new Flaky(tables.pool);
  const store = open(flaky);
  flaky.after = Flaky.once(/nextval/, failure("ECONNRESET"));
  expect(await store.claim("run")).toBeDefined();
  expect(await open().claim("run")).toBeUndefined();
});

test("concurrent claims and releases share statements", async () => {
  const flaky = new Flaky(tables.pool);
  const store = open(flaky);
  const runIds = Array.from({ length: 250 }, (_, index) => `run ${index}`);
  const claims = await Promise.all(runIds.map((runId) => store.claim(runId)));
  expect(new Set(claims.map((claim) => claim?.epoch)).size).toBe(250);
  expect(await Promise.all(runIds.map((runId) => open().claim(runId)))).toEqual(
    runIds.map(() => undefined),
  );
  await store.save(State.create({ n: 0 }, { runId: "run 7" }));
  await Promise.all(claims.map((claim) => claim?.release()));
  expect(await rows()).toEqual([{ run_id: "run 7", sequence: "1", lease_until: null }]);
  expect(flaky.asked.filter((text) => /nextval|DELETE/.test(text)).length).toBeLessThan(20);
});

test("only one of many concurrent claims succeeds", async () => {
  const store = open();
  const all = ["a", "run", "b", "run", "run", "c", "run", "run"];
  const claims = await Promise.all(all.map((runId) => store.claim(runId)));
  expect(claims.filter((claim) => claim !== undefined)).toHaveLength(4);
  const has = (runId: string): boolean[] =>
    all.flatMap((id, index) => (id === runId ? claims[index] !== undefined : []));
  for (const runId of ["a", "b", "c"]) expect(has(runId)).toEqual([true]);
  expect(has("run").filter(Boolean)).toHaveLength(1);
});

test("deleting a claimed run leaves the claim, and the run can start again under it", async () => {
  const store = open();
  const claim = await store.claim("run");
  await store.save(start());
  await store.delete("run");
  expect(await open().claim("run")).toBeUndefined();
  expect((await store.save(start())).sequence).toBe(1);
  await claim?.release();
  expect(await store.list()).toEqual(["run"]);
});

test("a claimed run is not pruned, and claims of the dead are swept", async () => {
  const store = open();
  const saveFailed = (runId: string): Promise<unknown> =>
    store.save(State.fromJSON({ ...start(runId).toJSON(), status: "failed" }));
  await saveFailed("run");
  const claim = await store.claim("run");
  expect(await store.prune({ maxRuns: 0, dryRun: true })).toEqual([]);
  expect(await store.prune({ maxRuns: 0 })).toEqual([]);
  await claim?.release();
  await open().claim("of the dead", { ttl: 600_000 });
  expect(await store.prune({ maxRuns: 0, dryRun: true })).toEqual(["run"]);
  expect(await store.prune({ maxRuns: 0 })).toEqual(["run"]);
  expect(await rows()).toHaveLength(1);
  await expire();
  await saveFailed("another");
  await store.prune({ maxRuns: 0 });
  expect(await rows()).toEqual([]);
});

test("a claim that could not be released can be claimed again by the same store", async () => {
  const flaky = new Flaky(tables.pool);
  const store = open(flaky, 0);
  const claim = await store.claim("run");
  await store.save(start());
  flaky.before = () => failure("ECONNREFUSED");
  await expect(claim?.release()).rejects.toThrow("ECONNREFUSED");
  flaky.before = () => undefined;
  expect(await open().claim("run")).toBeUndefined();
  const again = await store.claim("run");
  expect(again?.epoch).toBeGreaterThan(claim?.epoch ?? 0);
  expect(await store.claim("run")).toBeUndefined();
});

test("a claim that was granted but failed can be claimed again by the same store", async () => {
  const flaky = new Flaky(tables.pool);
  const store = open(flaky, 0);
  flaky.after = Flaky.once(/nextval/, failure("ECONNRESET"));
  await expect(store.claim("run")).rejects.toThrow("ECONNRESET");
  expect(await open().claim("run")).toBeUndefined();
  const claims = await Promise.all([store.claim("run"), store.claim("run")]);
  expect(claims.filter((claim) => claim !== undefined)).toHaveLength(1);
});

test("the holder of a run is the process that claimed it, until the claim ends", async () => {
  const store = open();
  expect(await store.holder("run")).toBeUndefined();
  const before = new Date().toISOString();
  await open().claim("run");
  const holder = await store.holder("run");
  expect(holder).toMatchObject({ host: hostname(), pid: process.pid });
  expect(String(holder?.since) >= before).toBe(true);
  await die();
  expect(await store.holder("run")).toBeUndefined();
  await open().claim("run");
  await expire();
  expect(await store.holder("run")).toBeUndefined();
});

test("closing the store releases its claims", async () => {
  const store = open();
  const claim = await store.claim("run");
  await store.close();
  expect(await open().claim("run")).toBeDefined();
  await claim?.release();
});

test.each([0, -1, 1.5, "30"])("a ttl of %o is refused", async (ttl) => {
  const error = await rejection(open().claim("run", { ttl: ttl as number }), ConfigError);
  expect(error.option).toBe("options.ttl");
});
