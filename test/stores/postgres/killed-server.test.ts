import { afterAll, beforeAll, expect, test } from "vitest";
import { isWaymarkError, State, StateGraph } from "waymark";
import { PostgresStore } from "waymark/stores/postgres";
import { below, seeded, seedOfRun } from "../../crash/random.js";
import { type OwnServer, startOwnServer } from "./server.js";

const RUNS = 200;
const isTorture = process.env.MODE === "torture";
/** The fewest steps of a run; all continue until the server is left alone. */
const STEPS = 12;
const KILLS = isTorture ? 40 : 5;
/** The longest time between two kills, in milliseconds. */
const CALM = isTorture ? 4000 : 700;
const seed = seedOfRun();
const random = seeded(seed);
const pause = (most: number): Promise<void> =>
  new Promise((resolve) => setTimeout(resolve, below(random, most)));

interface Walk {
  readonly steps: readonly number[];
}

let server: OwnServer;
let kills = 0;

beforeAll(async () => {
  server = await startOwnServer();
});

afterAll(() => server.stop());

/** What a run has done, and what of it was acknowledged. */
class Witness {
  readonly runId: string;
  acknowledged = 0;
  sequence = 0;
  resumes = 0;
  readonly faults: string[] = [];

  constructor(runId: string) {
    this.runId = runId;
  }

  runs(step: number): void {
    if (step <= this.acknowledged) this.faults.push(`step ${step} ran again`);
  }

  saved(step: number, sequence: number): void {
    this.acknowledged = Math.max(this.acknowledged, step);
    this.sequence = Math.max(this.sequence, sequence);
  }

  loaded(step: number, sequence: number): void {
    if (step < this.acknowledged) this.faults.push(`step ${this.acknowledged} is lost`);
    if (sequence < this.sequence) this.faults.push(`sequence ${this.sequence} is lost`);
  }
}

function graphOf(store: PostgresStore, witnesses: ReadonlyMap<string, Witness>) {
  const checkpoint = { store, interval: 1, preserve: true };
  return new StateGraph<Walk>({ name: "walk", checkpoint, maxIterations: 1_000_000 })
    .addNode("step", async (state, { runId }) => {
      const step = state.data.steps.length + 1;
      witnesses.get(runId)?.runs(step);
      await pause(250);
      return { steps: [...state.data.steps, step] };
    })
    .addNode("end", (state) => state)
    .addEdge("step", "step", ({ data }) => data.steps.length < STEPS || kills < KILLS)
    .addEdge("step", "end")
    .setEntryPoint("step")
    .setExitPoint("end")
    .on("checkpoint.save", ({ runId, data }) => {
      witnesses.get(runId)?.saved(data.step, data.sequence);
    });
}

test(`a repeatedly killed server loses nothing and repeats nothing (SEED=${seed})`, async () => {
  const witnesses = new Map<string, Witness>();
  for (let index = 0; index < RUNS; index++) {
    witnesses.set(`run-${index}`, new Witness(`run-${index}`));
  }
  // One waits for the server to come back, the other gives up at once, so that its runs are resumed.
  const pools = [server.pool({ max: 10 }), server.pool({ max: 10 })];
  const stores = pools.map(
    (client, index) => new PostgresStore({ client, retryFor: index === 0 ? 20_000 : 0 }),
  );
  const graphs = stores.map((store) => graphOf(store, witnesses));

  const walk = async (witness: Witness, index: number): Promise<void> => {
    const graph = graphs[index % 2];
    const store = stores[index % 2];
    if (graph === undefined || store === undefined) return;
    const { runId } = witness;
    for (let isThere = false; ; ) {
      try {
        if (isThere) {
          const found = await store.load<Walk>(runId);
          witness.loaded(found.step, found.sequence);
        }
        const first = State.create<Walk>({ steps: [] }, { runId });
        const { status } = isThere ? await graph.resume(runId) : await graph.execute(first);
        expect(status).toBe("completed");
        break;
      } catch (error) {
        // A first save may have reached the server although nobody heard of it.
        isThere ||= witness.sequence > 0 || isWaymarkError(error, "CHECKPOINT_CONFLICT");
        witness.resumes++;
        await pause(200);
      }
    }
  };
  const walking = Promise.all([...witnesses.values()].map(walk));

  while (kills < KILLS) {
    await new Promise((resolve) => setTimeout(resolve, 300));
    await pause(CALM);
    await server.kill();
    kills++;
    await server.restart();
  }
  await walking;

  const faults = [...witnesses.values()].flatMap(({ runId, faults: found }) =>
    found.map((fault) => `${runId}: ${fault}`),
  );
  expect(faults).toEqual([]);
  const reader = new PostgresStore({ client: server.url });
  let steps = 0;
  for (const { runId, acknowledged } of witnesses.values()) {
    const found = await reader.load<Walk>(runId);
    expect(found.data.steps).toEqual(found.data.steps.map((_, index) => index + 1));
    // More may be there than anybody heard of, never less.
    expect(found.step).toBeGreaterThanOrEqual(acknowledged);
    steps += acknowledged;
  }
  await reader.close();
  const resumed = [...witnesses.values()].reduce((sum, { resumes }) => sum + resumes, 0);
  expect(resumed).toBeGreaterThan(0);
  console.log(`seed ${seed}: ${kills} kills, ${resumed} resumes of ${RUNS} runs, ${steps} steps`);
}, 900_000);
