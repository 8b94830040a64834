import { type CheckpointStore, isCheckpointStore, opened } from "../checkpoint/store.js";
import { ConfigError, show } from "../errors.js";
import type { Case } from "./cases/case.js";
import { claims } from "./cases/claims.js";
import { contract } from "./cases/contract.js";
import { forks, history } from "./cases/history.js";
import { badIds, ids, similarIds } from "./cases/ids.js";
import { keep } from "./cases/keep.js";
import { moves, verify } from "./cases/moves.js";
import { prune, runs } from "./cases/runs.js";
import { roundTrip } from "./cases/values.js";
import { concurrency, conflict, durable, isolation } from "./cases/writers.js";

const cases: readonly Case[] = [
  ...contract,
  ...ids,
  ...badIds,
  ...similarIds,
  ...history,
  ...forks,
  ...keep,
  ...runs,
  ...prune,
  ...moves,
  ...verify,
  ...conflict,
  ...concurrency,
  ...isolation,
  ...roundTrip,
  ...durable,
  ...claims,
];

/** Options of {@link testCheckpointStore}. */
export interface StoreSuiteOptions {
  /** The store's name, which starts the name of each test. */
  readonly name: string;
  /** Makes a new, empty store; called for each test. */
  readonly create: () => CheckpointStore | Promise<CheckpointStore>;
  /**
   * Opens the same data with another instance, as a new process would. Omit it for a store that is not durable.
   */
  readonly reopen?: (store: CheckpointStore) => CheckpointStore | Promise<CheckpointStore>;
  /** `test` or `it` of vitest, jest, mocha or `node:test`; the global one by default. */
  readonly test?: (name: string, run: () => Promise<void>) => unknown;
}

/**
 * Registers the tests that every store must pass: contract, ids, history, fork, keep, runs, prune, conflict,
 * concurrency, isolation and exact round trip, and, with `reopen`, that what was saved outlives the store. Tests
 * of optional methods are registered too, and pass immediately if the store lacks them. Some tests change
 * waymark's clock, from which `State.savedAs` takes the time of a save.
 *
 * @throws ConfigError if there is no `test` function.
 *
 * @example
 * ```ts
 * import { MemoryStore } from "waymark";
 * import { testCheckpointStore } from "waymark/testing";
 *
 * const names: string[] = [];
 * testCheckpointStore({
 *   name: "MemoryStore",
 *   create: () => new MemoryStore(),
 *   test: (name) => names.push(name), // in a test file: test
 * });
 * console.log(names.length > 30); // true
 * ```
 */
export function testCheckpointStore(options: StoreSuiteOptions): void {
  const test = options.test ?? globalTest();
  for (const [name, run] of cases) {
    test(`${options.name}: ${name}`, async () => {
      const store = await options.create();
      if (!isCheckpointStore(store)) {
        throw new ConfigError("create", `must return a CheckpointStore; got ${show(store)}`);
      }
      try {
        const { reopen } = options;
        await run(await opened(store), reopen && (async () => opened(await reopen(store))));
      } finally {
        await store.close?.();
      }
    });
  }
}

function globalTest(): NonNullable<StoreSuiteOptions["test"]> {
  const { test, it } = globalThis as { test?: unknown; it?: unknown };
  const found = test ?? it;
  if (typeof found === "function") return found as NonNullable<StoreSuiteOptions["test"]>;
  throw new ConfigError("test", "is missing: pass test or it of your test runner");
}
