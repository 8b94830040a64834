import { expect } from "vitest";
import { ExecutionError, ParallelError, parallel, State } from "waymark";
import type { ParallelOptions, ParallelWorker } from "../../src/nodes/parallel.js";
import { rejection } from "../graphs.js";
import { only } from "./nodes.js";

/** Data with a place for the results of a parallel node. */
export interface Sum {
  readonly out: readonly number[];
}

/** A State to start from. */
export const start = (): State<Sum> => State.create<Sum>({ out: [] }, { runId: "r" });
/** The numbers below `length`. */
export const list = (length: number): number[] => Array.from({ length }, (_, index) => index);
const into: ParallelOptions<Sum, number> = { merge: (_state, out) => ({ out }) };
/** A worker. */
export const double = async (_state: State<Sum>, item: number): Promise<number> => item * 2;

/** A parallel node that puts its results into `out`. */
export function doubling(
  items: readonly number[],
  worker: ParallelWorker<Sum, number, number> = double,
  options: ParallelOptions<Sum, number> = {},
) {
  return parallel<Sum, number, number>(items, worker, { ...into, ...options });
}

/** Waits until the microtasks that are due have run. */
export const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** The error of a run whose items fail. */
export async function failing(
  items: readonly number[],
  worker: ParallelWorker<Sum, number, number>,
  options: ParallelOptions<Sum, number> = {},
): Promise<ParallelError> {
  const failure = await rejection(
    only(doubling(items, worker, options)).execute(start()),
    ExecutionError,
  );
  expect(failure).toMatchObject({ code: "NODE_FAILED", nodeName: "work" });
  expect(failure.cause).toBeInstanceOf(ParallelError);
  return failure.cause as ParallelError;
}
