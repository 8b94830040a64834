import type { RunStatus } from "../../state/record.js";
import type { State } from "../../state/state.js";
import { Checker, type Violation } from "./checker.js";
import { Database, type DatabaseBugs } from "./database.js";
import { Effects, type Execution } from "./effects.js";
import { Network } from "./network.js";
import type { Fault, SimulationScript } from "./script.js";
import {
  liveAlone,
  runIdOf,
  type SimulationSetup,
  type Surroundings,
  storeOf,
  tolerate,
  unheard,
} from "./worker.js";
import { Process, World } from "./world.js";

/** Faults of waymark itself that a test plants, to see that they are found. */
export interface PlantedBugs extends DatabaseBugs {
  /** A save is acknowledged before the disk has it. */
  readonly earlyAcknowledgement?: boolean;
  /** A process asks its wall clock whether its lease has run out. */
  readonly leaseByWallClock?: boolean;
  /** Nobody asks whether the lease has run out before a node begins. */
  readonly noCheck?: boolean;
  /** An answer to a pause is acknowledged and not kept. */
  readonly droppedAnswer?: boolean;
}

/** What one simulation came to. */
export interface SimulationOutcome<D extends object> {
  readonly violation: Violation | undefined;
  readonly steps: number;
  readonly executions: readonly Execution[];
  readonly finals: readonly State<D>[];
  readonly trace: readonly string[];
}

/** How long runs may take after the last fault, in milliseconds, and how many steps in all. */
const PATIENCE = 60 * 60 * 1000;
const MOST_STEPS = 100_000;

/** What looks at the runs in the end. */
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
  const database = new Database(world, checker, bugs);
  const network = new Network(world, database, script.latency, bugs.earlyAcknowledgement);
  const effects = new Effects(world);
  const around = { setup, world, network, database, checker, effects, bugs };
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
      const isEnd = database.unsynced === 0 && checker.open(isOver).length === 0;
      if (isEnd) break;
      const isLate = world.time > quietAt + PATIENCE || world.steps > MOST_STEPS;
      if (isLate || !(await world.step())) {
        checker.stuck(database);
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
 * Starts the workers; gives what lets the faults happen that are due, and says from when on nothing goes wrong,
 * once that is known.
 */
function start<D extends object>(
  script: SimulationScript,
  around: Surroundings<D>,
): () => number | undefined {
  const { world, checker } = around;
  const lives = new Map<number, Process>();
  const begin = (worker: number): void => {
    const process = new Process(worker, (lives.get(worker)?.life ?? 0) + 1, script.seed);
    lives.set(worker, process);
    // Every run has one worker that starts it, and some have a second that tries to.
    const runs = Array.from({ length: script.runs }, (_, run) => run).filter(
      (run) => (run + script.seed) % script.workers === worker || (run + worker) % 3 === 0,
    );
    world.after(0, process, () => {
      world.note(process, "starts");
      void tolerate(liveAlone(process, runs, around), around);
    });
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
      const process = lives.get(worker);
      world.note(undefined, `FAULT ${JSON.stringify(fault)}`);
      quietAt = Math.max(quietAt, world.time + span);
      // A worker that is dead, and not back yet, can't suffer more.
      const isMeant = fault.worker === undefined || process?.isAlive;
      const end =
        process && isMeant ? strike(fault, process, around, () => begin(worker)) : undefined;
      if (end !== undefined) world.after(span, undefined, end);
    }
    return quietAt;
  };
}

/** Lets a fault happen; gives what ends it, if it ends. */
function strike<D extends object>(
  { kind, worker, by = 0 }: Fault,
  process: Process,
  { world, network, database, checker }: Surroundings<D>,
  restart: () => void,
): (() => void) | undefined {
  switch (kind) {
    case "kill":
      world.kill(process);
      return restart;
    case "stop":
      world.stop(process);
      return () => world.wake(process);
    case "cut":
      process.isCut = true;
      return () => {
        process.isCut = false;
      };
    case "delay": {
      const slow = worker === undefined ? network : process;
      slow.delay += by;
      return () => {
        slow.delay -= by;
      };
    }
    case "lose-answer":
      process.answersToLose++;
      return undefined;
    case "double-call":
      process.callsToDouble++;
      return undefined;
    case "skew":
      process.skew += by;
      return undefined;
    case "power-cut":
    case "torn-write":
      database.cutPower(by, kind === "torn-write");
      checker.checkKept(database);
      return () => {
        database.isUp = true;
      };
    case "full-disk":
      database.isFull = true;
      return () => {
        database.isFull = false;
      };
    case "corrupt": {
      const runId = database.corrupt(by);
      if (runId !== undefined) checker.damaged(runId);
      return undefined;
    }
  }
}

/** Loads the runs when all is over, as anybody could. */
async function lookAtRuns<D extends object>(
  script: SimulationScript,
  around: Surroundings<D>,
): Promise<State<D>[]> {
  const { world, checker, database } = around;
  checker.checkKept(database);
  database.isUp = true;
  const observer = new Process(OBSERVER, 0, script.seed);
  const finals: State<D>[] = [];
  world.after(0, observer, async () => {
    const store = storeOf(observer, around);
    for (let run = 0; run < script.runs; run++) {
      const state = await tolerate(store.load<D>(runIdOf(run), {}, unheard), around);
      if (state === undefined) checker.fail("kept", `${runIdOf(run)} can't be loaded in the end`);
      else finals.push(state);
    }
    world.kill(observer);
  });
  while (observer.isAlive && (await world.step()));
  return finals;
}
