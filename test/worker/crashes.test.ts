import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ExecutionError } from "waymark";
import { rejection } from "../graphs.js";
import type { Trail } from "./fixtures/graphs.js";
import { type Child, startWorld, until, type World } from "./world.js";

/** Twice this time is enough for others on a busy machine, too. */
const LEASE = 4000;

let world: World;
beforeAll(async () => {
  world = await startWorld();
});
afterAll(() => world.stop());

let count = 0;
const submit = (graph: string, ms = 30) =>
  world.client.submit<Trail>(graph, { ms, trail: [] }, { runId: `${graph} ${++count}` });

/** How often a node of a run was begun, and by whom. */
async function effects(run: string, step: number): Promise<number[]> {
  const { rows } = await world.pool.query(
    "SELECT pid FROM effects WHERE run = $1 AND step = $2 ORDER BY id",
    [run, step],
  );
  return rows.map(({ pid }) => pid);
}

const release = (run: string) => world.pool.query("INSERT INTO released VALUES ($1)", [run]);

/** Waits until a run is in its second node; which worker has it. */
async function holder(run: string, children: readonly Child[]): Promise<Child> {
  await until("the node runs", async () => (await effects(run, 1)).length > 0);
  const [pid] = await effects(run, 1);
  const child = children.find((one) => one.pid === pid);
  if (child === undefined) throw new Error(`no child ${pid}`);
  return child;
}

const startTwo = (): Promise<Child[]> =>
  Promise.all([1, 2].map(() => world.start({ lease: LEASE })));

async function stop(...children: Child[]): Promise<void> {
  for (const child of children) child.process.kill("SIGKILL");
  await Promise.all(children.map(({ ended }) => ended));
}

describe("workers in separate processes", () => {
  test("lose their run and write nothing more after hanging longer than their lease", async () => {
    const children = await startTwo();
    const run = await submit("held");
    const hung = await holder(run.runId, children);
    hung.process.kill("SIGSTOP");
    const took = await until(
      "another has it",
      async () => (await effects(run.runId, 1)).length > 1,
    );
    expect(took).toBeLessThan(2 * LEASE);
    await release(run.runId);
    const final = await run.result();
    const before = await world.store.history(run.runId);
    hung.process.kill("SIGCONT");
    // It wakes up in the middle of its node, which finds itself released and comes to its end.
    await until("the one that hung heard of it", () =>
      hung.said.some((line) => /lost|lock|renew|Missing/.test(line)),
    );
    const next = await submit("steps");
    await next.result();
    expect(await world.store.history(run.runId)).toEqual(before);
    const other = children.find((one) => one !== hung);
    expect(await effects(run.runId, 1)).toEqual([hung.pid, other?.pid]);
    expect(await effects(run.runId, 2)).toEqual([other?.pid]);
    expect(final.data.trail).toHaveLength(3);
    await stop(...children);
  });

  test("continue a run whose worker was killed within twice the lease", async () => {
    const children = await startTwo();
    const run = await submit("held");
    const victim = await holder(run.runId, children);
    victim.process.kill("SIGKILL");
    const took = await until(
      "another has it",
      async () => (await effects(run.runId, 1)).length > 1,
    );
    expect(took).toBeLessThan(2 * LEASE);
    await release(run.runId);
    expect((await run.result()).status).toBe("completed");
    expect(await effects(run.runId, 0)).toHaveLength(1);
    await stop(...children);
  });

  test("finish the node and hand the run over at once on SIGTERM", async () => {
    // No lease has to end for that: this one outlasts the test.
    const first = await world.start({ lease: 120_000 });
    const run = await submit("held");
    await holder(run.runId, [first]);
    const second = await world.start({ lease: 120_000 });
    first.process.kill("SIGTERM");
    await release(run.runId);
    expect(await first.ended).toEqual({ code: null, signal: "SIGTERM" });
    expect((await run.result()).status).toBe("completed");
    expect(await effects(run.runId, 1)).toEqual([first.pid]);
    expect(await effects(run.runId, 2)).toEqual([second.pid]);
    await stop(second);
  });

  test("stop a run that kills them after maxAttempts and list it", async () => {
    const run = await submit("poison");
    for (let tries = 1; tries <= 3; tries++) {
      const child = await world.start({ lease: 1500 });
      expect(await child.ended).toMatchObject({ signal: "SIGKILL" });
      expect(await effects(run.runId, 0)).toHaveLength(tries);
    }
    const last = await world.start({ lease: 1500 });
    const error = await rejection(run.result(), ExecutionError);
    expect(error.message).toContain("got no further");
    expect(await effects(run.runId, 0)).toHaveLength(3);
    expect(await world.client.failed("poison")).toMatchObject([
      { runId: run.runId, error: expect.stringContaining("got no further") },
    ]);
    expect((await run.status()).state).toBe("failed");
    await stop(last);
  });

  test("leave a newer version alone if they have only the older graph", async () => {
    const old = await world.start({ lease: LEASE, version: 0 });
    const run = await world.client.submit<Trail>("steps", { ms: 10, trail: [] }, { version: 1 });
    // The old one has come past it, and does what it can.
    await (await submit("steps")).result();
    expect(await effects(run.runId, 0)).toEqual([]);
    const newer = await world.start({ lease: LEASE, version: 1 });
    expect((await run.result()).graph?.version).toBe(1);
    expect(new Set(await effects(run.runId, 0))).toEqual(new Set([newer.pid]));
    await stop(old, newer);
  });

  test("lose nothing when the database restarts", async () => {
    const children = await startTwo();
    const runs = await Promise.all(Array.from({ length: 20 }, () => submit("steps", 150)));
    await until(
      "a run has resumed",
      async () => (await effects(runs[0]?.runId ?? "", 0)).length > 0,
    );
    await world.server.kill();
    await world.server.restart();
    const states = await Promise.all(runs.map((run) => run.result()));
    expect(states.map(({ data }) => data.trail.length)).toEqual(states.map(() => 4));
    const { rows } = await world.pool.query("SELECT * FROM effects WHERE acked > step");
    expect(rows).toEqual([]);
    await stop(...children);
  });
});
