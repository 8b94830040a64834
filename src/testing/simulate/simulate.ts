import { ConfigError, messageOf, show } from "../../errors.js";
import { callable, check, checkOptions, flag, integer, oneOf } from "../../options.js";
import { StateGraph } from "../../run/state-graph.js";
import type { State } from "../../state/state.js";
import {
  EffectCounts,
  programOf,
  type SimulationFailure,
  type SimulationReport,
} from "./report.js";
import {
  type FaultKind,
  faultKinds,
  type SimulatedStorage,
  type SimulationScript,
  scriptOf,
  storageKinds,
} from "./script.js";
import { shrink } from "./shrink.js";
import { type PlantedBugs, play, type SimulationOutcome } from "./simulation.js";
import type { SimulationSetup } from "./worker.js";

/** Options of {@link simulate}. */
export interface SimulateOptions<D extends object> extends SimulationSetup<D> {
  /** How many seeds to play; at least 1, 100 by default. */
  readonly seeds?: number;
  /** The first of them; 1 by default. */
  readonly seed?: number;
  /** The most workers; at least 1, 3 by default. */
  readonly workers?: number;
  /** The most runs; at least 1, 2 by default. */
  readonly runs?: number;
  /**
   * Whether the runs are submitted to a queue that workers take them from; if not, each process starts and recovers
   * runs by itself. By default half of the seeds do one, half the other.
   */
  readonly queue?: boolean;
  /** Where the runs are kept; by default in a database in three of five seeds, in files in the others. */
  readonly store?: SimulatedStorage;
  /** What may go wrong; everything by default. */
  readonly faults?: readonly FaultKind[];
  /** Instead of random faults, kills the only worker of one run once at every point of it; `false` by default. */
  readonly everywhere?: boolean;
  /** Plays only this script, such as the one of a failure. */
  readonly script?: SimulationScript | undefined;
  /** Checks the final State of each completed run; what it throws is a failure. */
  readonly check?: (final: State<D>) => void;
  /** How many failures to find before stopping; at least 1, 1 by default. */
  readonly maxFailures?: number;
}

const isScript = check(
  "the script of a simulation",
  (value) => typeof value === "object" && value !== null && "seed" in value && "faults" in value,
);

const isFaults = check(
  `a list of ${faultKinds.join(", ")}`,
  (value) =>
    Array.isArray(value) && value.every((kind) => faultKinds.some((known) => known === kind)),
);

/**
 * Runs a graph in a simulated world in which everything that can go wrong does: workers die or freeze, the network
 * loses, delays and duplicates messages, clocks jump, disks fill up, tear writes and corrupt files, the database
 * loses power. waymark itself is real; clock, network, disk and database are simulated, so a day passes in moments,
 * and a seed gives the same simulation on every machine, step by step.
 *
 * After each step it checks waymark's guarantees from outside: what was acknowledged is never lost, an acknowledged
 * node never begins again, a run has one writer, an acknowledged answer counts, every run ends. The report lists the
 * broken ones, each with the smallest script that reproduces it, and the nodes and effects that ran more than once.
 *
 * Nodes must not depend on anything outside: replace services with fakes, and wrap them in `effect`. Run one
 * simulation at a time: it replaces waymark's clock in this process.
 *
 * @throws ConfigError if an option is invalid.
 *
 * @example
 * ```ts
 * import { StateGraph } from "waymark";
 * import { simulate } from "waymark/testing";
 *
 * const report = await simulate({
 *   graph: ({ effect }) => {
 *     const charge = effect("charge", () => 10);
 *     return new StateGraph<{ paid: number }>()
 *       .addNode("pay", async () => ({ paid: await charge() }))
 *       .setEntryPoint("pay")
 *       .setExitPoint("pay");
 *   },
 *   data: () => ({ paid: 0 }),
 *   everywhere: true,
 * });
 * console.log(report.failures.length); // 0
 * console.log(report.effects.find(({ name }) => name === "charge")?.most); // 2
 * ```
 */
export function simulate<D extends object>(options: SimulateOptions<D>): Promise<SimulationReport> {
  return simulateWith(options, {});
}

let isBusy = false;

/** @internal The same, with faults of waymark itself planted. */
export async function simulateWith<D extends object>(
  options: SimulateOptions<D>,
  bugs: PlantedBugs,
): Promise<SimulationReport> {
  checkSimulateOptions(options);
  if (isBusy) throw new ConfigError("simulate", "is under way: wait for its end");
  isBusy = true;
  try {
    return await new Simulator(options, bugs).run();
  } finally {
    isBusy = false;
  }
}

function checkSimulateOptions<D extends object>(options: SimulateOptions<D>): void {
  const isGraph = check(
    "a StateGraph, or a function that makes one",
    (value) => typeof value === "function" || value instanceof StateGraph,
  );
  const count = integer(1);
  checkOptions("options", options, {
    ...{ graph: isGraph, data: callable, answer: callable, check: callable, script: isScript },
    ...{ seeds: count, seed: integer(0), workers: count, runs: count, maxFailures: count },
    ...{ faults: isFaults, everywhere: flag, queue: flag, store: oneOf(...storageKinds) },
  });
  isGraph("options.graph", options.graph);
  callable("options.data", options.data);
}

/** Plays scripts, and sums up the results. */
class Simulator<D extends object> {
  readonly #options: SimulateOptions<D>;
  readonly #bugs: PlantedBugs;
  readonly #effects = new EffectCounts();
  readonly #failures: SimulationFailure[] = [];
  readonly #runs = { completed: 0, failed: 0, paused: 0 };
  #scripts = 0;
  #steps = 0;
  #trace: readonly string[] = [];

  constructor(options: SimulateOptions<D>, bugs: PlantedBugs) {
    this.#options = options;
    this.#bugs = bugs;
  }

  async run(): Promise<SimulationReport> {
    const { script, maxFailures = 1 } = this.#options;
    for await (const next of this.#all()) {
      const outcome = await this.#play(next, script !== undefined);
      this.#scripts++;
      this.#steps += outcome.steps;
      this.#trace = outcome.trace;
      this.#effects.add(outcome.executions, next);
      for (const { status } of outcome.finals) {
        if (status === "failed" || status === "paused") this.#runs[status]++;
        else this.#runs.completed++;
      }
      if (outcome.violation !== undefined) this.#failures.push(await this.#failure(next, outcome));
      if (this.#failures.length >= maxFailures) break;
    }
    return {
      ...{ scripts: this.#scripts, steps: this.#steps, runs: this.#runs },
      effects: this.#effects.list(),
      failures: this.#failures,
      trace: script === undefined ? [] : this.#trace,
    };
  }

  async *#all(): AsyncGenerator<SimulationScript> {
    const { script, everywhere = false, seeds = 100, seed: first = 1 } = this.#options;
    const { workers = 3, runs = 2, faults = faultKinds, queue, store } = this.#options;
    if (script !== undefined) {
      yield script;
    } else if (everywhere) {
      const calm = {
        seed: first,
        workers: 1,
        runs: 1,
        latency: 4,
        queue: queue ?? false,
        store: store ?? "database",
        faults: [],
      };
      yield calm;
      const { steps } = await this.#play(calm, false);
      for (let at = 1; at < steps; at++) {
        yield { ...calm, faults: [{ at, kind: "kill", worker: 0, for: 1 }] };
      }
    } else {
      for (let seed = first; seed < first + seeds; seed++) {
        yield scriptOf(seed, { workers, runs, queue, store }, faults);
      }
    }
  }

  async #play(script: SimulationScript, isTraced: boolean): Promise<SimulationOutcome<D>> {
    const outcome = await play(script, this.#options, this.#bugs, isTraced);
    const { check: look } = this.#options;
    if (outcome.violation !== undefined || look === undefined) return outcome;
    for (const final of outcome.finals) {
      if (final.status !== "completed") continue;
      try {
        look(final);
      } catch (error) {
        const message = `${final.runId}: ${messageOf(error)}`;
        return { ...outcome, violation: { rule: "check", message } };
      }
    }
    return outcome;
  }

  async #failure(
    found: SimulationScript,
    { violation }: SimulationOutcome<D>,
  ): Promise<SimulationFailure> {
    const isSame = async (candidate: SimulationScript): Promise<boolean> =>
      (await this.#play(candidate, false)).violation?.rule === violation?.rule;
    // A given script is reported as it is, since the trace is its own.
    const script = this.#options.script ?? (await shrink(found, isSame));
    const { violation: last = violation, trace } = await this.#play(script, true);
    const { rule, message } = last ?? { rule: "error", message: show(undefined) };
    return { rule, message, seed: found.seed, script, trace, program: programOf(script) };
  }
}
