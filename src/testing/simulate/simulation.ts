import type { RunStatus } from "../../state/record.js";
import type { State } from "../../state/state.js";
import { Checker, type Violation } from "./checker.js";
import type { DatabaseBugs } from "./database.js";
import { DatabaseStorage } from "./database-storage.js";
import { Effects, type Execution } from "./effects.js";
import { type FileBugs, Files } from "./files.js";
import { Network } from "./network.js";
import { type QueueBugs, QueueServer } from "./queue.js";
import { liveByQueue, submitAndAnswer } from "./queue-worker.js";
import type { Fault, SimulationScript } from "./script.js";
import {
  liveAlone,
  runIdOf,
  type SimulationSetup,
  type Surroundings,
  storeOf,
  tolerate,
  type WorkerBugs,
} from "./worker.js";
import { Machine, Process, World } from "./world.js";

/** Faults of waymark itself that a test plants to check that they are found. */
export interface PlantedBugs extends DatabaseBugs, FileBugs, QueueBugs, WorkerBugs {
  /** A process uses its wall clock to check whether its lease has expired. */
  readonly leaseByWallClock?: boolean;
}

export interface SimulationOutcome<D extends object> {
  readonly violation: Violation | undefined;
  readonly steps: number;
  readonly executions: readonly Execution[];
  readonly finals: readonly State<D>[];
  readonly trace: readonly string[];
}

/** The machine of each worker: one for all, or one for each. */
function machinesOf(
  { workers, store }: SimulationScript,
  numbersOnly: boolean | undefined,
): readonly Machine[] {
  const only = new Machine(0, numbersOnly);
  return Array.from({ length: workers }, (_, worker) =>
    store === "file" ? only : new Machine(worker, numbersOnly),
  );
}

/** How long runs may take after the last fault, in milliseconds, and how many steps in all. */
const PATIENCE = 60 * 60 * 1000;
const MOST_STEPS = 100_000;

/** The number of the process that reads the runs at the end. */
const OBSERVER = 1000;

/** Plays one script from beginning to end. */
export async function play<D extends object>(
  script: SimulationScript,
  setup: SimulationSetup<D>,
  bugs: PlantedBugs,
  isTraced: boolean,
): Promise<SimulationOutcome<D>> {
  const world = new World(isTraced, bugs.leaseByWallClock);
  const leave = world.enter();
  const checker = new Checker(world);
  const machines = machinesOf(script, bugs.noEpoch);
  const storage =
    script.store === "database"
      ? new DatabaseStorage(world, checker, script.latency, bugs)
      : new Files(world, checker, new Set(machines), script.seed, bugs);
  const queueServer = new QueueServer(world, bugs);
  const queueNetwork = new Network(world, queueServer, script.latency);
  const effects = new Effects(world);
  const servers = { storage, queueNetwork, queueServer };
  const around = { setup, world, machines, ...servers, checker, effects, bugs };
  try {
    const strikeNext = start(script, around);
    const { answer } = setup;
    let quietAt = Number.POSITIVE_INFINITY;
    const isOver = (status: RunStatus): boolean =>
      status === "completed" ||
      (status === "failed" && world.time > quietAt) ||
      (status === "paused" && answer === undefined);
    while (checker.violation === undefined) {
      quietAt = strikeNext() ?? quietAt;
      const isEnd = storage.unsynced === 0 && checker.open(isOver).length === 0;
      if (isEnd) break;
      const isLate = world.time > quietAt + PATIENCE || world.steps > MOST_STEPS;
      if (isLate || !(await world.step())) {
        checker.stuck(storage);
        break;
      }
    }
    const finals = checker.violation === undefined ? await lookAtRuns(script, around) : [];
    const { violation } = checker;
    const { executions } = effects;
    const { steps, trace = [] } = world;
    return { violation, steps, executions, finals, trace };
  } finally {
    effects.end();
    leave();
  }
}

/**
 * Starts the workers. Returns a function that triggers the faults that are due and, once it is known, returns the
 * time after which nothing goes wrong.
 */
function start<D extends object>(
  script: SimulationScript,
  around: Surroundings<D>,
): () => number | undefined {
  const { world, machines, checker, storage } = around;
  const lives = new Map<number, readonly Process[]>();
  const begin = (worker: number): void => {
    const life = (lives.get(worker)?.[0]?.life ?? 0) + 1;
    const process = new Process(worker, life, script.seed, "w", machines[worker]);
    const client = new Process(worker, life, script.seed, "c", machines[worker]);
    lives.set(worker, script.queue ? [process, client] : [process]);
    // Every run has one worker that starts it, and some have a second that tries to.
    const runs = Array.from({ length: script.runs }, (_, run) => run).filter(
      (run) => (run + script.seed) % script.workers === worker || (run + worker) % 3 === 0,
    );
    const live = (one: Process, life: () => Promise<void>): void => {
      world.after(0, one, () => {
        world.note(one, "starts");
        void tolerate(life(), around);
      });
    };
    if (script.queue) {
      live(process, () => liveByQueue(process, around));
      live(client, () => submitAndAnswer(client, runs, around));
    } else {
      live(process, () => liveAlone(process, runs, around));
    }
  };
  for (let run = 0; run < script.runs; run++) checker.add(runIdOf(run));
  for (let worker = 0; worker < script.workers; worker++) begin(worker);
  const faults = script.faults.toSorted((a, b) => a.at - b.at);
  let next = 0;
  let quietAt = 0;
  return () => {
    for (let fault = faults[next]; fault !== undefined; fault = faults[++next]) {
      if (fault.at > world.steps) return undefined;
      const { worker = 0, for: span = 0 } = fault;
      world.note(undefined, `FAULT ${JSON.stringify(fault)}`);
      quietAt = Math.max(quietAt, world.time + span);
      const ends = [strike(fault, around)];
      const isPowerCut = fault.kind === "power-cut" || fault.kind === "torn-write";
      const all = isPowerCut && storage.isLocal;
      for (const one of all ? lives.keys() : [worker]) {
        // A dead worker that is not back yet can't fail again.
        const processes = (lives.get(one) ?? []).filter(({ isAlive }) => isAlive);
        for (const process of processes) ends.push(hit(fault, process, all, world));
        if ((fault.kind === "kill" || all) && processes.length > 0) ends.push(() => begin(one));
      }
      for (const end of ends) if (end !== undefined) world.after(span, undefined, end);
    }
    return quietAt;
  };
}

/** Triggers a fault of the servers or their network; returns what ends it, if it ends. */
function strike<D extends object>(
  { kind, worker, by = 0 }: Fault,
  { storage, queueNetwork, queueServer, checker }: Surroundings<D>,
): (() => void) | undefined {
  switch (kind) {
    case "delay":
      if (worker !== undefined) return undefined;
      storage.delay += by;
      queueNetwork.delay += by;
      return () => {
        storage.delay -= by;
        queueNetwork.delay -= by;
      };
    case "power-cut":
    case "torn-write":
      storage.cutPower(by, kind === "torn-write");
      queueServer.cutPower(by);
      checker.checkKept(storage);
      return () => {
        storage.isUp = true;
        queueServer.isUp = true;
      };
    case "full-disk":
      storage.isFull = true;
      return () => {
        storage.isFull = false;
      };
    case "corrupt": {
      const runId = storage.corrupt(by);
      if (runId !== undefined) checker.damaged(runId, storage);
      return undefined;
    }
    case "lost-queue":
      queueServer.clear();
      return undefined;
    default:
      return undefined;
  }
}

/** Triggers a fault of a process; returns what ends it, if it ends. */
function hit(
  { kind, worker, by = 0 }: Fault,
  process: Process,
  losesPower: boolean,
  world: World,
): (() => void) | undefined {
  switch (losesPower ? "kill" : kind) {
    case "kill":
      world.kill(process);
      return undefined;
    case "stop":
      world.stop(process);
      return () => world.wake(process);
    case "cut":
      process.isCut = true;
      return () => {
        process.isCut = false;
      };
    case "delay":
      if (worker === undefined) return undefined;
      process.delay += by;
      return () => {
        process.delay -= by;
      };
    case "lose-answer":
      process.answersToLose++;
      return undefined;
    case "double-call":
      process.callsToDouble++;
      return undefined;
    case "skew":
      process.skew += by;
      return undefined;
    default:
      return undefined;
  }
}

/** Loads the runs after the simulation, as any process could. */
async function lookAtRuns<D extends object>(
  script: SimulationScript,
  around: Surroundings<D>,
): Promise<State<D>[]> {
  const { world, checker, storage } = around;
  checker.checkKept(storage);
  storage.isUp = true;
  const observer = new Process(OBSERVER, 0, script.seed);
  const finals: State<D>[] = [];
  world.after(0, observer, async () => {
    const store = storeOf(observer, around);
    for (let run = 0; run < script.runs; run++) {
      const state = await tolerate(store.load<D>(runIdOf(run)), around);
      if (state === undefined) checker.fail("kept", `${runIdOf(run)} can't be loaded in the end`);
      else finals.push(state);
    }
    world.kill(observer);
  });
  while (observer.isAlive && (await world.step()));
  return finals;
}
