import { join } from "node:path";
import { describe, expect, test, vi } from "vitest";
import {
  type CheckpointAt,
  type CheckpointStore,
  type HistoryEntry,
  MemoryStore,
  type Retention,
  type RunFilter,
  type RunSummary,
  type SaveOptions,
  State,
} from "waymark";
import { SqliteStore } from "waymark/stores/sqlite";
import { testCheckpointStore } from "waymark/testing";
import { newFolder } from "../stores/folders.js";
import { only } from "../stores/plain.js";

/** The names of the suite's tests that a store fails. */
async function failures(create: () => CheckpointStore): Promise<string[]> {
  const failed: string[] = [];
  const running: Promise<void>[] = [];
  testCheckpointStore({
    name: "store",
    create,
    test: (name, run) => running.push(run().catch(() => void failed.push(name))),
  });
  await Promise.all(running);
  return failed;
}

class Forgetful extends MemoryStore {
  override async load<D extends object>(runId: string): Promise<State<D>> {
    return super.load(runId);
  }
}

class LastWriterWins extends MemoryStore {
  override async save<D extends object>(state: State<D>, options?: SaveOptions): Promise<State<D>> {
    const current = await super.load(state.runId).catch(() => undefined);
    const { checkpointId } = state;
    return super.save(state.savedAs({ checkpointId, sequence: current?.sequence ?? 0 }), options);
  }
}

class PlainJson extends MemoryStore {
  override async load<D extends object>(runId: string, at?: CheckpointAt): Promise<State<D>> {
    const { data, ...rest } = (await super.load<D>(runId, at)).toJSON();
    return State.fromJSON<D>({ ...rest, data: JSON.parse(JSON.stringify(data, dropTags)) });
  }
}

const dropTags = (_key: string, value: unknown): unknown =>
  typeof value === "object" && value !== null && "$date" in value ? value.$date : value;

class KeepsAll extends MemoryStore {
  override async save<D extends object>(state: State<D>): Promise<State<D>> {
    return super.save(state, { keep: Number.POSITIVE_INFINITY });
  }
}

class DeletesNothing extends MemoryStore {
  override async delete(): Promise<void> {}
}

class MergesSimilarIds extends MemoryStore {
  override async list(): Promise<string[]> {
    return [...new Set((await super.list()).map((runId) => runId.toLowerCase()))];
  }
}

class PrunesEverything extends MemoryStore {
  override async prune(): Promise<string[]> {
    const runIds = await this.list();
    for (const runId of runIds) await this.delete(runId);
    return runIds;
  }
}

class CountsRecords extends MemoryStore {
  override async history(runId: string): Promise<HistoryEntry[]> {
    return (await super.history(runId)).slice(0, 5);
  }
}

class ListsByLastNode extends MemoryStore {
  override async runs(filter?: RunFilter): Promise<RunSummary[]> {
    return (await super.runs(filter)).sort((a, b) => (a.timestamp < b.timestamp ? 1 : -1));
  }
}

class IgnoresMetadata extends MemoryStore {
  override async runs({ metadata: _ignored, ...filter }: RunFilter = {}): Promise<RunSummary[]> {
    return super.runs(filter);
  }
}

class PrunesAbandoned extends MemoryStore {
  override async prune(retention: Retention): Promise<string[]> {
    return super.prune({ ...retention, includeAbandoned: true });
  }
}

class FindsTheFirst extends MemoryStore {
  override async find(): Promise<string | undefined> {
    return (await this.list())[0];
  }
}

class NamesNobody extends MemoryStore {
  override async holder(): Promise<undefined> {}
}

describe("testCheckpointStore", () => {
  test("passes a store that keeps the contract", async () => {
    expect(await failures(() => new MemoryStore())).toEqual([]);
  });

  test.each([
    ["ignores the step and id it is asked for", Forgetful, /by step and by id/],
    ["lets the last writer win", LastWriterWins, /conflict/],
    ["loses types", PlainJson, /keeps exactly: date/],
    ["keeps every checkpoint", KeepsAll, /only the newest/],
    ["lets progress saves push steps out", CountsRecords, /10 progress saves never push/],
    ["lists runs by their last node", ListsByLastNode, /can be filtered by id, status/],
    ["does not filter by metadata", IgnoresMetadata, /by metadata/],
    ["prunes what never finished, unasked", PrunesAbandoned, /prune removes what was saved/],
    ["finds the wrong run", FindsTheFirst, /find gives the run/],
    ["does not say who has a run", NamesNobody, /holder says/],
    ["deletes nothing", DeletesNothing, /delete removes/],
    ["takes similar ids for one", MergesSimilarIds, /look alike/],
    ["prunes runs that go on", PrunesEverything, /prune/],
  ])("fails a store that %s", async (_name, Store, failing) => {
    expect((await failures(() => new Store())).join("\n")).toMatch(failing);
  });

  test("passes a store that has the four methods only", async () => {
    const create = (): CheckpointStore => {
      const store = new MemoryStore();
      return {
        save: (state, options) => store.save(state, options),
        load: (runId, at) => store.load(runId, at),
        delete: (runId) => store.delete(runId),
        list: () => store.list(),
      };
    };
    expect(await failures(create)).toEqual([]);
  });

  test("passes a store that moves runs and has no history", async () => {
    const create = (): CheckpointStore =>
      only(
        new SqliteStore({ path: join(newFolder(), "waymark.db"), durability: "os" }),
        ...(["save", "load", "delete", "list", "export", "import", "verify", "close"] as const),
      );
    expect(await failures(create)).toEqual([]);
  });

  test("finds the test function of a runner that has a global one", () => {
    const names: string[] = [];
    vi.stubGlobal("test", undefined);
    vi.stubGlobal("it", (name: string) => names.push(name));
    testCheckpointStore({ name: "store", create: () => new MemoryStore() });
    vi.unstubAllGlobals();
    expect(names).toContain("store: history of an unknown run is empty");
  });

  test("needs a test function, and a factory that makes a store", async () => {
    expect(() => testCheckpointStore({ name: "store", create: () => new MemoryStore() })).toThrow(
      /pass test or it/,
    );
    const running: Promise<void>[] = [];
    const test = (_name: string, run: () => Promise<void>) => running.push(run());
    testCheckpointStore({ name: "store", create: () => ({}) as CheckpointStore, test });
    await expect(running[0]).rejects.toThrow(/create must return a CheckpointStore/);
    await Promise.allSettled(running);
  });
});
