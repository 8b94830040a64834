import { expect, test } from "vitest";
import { type NodeOptions, StateGraph } from "waymark";
import { mark, type Trail } from "../graphs.js";
import { configError } from "../matchers.js";

test.each<[options: unknown, option: string]>([
  [{ retry: { maxAttempts: 0 } }, 'node "x".retry.maxAttempts'],
  [{ retry: { maxAttempts: 1.5 } }, 'node "x".retry.maxAttempts'],
  [{ retry: { initialInterval: -1 } }, 'node "x".retry.initialInterval'],
  [{ retry: { initialInterval: Number.NaN } }, 'node "x".retry.initialInterval'],
  [{ retry: { backoff: 0.5 } }, 'node "x".retry.backoff'],
  [{ retry: { maxInterval: "1s" } }, 'node "x".retry.maxInterval'],
  [{ retry: { retryIf: true } }, 'node "x".retry.retryIf'],
  [{ retry: { attempts: 3 } }, 'node "x".retry.attempts'],
  [{ retry: 3 }, 'node "x".retry'],
  [{ timeout: 0 }, 'node "x".timeout'],
  [{ timeout: Number.NaN }, 'node "x".timeout'],
  [{ errorHandler: "log" }, 'node "x".errorHandler'],
  [{ input: { a: 1 } }, 'node "x".input'],
  [{ retries: 3 }, 'node "x".retries'],
])("node options %j are refused by name", (options, option) => {
  const graph = new StateGraph<Trail>();
  expect(() => graph.addNode("x", mark, options as NodeOptions<Trail>)).toThrow(
    configError(option) as Error,
  );
});
