import { inspect } from "node:util";
import type { Process, World } from "./world.js";

/** What a simulated graph receives. */
export interface SimulationTools {
  /**
   * Wraps a function so that the simulation sees its calls: a worker may die before, during or after one, and the
   * report says how often it ran with the same arguments at the same step of a run.
   */
  effect<A extends readonly unknown[], T>(
    name: string,
    action: (...args: A) => T | Promise<T>,
  ): (...args: A) => Promise<T>;
}

/** A call of an effect. */
export interface Execution {
  readonly name: string;
  readonly kind: "node" | "effect";
  readonly runId: string;
  readonly node: string;
  readonly step: number;
  /** Its arguments. */
  readonly args: string;
}

/** The longest time that an effect takes, in milliseconds. */
const LONGEST = 40;

/** The effects of the graphs in one simulation. */
export class Effects {
  readonly executions: Execution[] = [];
  readonly #world: World;
  readonly #atEnd: (() => void)[] = [];

  constructor(world: World) {
    this.#world = world;
  }

  get current(): Process | undefined {
    return this.#world.current;
  }

  /** What a graph of this process receives. */
  tools(process: Process): SimulationTools {
    const rest = (): Promise<void> => this.#rest(process);
    return {
      effect:
        (name, action) =>
        async (...args) => {
          await rest();
          const { runId = "", node = "", step = 0 } = process.visit ?? {};
          this.#world.note(process, `does ${name} in ${node} at step ${step} of ${runId}`);
          this.executions.push({ name, kind: "effect", runId, node, step, args: inspect(args) });
          const value = await action(...args);
          await rest();
          return value;
        },
    };
  }

  began(process: Process, runId: string, node: string, step: number): void {
    process.visit = { runId, node, step };
    this.executions.push({ name: node, kind: "node", runId, node, step, args: "" });
  }

  onEnd(action: () => void): void {
    this.#atEnd.push(action);
  }

  end(): void {
    for (const action of this.#atEnd) action();
  }

  #rest(process: Process): Promise<void> {
    const ms = process.random.next() * LONGEST;
    return new Promise((resolve) => this.#world.after(ms, process, resolve));
  }
}
