import { expect, test } from "vitest";
import { type CheckpointStore, MemoryStore } from "waymark";
import { deferredStore } from "../../src/stores/registry.js";

function withoutOptions(): CheckpointStore {
  const store = new MemoryStore();
  return {
    save: (state, options) => store.save(state, options),
    load: (runId, at) => store.load(runId, at),
    delete: (runId) => store.delete(runId),
    list: () => store.list(),
  };
}

test("claim returns the claim of the loaded store", async () => {
  const store = deferredStore("late", () => new MemoryStore());
  const claim = await store.claim("run");
  expect(claim).toBeDefined();
  expect(await store.claim("run")).toBeUndefined();
  await claim?.release();
  expect(await store.claim("run")).toBeDefined();
});

test("a store without claims lets everybody work", async () => {
  const store = deferredStore("late", withoutOptions);
  const claims = [await store.claim("run"), await store.claim("run")];
  for (const claim of claims) await claim?.release();
  expect(claims.every((claim) => claim !== undefined)).toBe(true);
  await store.close();
});

test("an error names the method that the store lacks", async () => {
  const store = deferredStore("late", withoutOptions);
  await expect(store.history("run")).rejects.toThrow(/has no history/);
  await expect(store.runs()).rejects.toThrow(/has no runs/);
  await expect(store.prune({})).rejects.toThrow(/has no prune/);
  await deferredStore("late", withoutOptions).close();
});
