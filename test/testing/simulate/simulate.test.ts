import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { ConfigError, StateGraph } from "waymark";
import { type FaultKind, type SimulateOptions, simulate } from "waymark/testing";
import { faultKinds, storageKinds } from "../../../src/testing/simulate/script.js";
import { shrink } from "../../../src/testing/simulate/shrink.js";
import { simulateWith } from "../../../src/testing/simulate/simulate.js";
import type { PlantedBugs } from "../../../src/testing/simulate/simulation.js";
import { type Work, workload } from "./workload.js";

/** How many seeds to play, and the first; `npm run simulate` plays many more. */
const SEEDS = Number(process.env.SEEDS ?? (process.env.MODE === "simulate" ? 6000 : 2000));
const SEED = Number(process.env.SEED ?? 1);

test(`the rules of a run hold whatever goes wrong, in ${SEEDS} worlds`, async () => {
  const { failures, scripts, steps, runs } = await simulate({
    ...workload,
    seeds: SEEDS,
    seed: SEED,
  });
  const [failure] = failures;
  const text = failure && [failure.message, failure.program, ...failure.trace].join("\n");
  expect(failure, text).toBeUndefined();
  expect([scripts, runs.failed]).toEqual([SEEDS, 0]);
  expect(steps).toBeGreaterThan(SEEDS);
}, 3_600_000);

type Row = readonly [what: string, keyof PlantedBugs, faults: readonly FaultKind[], rules: string];

/** Looks for a planted fault; what comes out plays again to the same end. */
async function find(
  plant: keyof PlantedBugs,
  rules: string,
  options: Partial<SimulateOptions<Work>>,
): Promise<void> {
  const bugs = { [plant]: true };
  const { failures } = await simulateWith({ ...workload, seeds: 5000, ...options }, bugs);
  const [failure] = failures;
  expect(rules.split(" ")).toContain(failure?.rule);
  const again = await simulateWith({ ...workload, script: failure?.script }, bugs);
  expect(again.failures[0]?.message).toBe(failure?.message);
  expect(again.trace).toEqual(failure?.trace);
  expect(failure?.program).toContain(`seed: ${failure?.script.seed},`);
}

describe.each([false, true])("a fault that is planted is found, queue: %s:", (queue) => {
  const planted: readonly Row[] = [
    ["no fence", "noFence", ["stop", "delay"], "one-writer"],
    ["no epoch", "noEpoch", ["stop", "delay"], "one-writer begun-again"],
    ["a save acknowledged early", "earlyAcknowledgement", ["power-cut"], "kept begun-again"],
    ["a lease by the wall clock", "leaseByWallClock", ["stop", "skew"], "begun-again one-writer"],
    ["no check before a node", "noCheck", ["stop"], "begun-again one-writer"],
    ["a dropped answer", "droppedAnswer", [], "answer"],
  ];
  const plantedInQueue: readonly Row[] = [
    ["a job that nobody gets again", "noRedelivery", ["kill"], "end"],
    ["trust in the queue's lock", "noClaim", ["stop"], "one-writer begun-again"],
  ];
  test.each([...planted, ...(queue ? plantedInQueue : [])])("%s", (_what, plant, ...row) => {
    const [faults, rules] = row;
    return find(plant, rules, { queue, faults, store: "database" });
  });
});

describe("a fault that is planted in files is found:", () => {
  const planted: readonly (readonly [...Row, Partial<SimulateOptions<Work>>])[] = [
    ["a name that two can take", "noFence", ["stop"], "one-writer", { store: "file" }],
    ["a pid that is used again", "noEpoch", ["kill"], "end", { store: "file", queue: false }],
    ["no sync", "earlyAcknowledgement", ["power-cut"], "kept begun-again", { store: "file" }],
    ["no claim", "noClaim", ["stop"], "one-writer begun-again", { store: "file", seed: 414 }],
    [
      ...["no check before a node", "noCheck", ["stop"], "one-writer begun-again"],
      { store: "shared-file", seed: 560 },
    ] as const,
  ];
  test.each(planted)("%s", (_what, plant, faults, rules, options) =>
    find(plant, rules, { faults, ...options }),
  );
});

test("a run that is submitted again is not written to while a worker has it", async () => {
  const lost = (at: number) => ({ at, kind: "lose-answer", worker: 0 }) as const;
  const script = {
    seed: 4227,
    workers: 1,
    runs: 2,
    latency: 3000,
    queue: true,
    store: "database",
  } as const;
  const faults = [lost(0), lost(5), lost(48)];
  const { failures, runs } = await simulate({ ...workload, script: { ...script, faults } });
  expect([failures, runs.completed]).toEqual([[], 2]);
});

test("a failing script is shrunk to its essential lines", async () => {
  const script = {
    ...({ seed: 1, workers: 3, runs: 4, latency: 4, queue: true, store: "shared-file" } as const),
    faults: faultKinds.map((kind, at) => ({ at, kind, worker: at % 2, for: 64 })),
  };
  const needed = ["stop", "skew"];
  const smallest = await shrink(script, async ({ faults, runs }) =>
    needed.every((kind) => runs > 1 && faults.some((fault) => fault.kind === kind)),
  );
  expect(smallest.faults.map(({ kind }) => kind)).toEqual(needed);
  expect(smallest).toMatchObject({ runs: 2, workers: 2, queue: false, store: "file" });
});

test.each(storageKinds)("a seed gives the same trace again on a %s", async (store) => {
  const script = { seed: 5, workers: 3, runs: 2, latency: 4, queue: true, store } as const;
  const faults = [
    { at: 20, kind: "kill", worker: 0, for: 50 },
    { at: 40, kind: "stop", worker: 1, for: 40_000 },
    { at: 60, kind: "corrupt", by: 1 },
    { at: 80, kind: "full-disk", for: 20 },
    { at: 200, kind: "torn-write", for: 50, by: 1 },
  ] as const;
  const traceOf = async (seed: number) =>
    (await simulate({ ...workload, script: { ...script, faults, seed } })).trace.join("\n");
  const first = await traceOf(5);
  expect(first.split("\n").length).toBeGreaterThan(100);
  expect(await traceOf(5)).toBe(first);
  expect(await traceOf(6)).not.toBe(first);
});

test("a trace contains nothing of the simulating process", async () => {
  const limits = { seed: 1, workers: 2, runs: 1, latency: 4, queue: false } as const;
  const script = { ...limits, store: "database", faults: [] } as const;
  const { trace } = await simulate({ ...workload, script });
  const held = trace.filter((line) => line.includes("is being worked on by process"));
  expect(held[0]).toMatch(/process 1 on w\d\.1 since 2030-01-01T00:00:00/);
});

interface Order {
  paid: number;
}

/** Charges for an order, in one way or another. */
const order = (node: "plain" | "once"): SimulateOptions<Order> => ({
  graph: ({ effect }) => {
    const charge = effect("charge", () => 10);
    return new StateGraph<Order>()
      .addNode("pay", async (_state, context) => ({
        paid: await (node === "once" ? context.once("charge", charge) : charge()),
      }))
      .addNode(
        "ship",
        effect("ship", () => ({})),
      )
      .addEdge("pay", "ship")
      .setEntryPoint("pay")
      .setExitPoint("ship");
  },
  data: () => ({ paid: 0 }),
});

describe("a graph that is killed everywhere", () => {
  test("repeats what it did before it was saved", async () => {
    const { scripts, failures, effects, runs } = await simulate({
      ...order("plain"),
      everywhere: true,
    });
    expect(failures).toEqual([]);
    expect(runs).toEqual({ completed: scripts, failed: 0, paused: 0 });
    const charge = effects.find(({ name }) => name === "charge");
    expect(charge).toMatchObject({ kind: "effect", most: 2, example: { workers: 1, runs: 1 } });
    expect(charge?.ran).toBe(scripts + (charge?.repeated ?? 0));
    const pay = effects.find(({ name, kind }) => name === "pay" && kind === "node");
    expect(pay?.repeated).toBeGreaterThanOrEqual(charge?.repeated ?? 0);
  });

  test("repeats less of what it does once", async () => {
    const repeatedBy = async (node: "plain" | "once") => {
      const { effects } = await simulate({ ...order(node), everywhere: true });
      return effects.find(({ name }) => name === "charge")?.repeated ?? 0;
    };
    // A moment is left, after the charge and before the save of its result.
    expect(await repeatedBy("once")).toBeGreaterThan(0);
    expect(await repeatedBy("once")).toBeLessThanOrEqual(await repeatedBy("plain"));
  });
});

describe("a simulation", () => {
  const graph = new StateGraph<Order>()
    .addNode("pay", async () => {
      await sleep(1);
      return { paid: 10 };
    })
    .setEntryPoint("pay")
    .setExitPoint("pay");
  const data = () => ({ paid: 0 });

  test("accepts any graph, and waits for the real work of its nodes", async () => {
    const report = await simulate({ graph, data, seeds: 3 });
    expect(report.failures).toEqual([]);
    expect(report.effects.map(({ name, kind }) => `${kind} ${name}`)).toEqual(["node pay"]);
  });

  test("reports what a check of the final State refuses", async () => {
    const check = () => {
      throw new Error("too expensive");
    };
    const { failures } = await simulate({ graph, data, check, seeds: 2 });
    expect(failures).toMatchObject([
      { rule: "check", script: { faults: [], runs: 1, workers: 1 } },
    ]);
    expect(failures[0]?.message).toContain("too expensive");
  });

  test("counts runs that fail permanently, and that wait for an answer", async () => {
    const failing = new StateGraph<Order>()
      .addNode("pay", () => {
        throw new Error("no money");
      })
      .setEntryPoint("pay")
      .setExitPoint("pay");
    const waiting = new StateGraph<Order>()
      .addNode("pay", async (_state, context) => {
        await context.pause("approval", { reason: "approval", ask: "Pay?" });
        return { paid: 1 };
      })
      .setEntryPoint("pay")
      .setExitPoint("pay");
    const options = { data, seeds: 1, faults: [], runs: 1 };
    const failed = await simulate({ graph: failing, ...options });
    expect([failed.failures, failed.runs]).toEqual([[], { completed: 0, failed: 1, paused: 0 }]);
    const paused = await simulate({ graph: waiting, ...options });
    expect([paused.failures, paused.runs]).toEqual([[], { completed: 0, failed: 0, paused: 1 }]);
  });

  test("refuses invalid options, and a second simulation at the same time", async () => {
    const bad = { graph: {}, data } as unknown as SimulateOptions<Order>;
    await expect(simulate(bad)).rejects.toThrow(ConfigError);
    const faults = ["flood"] as unknown as FaultKind[];
    await expect(simulate({ graph, data, faults })).rejects.toThrow(
      "options.faults must be a list",
    );
    const script = { seed: 1 } as unknown as SimulateOptions<Order>["script"];
    await expect(simulate({ graph, data, script })).rejects.toThrow("options.script must be");
    const first = simulate({ graph, data, seeds: 1 });
    await expect(simulate({ graph, data })).rejects.toThrow("simulate is under way");
    await first;
  });
});
