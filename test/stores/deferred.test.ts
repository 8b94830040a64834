import { describe, expect, test, vi } from "vitest";
import { type CheckpointStore, ConfigError, MemoryStore } from "waymark";
import { deferredStore } from "../../src/stores/registry.js";
import { bare, gate, linear, rejection, start, type Trail } from "../graphs.js";

describe("a store that is loaded when it is first used", () => {
  test("passes on every call, with what comes back", async () => {
    const store = new MemoryStore();
    const create = vi.fn(async () => store);
    const deferred = deferredStore("late", create);
    expect(create).not.toHaveBeenCalled();
    const saved = await deferred.save(start("r"), { keep: 2 });
    expect((await store.load<Trail>("r")).toJSON()).toEqual(saved.toJSON());
    expect((await deferred.load<Trail>("r", { step: 0 })).toJSON()).toEqual(saved.toJSON());
    expect(await deferred.list()).toEqual(["r"]);
    expect(await deferred.history("r")).toEqual(await store.history("r"));
    expect(await deferred.runs({ limit: 1 })).toEqual(await store.runs({ limit: 1 }));
    expect(await deferred.prune({ maxRuns: 0 })).toEqual([]);
    const claim = vi.spyOn(store, "claim");
    expect(await deferred.claim("r", { ttl: 5 })).toBe(await claim.mock.results[0]?.value);
    expect(claim).toHaveBeenCalledWith("r", { ttl: 5 });
    await deferred.delete("r");
    expect(await store.list()).toEqual([]);
    expect(create).toHaveBeenCalledTimes(1);
  });

  test("passes on what moves between stores", async () => {
    const [from, to] = [new MemoryStore(), new MemoryStore()];
    await from.save(start("r"));
    const source = deferredStore("late", () => from);
    await deferredStore("late", () => to).import(source.export("r"));
    expect(await to.history("r")).toEqual(await from.history("r"));
    const without = deferredStore("late", () => bare(new MemoryStore()));
    await rejection(without.import([]), ConfigError);
    await rejection(without.export("r")[Symbol.asyncIterator]().next(), ConfigError);
  });

  test("passes on what a store may have beside the contract's four methods", async () => {
    const store = new MemoryStore();
    const deferred = deferredStore("late", () => store);
    const saved = await deferred.save(start("r"));
    expect(await deferred.find(saved.checkpointId)).toBe("r");
    expect(await deferred.holder("r")).toBeUndefined();
    const { topology } = linear(["a"]);
    await deferred.saveTopology(topology);
    expect(await deferred.topology(topology.fingerprint)).toEqual(topology);
    const without = deferredStore("late", () => bare(new MemoryStore()));
    await rejection(without.find("c"), ConfigError);
    await rejection(without.verify()[Symbol.asyncIterator]().next(), ConfigError);
    await without.saveTopology(topology);
    expect(await without.topology(topology.fingerprint)).toBeUndefined();
    expect(await without.holder("r")).toBeUndefined();
  });

  test("is loaded once, however many ask at once", async () => {
    const loaded = gate();
    const create = vi.fn(async () => {
      await loaded.opened;
      return new MemoryStore();
    });
    const deferred = deferredStore("late", create);
    const calls = [deferred.list(), deferred.save(start()), deferred.open()];
    loaded.open();
    await Promise.all(calls);
    expect(create).toHaveBeenCalledTimes(1);
  });

  test("is loaded again after a load that failed", async () => {
    const store = new MemoryStore();
    const create = vi.fn(async () => store).mockRejectedValueOnce(new RangeError("offline"));
    const deferred = deferredStore("late", create);
    await rejection(deferred.list(), RangeError);
    expect(await deferred.open()).toBe(store);
  });

  test("takes what its factory gave already", async () => {
    const store = new MemoryStore();
    const create = vi.fn(() => new MemoryStore());
    const deferred = deferredStore("late", create, Promise.resolve(store));
    expect(await deferred.open()).toBe(store);
    expect(create).not.toHaveBeenCalled();
  });

  test("may be made by a factory that answers at once", async () => {
    const store = new MemoryStore();
    expect(await deferredStore("late", () => store).open()).toBe(store);
  });

  test("is refused when it turns out to be none", async () => {
    const deferred = deferredStore("late", async () => ({}) as CheckpointStore);
    const error = await rejection(deferred.list(), ConfigError);
    expect(error.option).toBe('store "late"');
    expect(error.message).toContain("got an object");
  });

  test.each(["history", "runs", "prune"] as const)("says when it has no %s", async (method) => {
    const deferred = deferredStore("late", async () => bare(new MemoryStore()));
    const call = deferred[method] as (argument: unknown) => Promise<unknown>;
    const error = await rejection(call.call(deferred, "r"), ConfigError);
    expect(error.message).toBe(`store "late" has no ${method}`);
  });

  test("is closed if it was loaded, and not loaded to be closed", async () => {
    const close = vi.fn(async () => {});
    const create = vi.fn(async () => Object.assign(new MemoryStore(), { close }));
    const deferred = deferredStore("late", create);
    await deferred.close();
    expect(create).not.toHaveBeenCalled();
    await deferred.list();
    await deferred.close();
    expect(close).toHaveBeenCalledTimes(1);
    const plain = deferredStore("late", async () => new MemoryStore());
    await plain.list();
    await expect(plain.close()).resolves.toBeUndefined();
  });
});
