import type { SimulationRule } from "./checker.js";
import type { Execution } from "./effects.js";
import type { SimulationScript } from "./script.js";

/** How often an effect or a node of the graph ran. */
export interface EffectReport {
  /** The name that `effect` was given, or that of the node. */
  readonly name: string;
  /** Whether it is a node, or an effect of one. */
  readonly kind: "node" | "effect";
  /** How often it ran in total. */
  readonly ran: number;
  /** At how many steps of a run it ran more than once. */
  readonly repeated: number;
  /** The most times it ran at one step of a run. */
  readonly most: number;
  /** The first script in which it ran more than once. */
  readonly example: SimulationScript | undefined;
}

/** A broken rule, and how to reproduce it. */
export interface SimulationFailure {
  /** The rule. */
  readonly rule: SimulationRule;
  /** What happened. */
  readonly message: string;
  /** The seed that found it. */
  readonly seed: number;
  /** The smallest script that reproduces it with `simulate({ …, script })`. */
  readonly script: SimulationScript;
  /** What happens in it, line by line: the time in milliseconds, who, what. */
  readonly trace: readonly string[];
  /** A program that reproduces it, except for the graph. */
  readonly program: string;
}

/** The result of simulations. */
export interface SimulationReport {
  /** How many scripts were played. */
  readonly scripts: number;
  /** How many steps the simulations took. */
  readonly steps: number;
  /** How many runs completed, failed for good, and were left waiting for an answer. */
  readonly runs: {
    /** Those that completed. */
    readonly completed: number;
    /** Those that failed. */
    readonly failed: number;
    /** Those that wait for an answer. */
    readonly paused: number;
  };
  /** Every node and effect that ran, and how often it was repeated. */
  readonly effects: readonly EffectReport[];
  /** The broken rules, one per script; empty if all is well. */
  readonly failures: readonly SimulationFailure[];
  /** The trace, if a `script` was played. */
  readonly trace: readonly string[];
}

/** Counts what ran, over many simulations. */
export class EffectCounts {
  readonly #reports = new Map<string, EffectReport>();

  add(executions: readonly Execution[], script: SimulationScript): void {
    const steps = new Map<string, { readonly key: string; readonly of: Execution; ran: number }>();
    for (const of of executions) {
      const key = `${of.kind} ${of.name}`;
      const id = JSON.stringify([key, of.runId, of.node, of.step, of.args]);
      const step = steps.get(id) ?? { key, of, ran: 0 };
      step.ran++;
      steps.set(id, step);
    }
    for (const { key, of, ran } of steps.values()) {
      const before = this.#reports.get(key);
      const isRepeated = ran > 1;
      this.#reports.set(key, {
        name: of.name,
        kind: of.kind,
        ran: (before?.ran ?? 0) + ran,
        repeated: (before?.repeated ?? 0) + Number(isRepeated),
        most: Math.max(before?.most ?? 0, ran),
        example: before?.example ?? (isRepeated ? script : undefined),
      });
    }
  }

  /** The most repeated come first. */
  list(): EffectReport[] {
    return [...this.#reports.values()].sort(
      (a, b) => b.repeated - a.repeated || (a.name < b.name ? -1 : 1),
    );
  }
}

/** A program that replays a script. */
export function programOf(script: SimulationScript): string {
  const faults = script.faults.map((fault) => `      ${inline(fault)},`);
  const { faults: _, ...rest } = script;
  const fields = Object.entries(rest).map(
    ([name, value]) => `    ${name}: ${JSON.stringify(value)},`,
  );
  return [
    'import { simulate } from "waymark/testing";',
    "",
    "const report = await simulate({",
    "  graph, // yours",
    "  data, // yours",
    "  script: {",
    ...fields,
    ...(faults.length === 0 ? ["    faults: [],"] : ["    faults: [", ...faults, "    ],"]),
    "  },",
    "});",
    'console.log(report.trace.join("\\n"), report.failures[0]?.message);',
  ].join("\n");
}

function inline(value: object): string {
  const fields = Object.entries(value).map(([name, one]) => `${name}: ${JSON.stringify(one)}`);
  return `{ ${fields.join(", ")} }`;
}
