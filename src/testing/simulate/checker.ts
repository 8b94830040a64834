import type { RecordHeader } from "../../checkpoint/records/header.js";
import type { RunStatus } from "../../state/record.js";
import type { Storage, StorageObserver } from "./storage.js";
import type { Process, World } from "./world.js";

/**
 * The rules that a simulation checks:
 *
 * - `kept`: what was acknowledged is never lost;
 * - `begun-again`: an acknowledged node never begins again;
 * - `one-writer`: nobody writes to a run that another process has claimed, or begins a node of it;
 * - `answer`: an acknowledged answer is never dropped;
 * - `end`: every run ends;
 * - `error`: there are no unexpected errors;
 * - `check`: the final State passes the caller's own check.
 */
export type SimulationRule =
  | "kept"
  | "begun-again"
  | "one-writer"
  | "answer"
  | "end"
  | "error"
  | "check";

/** A broken rule. */
export interface Violation {
  /** Which. */
  readonly rule: SimulationRule;
  /** What happened. */
  readonly message: string;
}

/** What is known about a run from outside. */
interface RunFacts {
  /** The newest checkpoint that was acknowledged, and the highest step of any. */
  sequence: number;
  step: number;
  status: RunStatus | undefined;
  /** The process that has claimed it, according to the database. */
  holder: { readonly process: Process; readonly epoch: number } | undefined;
  /** Whether a disk has damaged an acknowledged checkpoint. */
  isDamaged: boolean;
  /** The acknowledged answers, by the names of their pauses. */
  readonly answers: Set<string>;
}

/** Checks the rules of a run from outside. */
export class Checker implements StorageObserver {
  readonly #world: World;
  readonly #runs = new Map<string, RunFacts>();
  violation: Violation | undefined;

  constructor(world: World) {
    this.#world = world;
  }

  /** Registers an expected run. */
  add(runId: string): void {
    this.#runs.set(runId, {
      ...{ sequence: 0, step: 0, status: undefined, holder: undefined, isDamaged: false },
      answers: new Set(),
    });
  }

  fail(rule: SimulationRule, message: string): void {
    this.#world.note(undefined, `VIOLATION ${rule}: ${message}`);
    this.violation ??= { rule, message };
  }

  written(
    { runId, sequence, status }: RecordHeader,
    by: Process,
    epoch: number | null,
    isClaimed: boolean,
  ): void {
    const run = this.#of(runId);
    run.status = status;
    const { holder } = run;
    if (holder === undefined || holder.process === by) return;
    const isOld = epoch !== null && epoch !== holder.epoch;
    if (!isOld && !isClaimed) return;
    const what = `${by.name} wrote checkpoint ${sequence} of ${runId}`;
    this.fail("one-writer", `${what}, which ${holder.process.name} has claimed`);
  }

  /** The process that has claimed a run. */
  holder(runId: string): Process | undefined {
    return this.#of(runId).holder?.process;
  }

  claimed(runId: string, process: Process, epoch: number): void {
    this.#of(runId).holder = { process, epoch };
  }

  released(runId: string, epoch: number): void {
    const run = this.#of(runId);
    if (run.holder?.epoch === epoch) run.holder = undefined;
  }

  saved({ runId, sequence, step }: Pick<RecordHeader, "runId" | "sequence" | "step">): void {
    const run = this.#of(runId);
    run.sequence = Math.max(run.sequence, sequence);
    run.step = Math.max(run.step, step);
  }

  /** Notes that an answer was acknowledged. */
  answered(runId: string, pause: string): void {
    this.#of(runId).answers.add(pause);
  }

  /** Whether a pause was answered; an answer that a disk may have lost is given again. */
  isAnswered(runId: string, pause: string): boolean {
    const { answers, isDamaged } = this.#of(runId);
    return answers.has(pause) && !isDamaged;
  }

  began(runId: string, node: string, step: number, process: Process, storage: Storage): void {
    this.#world.note(process, `begins ${node} at step ${step} of ${runId}`);
    const run = this.#runs.get(runId);
    // A run inside a node has no checkpoints of its own.
    if (run === undefined) return;
    const whole = run.isDamaged ? (storage.newestWhole(runId)?.step ?? 0) : run.step;
    const what = `${process.name} began ${node} at step ${step} of ${runId}`;
    if (step < Math.min(run.step, whole)) {
      this.fail("begun-again", `${what} when ${run.step} steps were acknowledged`);
    }
    const holder = run.holder?.process ?? process;
    if (holder !== process) this.fail("one-writer", `${what}, which ${holder.name} has claimed`);
  }

  /** Notes that the disk has damaged something: what was acknowledged may be lost. */
  damaged(runId: string, storage: Storage): void {
    this.#of(runId).isDamaged = true;
    this.checkKept(storage);
  }

  /** Checks that what was acknowledged is still there. */
  checkKept(storage: Storage): void {
    const listed = new Map(storage.runs().map(({ runId, status }) => [runId, status]));
    for (const [runId, run] of this.#runs) {
      const newest = storage.newestWhole(runId);
      // If the last checkpoint of an ended run is damaged, the listing decides: nobody continues the run.
      run.status = listed.get(runId);
      const { sequence = 0 } = newest ?? {};
      if (run.isDamaged || sequence >= run.sequence) continue;
      const found = `the newest whole one is ${sequence}`;
      this.fail("kept", `checkpoint ${run.sequence} of ${runId} was acknowledged; ${found}`);
    }
  }

  /** The runs that have not ended. */
  open(isOver: (status: RunStatus) => boolean): string[] {
    return [...this.#runs].flatMap(([runId, { status }]) =>
      status !== undefined && isOver(status) ? [] : [runId],
    );
  }

  /** Whether any checkpoint of a run was written. */
  isBegun(runId: string): boolean {
    return this.#of(runId).status !== undefined;
  }

  /** Called when nothing more will happen, or nothing has for too long: reports what is wrong. */
  stuck(storage: Storage): void {
    const [runId] = this.open((status) => status === "completed");
    if (runId === undefined) return;
    const { answers, isDamaged, status } = this.#of(runId);
    if (status === "paused" && answers.size > 0 && !isDamaged) {
      this.fail("answer", `${runId} waits, although ${[...answers].join(", ")} was answered`);
      return;
    }
    const { step = 0, node = "" } = storage.newestWhole(runId) ?? {};
    const where = `at step ${step} after ${JSON.stringify(node)}`;
    this.fail("end", `${runId} does not end: it is ${status ?? "not begun"} ${where}`);
  }

  #of(runId: string): RunFacts {
    const run = this.#runs.get(runId);
    if (run === undefined) throw new Error(`nobody started run ${runId}`);
    return run;
  }
}
