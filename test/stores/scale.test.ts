import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { State } from "waymark";
import { PostgresStore } from "waymark/stores/postgres";
import { RedisStore } from "waymark/stores/redis";
import { SqliteStore } from "waymark/stores/sqlite";
import { mapLimit } from "../../src/concurrency.js";
import { startServer } from "./postgres/server.js";
import { startRedis, withRedis } from "./redis/server.js";

/** `npm run torture` saves as many as the stores must carry: work that grows faster than these would not end. */
const MANY = process.env.MODE === "torture" ? 100_000 : 1_000;
const keep = Number.POSITIVE_INFINITY;

type Store = SqliteStore | PostgresStore | RedisStore;

function carries(open: () => Promise<{ store: Store; stop: () => Promise<unknown> }>): void {
  let store: Store;
  let stop: () => Promise<unknown>;
  beforeAll(async () => {
    ({ store, stop } = await open());
  });
  afterAll(async () => {
    await store.close();
    await stop();
  });

  test(`${MANY} checkpoints of one run: history, and each by its id`, async () => {
    let state = State.create({ n: 0 }, { runId: "long" });
    const ids: string[] = [];
    for (let n = 1; n <= MANY; n++) {
      state = await store.save(state.set("n", n).setCheckpointNode("a"), { keep });
      ids.push(state.checkpointId);
    }
    const history = await store.history("long");
    expect(history.map(({ checkpointId }) => checkpointId)).toEqual(ids.toReversed());
    for (const n of [1, MANY / 2, MANY]) {
      const checkpointId = ids[n - 1] ?? "";
      expect(await store.find(checkpointId)).toBe("long");
      expect((await store.load<{ n: number }>("long", { checkpointId })).data.n).toBe(n);
    }
    await store.delete("long");
    expect(await store.list()).toEqual([]);
  }, 600_000);

  test(`${MANY} runs: a page, a run by its id, removing all but a few`, async () => {
    await mapLimit(
      Array.from({ length: MANY }, (_, n) => n),
      64,
      async (n) => {
        const metadata = { tenant: n % 10 };
        const state = State.create({ n }, { runId: `run ${n}`, metadata });
        return store.save(
          State.fromJSON<{ n: number }>({ ...state.toJSON(), status: "completed" }),
        );
      },
    );
    const tenants = (await store.runs({ limit: 50, metadata: { tenant: 7 } })).map(
      ({ metadata }) => metadata.tenant,
    );
    expect(tenants).toEqual(Array(50).fill(7));
    expect((await store.load<{ n: number }>(`run ${MANY / 2}`)).data.n).toBe(MANY / 2);
    expect(await store.prune({ maxRuns: 3 })).toHaveLength(MANY - 3);
    expect(await store.list()).toHaveLength(3);
  }, 600_000);
}

describe("SQLite handles", () => {
  carries(async () => {
    const folder = mkdtempSync(join(tmpdir(), "waymark-scale-"));
    const store = new SqliteStore({ path: join(folder, "runs.db") });
    return { store, stop: async () => rmSync(folder, { recursive: true }) };
  });
});

describe("Postgres handles", () => {
  carries(async () => {
    const server = await startServer();
    const store = new PostgresStore({ client: server.pool() });
    return { store, stop: () => server.stop() };
  });
});

withRedis("RedisStore with many runs", () => {
  describe("Redis handles", () => {
    carries(async () => {
      const server = await startRedis();
      return { store: new RedisStore({ url: server.url }), stop: () => server.stop() };
    });
  });
});
