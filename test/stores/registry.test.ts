import { afterAll, afterEach, beforeAll, expect, test, vi } from "vitest";
import {
  type CheckpointStore,
  ConfigError,
  getCheckpointStore,
  MemoryStore,
  registerCheckpointStore,
} from "waymark";
import { linear, RecordingStore, rejection, start, thrown } from "../graphs.js";

let names = 0;

/** A name that no other test has used: the registry is the process's. */
const fresh = (): string => `store-${names++}`;

const unhandled: unknown[] = [];
const note = (error: unknown): number => unhandled.push(error);
beforeAll(() => void process.on("unhandledRejection", note));
afterAll(() => void process.off("unhandledRejection", note));
afterEach(() => expect(unhandled).toEqual([]));

test("memory is registered as one store for the whole process", () => {
  expect(getCheckpointStore("memory")).toBeInstanceOf(MemoryStore);
  expect(getCheckpointStore("memory")).toBe(getCheckpointStore("memory"));
});

test("an unknown name is an error that lists the known ones", () => {
  const name = fresh();
  registerCheckpointStore(name, new MemoryStore());
  const error = thrown(() => getCheckpointStore("tape"), ConfigError);
  expect(error.message).toMatch(/^store must be an address .*, or a registered name: /);
  expect(error.message).toContain("memory");
  expect(error.message).toContain(name);
  expect(error.message).toMatch(/; got "tape"$/);
  for (const odd of ["", "toString", "__proto__"]) {
    thrown(() => getCheckpointStore(odd), ConfigError);
  }
});

test("a registered store is returned as itself; the last one registered wins", () => {
  const name = fresh();
  const [first, second] = [new MemoryStore(), new MemoryStore()];
  registerCheckpointStore(name, first);
  expect(getCheckpointStore(name)).toBe(first);
  registerCheckpointStore(name, second);
  expect(getCheckpointStore(name)).toBe(second);
});

test("a class in place of a factory is refused with the correct call", () => {
  const error = thrown(
    () => registerCheckpointStore(fresh(), MemoryStore as unknown as () => MemoryStore),
    ConfigError,
  );
  expect(error.message).toBe(
    "store must be a CheckpointStore or a function that makes one; got the class MemoryStore: write () => new MemoryStore()",
  );
});

test("a factory is called once, when its store is first requested", () => {
  const name = fresh();
  const store = new MemoryStore();
  const factory = vi.fn(() => store);
  registerCheckpointStore(name, factory);
  expect(factory).not.toHaveBeenCalled();
  expect(getCheckpointStore(name)).toBe(store);
  expect(getCheckpointStore(name)).toBe(store);
  expect(factory).toHaveBeenCalledTimes(1);
});

test("a factory that throws is called again on the next request", () => {
  const name = fresh();
  const store = new MemoryStore();
  const factory = vi
    .fn(() => store)
    .mockImplementationOnce(() => {
      throw new RangeError("not yet");
    });
  registerCheckpointStore(name, factory);
  thrown(() => getCheckpointStore(name), RangeError);
  expect(getCheckpointStore(name)).toBe(store);
});

test.each([undefined, null, 7, {}, { save() {}, load() {} }])("refuses %o as a store", (value) => {
  const error = thrown(() => registerCheckpointStore(fresh(), value as never), ConfigError);
  expect(error.option).toBe("store");
  const name = fresh();
  registerCheckpointStore(name, () => value as never);
  expect(thrown(() => getCheckpointStore(name), ConfigError).option).toBe(`store "${name}"`);
});

test.each(["", 7, undefined])("refuses %o as a name", (name) => {
  const error = thrown(
    () => registerCheckpointStore(name as string, new MemoryStore()),
    ConfigError,
  );
  expect(error.option).toBe("name");
});

test("a graph runs, saves and resumes on a store that is still loading", async () => {
  const name = fresh();
  const store = new RecordingStore();
  registerCheckpointStore(name, async () => store);
  const checkpoint = { store: name, interval: 1, preserve: true };
  const graph = linear(["a", "b"], { checkpoint });
  const { runId } = await graph.execute(start());
  expect(store.log).toEqual(["start:@0", "interval:a@1", "complete:b@2"]);
  expect((await graph.resume(runId)).status).toBe("completed");
  expect(await graph.history(runId)).toHaveLength(3);
});

test("a store that fails to load causes no error until it is used, and is then loaded again", async () => {
  const name = fresh();
  const store = new RecordingStore();
  const down = new RangeError("no such module");
  const factory = vi
    .fn(async (): Promise<CheckpointStore> => store)
    .mockRejectedValueOnce(down)
    .mockRejectedValueOnce(down);
  registerCheckpointStore(name, factory);
  const graph = linear(["a"], { checkpoint: { store: name, interval: 1, preserve: true } });
  await new Promise((resolve) => setImmediate(resolve));
  expect(await rejection(graph.execute(start("r")), RangeError)).toBe(down);
  await graph.execute(start("r"));
  expect(factory).toHaveBeenCalledTimes(3);
  expect(store.saved).toHaveLength(2);
});
