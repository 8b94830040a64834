import { afterAll, beforeAll, expect, test } from "vitest";
import { State } from "waymark";
import { RedisStore } from "waymark/stores/redis";
import { ALWAYS, type RedisServer, startRedis, withRedis } from "./server.js";

const RUNS = 200;
const STEPS = 12;
const KILLS = 3;

withRedis("a killed Redis server", () => {
  let server: RedisServer;
  beforeAll(async () => {
    server = await startRedis(ALWAYS);
  });
  afterAll(() => server.stop());

  test(`loses nothing it acknowledged with appendfsync always: ${RUNS} runs, ${KILLS} kills`, async () => {
    const store = new RedisStore({ url: server.url, retryFor: 60_000, keep: 2 });
    const acknowledged = new Map<string, number>();
    let saves = 0;
    let onSave = (): void => {};
    let gate = Promise.resolve();
    const run = async (index: number): Promise<void> => {
      let state = State.create({ n: 0 }, { runId: `run ${index}` });
      for (let n = 1; n <= STEPS; n++) {
        await gate;
        state = await store.save(state.set("n", n));
        acknowledged.set(state.runId, n);
        saves++;
        onSave();
      }
    };
    const runs = Promise.all(Array.from({ length: RUNS }, (_, index) => run(index)));
    for (let kill = 1; kill <= KILLS; kill++) {
      // After so many saves, wherever the others are at that moment.
      const enough = (kill * RUNS * STEPS) / (KILLS + 2);
      await new Promise<void>((resolve) => {
        onSave = () => saves >= enough && resolve();
      });
      await server.kill();
      // None begins another save until what was acknowledged is looked at; those under way are retried.
      let openGate = (): void => {};
      gate = new Promise((resolve) => {
        openGate = resolve;
      });
      const before = new Map(acknowledged);
      await server.restart();
      const reader = new RedisStore({ url: server.url, readOnly: true, prefix: store.prefix });
      for (const [runId, n] of before) {
        expect((await reader.load<{ n: number }>(runId)).data.n).toBeGreaterThanOrEqual(n);
      }
      await reader.close();
      openGate();
    }
    await runs;
    expect(await store.list()).toHaveLength(RUNS);
    for (const runId of acknowledged.keys()) {
      const state = await store.load<{ n: number }>(runId);
      expect([state.data.n, state.sequence]).toEqual([STEPS, STEPS]);
    }
    const findings = [];
    for await (const finding of store.verify()) findings.push(finding);
    expect(findings).toEqual([]);
    await store.close();
  });
});
