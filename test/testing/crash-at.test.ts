import { describe, expect, test } from "vitest";
import { CheckpointNotFoundError, ConfigError, MemoryStore, State, StateGraph } from "waymark";
import { crashAt } from "waymark/testing";

interface Words {
  readonly words: readonly string[];
}

const nodes = ["a", "b", "c"] as const;

function build(store: MemoryStore, ran: string[] = []) {
  const graph = new StateGraph<Words, string>({
    checkpoint: { store, interval: 1, preserve: true },
  });
  for (const node of nodes) {
    graph.addNode(node, (state) => {
      ran.push(node);
      return { words: [...state.data.words, node] };
    });
  }
  return graph.addEdge("a", "b").addEdge("b", "c").setEntryPoint("a").setExitPoint("c");
}

const start = () => State.create<Words>({ words: [] }, { runId: "monday" });

describe("crashAt", () => {
  test.each(
    [1, 2, 3, 4].flatMap((save) => [
      { save, when: "before" } as const,
      { save, when: "after" } as const,
    ]),
  )(
    "at save $save, $when: the run goes on to the same end, and no saved node runs again",
    async (point) => {
      const store = new MemoryStore();
      const [before, after]: [string[], string[]] = [[], []];
      await expect(build(crashAt(store, point), before).execute(start())).rejects.toMatchObject({
        code: "CHECKPOINT_SAVE",
      });
      const final = await build(store, after).resumeOrStart(start());
      expect(final.data.words).toEqual(nodes);
      const saved = point.when === "after" ? point.save - 1 : Math.max(0, point.save - 2);
      expect(after).toEqual(nodes.slice(saved));
      expect(before).toEqual(nodes.slice(0, point.save - 1));
    },
  );

  test("before the first save leaves nothing, after it a run that has not begun", async () => {
    const store = new MemoryStore();
    await build(crashAt(store, { save: 1 }))
      .execute(start())
      .catch(() => {});
    await expect(store.load("monday")).rejects.toThrow(CheckpointNotFoundError);
    await build(crashAt(store, { save: 1, when: "after" }))
      .execute(start())
      .catch(() => {});
    expect((await store.load("monday")).step).toBe(0);
  });

  test("writes nothing once the process is dead, and still reads", async () => {
    const store = new MemoryStore();
    const saved = await start().checkpoint(store);
    const dying = crashAt(store, { save: 1 });
    await expect(dying.save(saved)).rejects.toThrow("the process died at save 1");
    await expect(dying.save(saved)).rejects.toThrow("simulated by crashAt");
    await expect(dying.delete("monday")).rejects.toThrow("died");
    await expect(dying.prune({ maxRuns: 0 })).rejects.toThrow("died");
    expect(await dying.list()).toEqual(["monday"]);
  });

  test("allows deletes until then", async () => {
    const store = new MemoryStore();
    await start().checkpoint(store);
    await crashAt(store, { save: 1 }).delete("monday");
    expect(await store.list()).toEqual([]);
  });

  test("refuses anything but a store and a point", () => {
    expect(() => crashAt({} as MemoryStore, { save: 1 })).toThrow(ConfigError);
    expect(() => crashAt(new MemoryStore(), { save: 0 })).toThrow("point.save");
    expect(() => crashAt(new MemoryStore(), {} as { save: number })).toThrow(
      "point.save is missing",
    );
    expect(() => crashAt(new MemoryStore(), { save: 1, when: "never" as "after" })).toThrow(
      "point.when",
    );
  });
});
