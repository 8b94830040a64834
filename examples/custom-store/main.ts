/**
 * A store of your own, here for the Web Storage of Deno and Node: a backend of small methods, from which RecordStore
 * makes a store with patches, codecs, fallback, retention and verification. The suite checks whether it keeps a store's
 * promises. A careless store, in which the last writer wins, is caught.
 *
 * Run it: npx tsx examples/custom-store/main.ts
 *
 * In your tests the suite takes two lines; `test` is that of vitest, jest, mocha or node:test:
 * testCheckpointStore({ name: "WebStorageStore", create: () => new WebStorageStore(…), test });
 */
import assert from "node:assert/strict";
import { type CheckpointStore, isWaymarkError, type SaveOptions, State, StateGraph } from "waymark";
import { testCheckpointStore } from "waymark/testing";
import { type WebStorage, WebStorageStore } from "./web-storage-store.js";

/** Stands for localStorage: what all tabs of a page share. */
class FakeLocalStorage implements WebStorage {
  readonly #items = new Map<string, string>();
  get length(): number {
    return this.#items.size;
  }
  key = (index: number): string | null => [...this.#items.keys()][index] ?? null;
  getItem = (key: string): string | null => this.#items.get(key) ?? null;
  setItem = (key: string, value: string): void => void this.#items.set(key, value);
  removeItem = (key: string): void => void this.#items.delete(key);
}

/** Puts every State on top of what is there, whatever it was made from. */
class CarelessStore extends WebStorageStore {
  override async save<D extends object>(state: State<D>, options?: SaveOptions): Promise<State<D>> {
    const newest = await this.load(state.runId).catch(() => undefined);
    return super.save(newest === undefined ? state : state.savedAs(newest), options);
  }
}

/** Runs the suite on a kind of store, and shows what it found. */
async function runSuite(
  name: string,
  open: (storage: FakeLocalStorage) => CheckpointStore,
): Promise<{ passed: number; failed: string[] }> {
  const tests: [string, () => Promise<void>][] = [];
  let storage = new FakeLocalStorage();
  testCheckpointStore({
    name,
    create: () => {
      storage = new FakeLocalStorage();
      return open(storage);
    },
    reopen: () => open(storage),
    test: (title, run) => tests.push([title, run]),
  });
  const failed: string[] = [];
  for (const [title, run] of tests) await run().catch(() => failed.push(title));
  console.log(`${name}: ${tests.length - failed.length} of ${tests.length} tests passed`);
  for (const title of failed) console.log(`  failed: ${title.slice(name.length + 2)}`);
  return { passed: tests.length - failed.length, failed };
}

const good = await runSuite("WebStorageStore", (storage) => new WebStorageStore(storage));
const careless = await runSuite("CarelessStore", (storage) => new CarelessStore(storage));
assert.deepEqual(good.failed, []);
assert.ok(good.passed > 60);
assert.ok(careless.failed.some((title) => title.includes("conflict")));

// Codecs, history, fallback and retention come from RecordStore.
const secret = new FakeLocalStorage();
const codec = { compress: "gzip", redact: ["data.password"] } as const;
const sealed = new WebStorageStore(secret, { codec, keep: 2 });
let state = await State.create({ user: "ada", password: "lovelace", n: 0 }).checkpoint(sealed);
for (let n = 1; n < 40; n++) state = await state.set("n", n).checkpoint(sealed);
const { data } = await sealed.load<{ password: string }>(state.runId);
console.log(`\nThe password is saved as ${data.password}`);
assert.notEqual(data.password, "lovelace");
for await (const finding of sealed.verify()) assert.fail(finding.actual);

// A page that is closed half-way, and opened again.
const storage = new FakeLocalStorage();
const tab = new AbortController();
const form = (signal?: AbortSignal) => {
  const graph = new StateGraph<{ answers: string[] }>({
    name: "form",
    checkpoint: { store: new WebStorageStore(storage), interval: 1, preserve: true },
  })
    .addNode("name", (state) => ({ answers: [...state.data.answers, "Ada"] }))
    .addNode("address", (state) => {
      if (signal !== undefined) tab.abort();
      return { answers: [...state.data.answers, "London"] };
    })
    .addNode("confirm", (state) => state)
    .addEdge("name", "address")
    .addEdge("address", "confirm")
    .setEntryPoint("name")
    .setExitPoint("confirm");
  const state = State.create({ answers: [] as string[] }, { runId: "form" });
  return graph.resumeOrStart(state, { signal });
};
const closed = await form(tab.signal).catch((error: unknown) => error);
assert.ok(isWaymarkError(closed, "ABORTED"));
console.log(`\nThe page is closed before "${closed.nodeName}", and opened again`);
const final = await form();
console.log(`  ${final.status}: ${final.data.answers.join(", ")}`);
assert.deepEqual(final.visits, { name: 1, address: 1, confirm: 1 });
