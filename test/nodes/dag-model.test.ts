import fc from "fast-check";
import { expect, test } from "vitest";
import { type DagTasks, dag, MemoryStore, State } from "waymark";
import type { Saves } from "../../src/graph/node.js";
import type { DagOptions } from "../../src/nodes/dag.js";
import { MortalStore } from "./nodes.js";

type Data = Record<string, string>;

/** By task, what it depends on: only tasks whose names come before it. */
type Shape = ReadonlyMap<string, readonly string[]>;

const names = Array.from({ length: 9 }, (_, at) => `t${at}`);

const arbitraryShape: fc.Arbitrary<Shape> = fc
  .tuple(
    fc.subarray(names, { minLength: 1 }),
    fc.array(fc.array(fc.boolean(), { minLength: 9, maxLength: 9 }), {
      minLength: 9,
      maxLength: 9,
    }),
  )
  .map(([tasks, links]) => {
    const at = (name: string) => names.indexOf(name);
    return new Map(
      tasks.map((name) => [
        name,
        tasks.filter((need) => at(need) < at(name) && links[at(name)]?.[at(need)] === true),
      ]),
    );
  });

/** One process: the dag it has, and after how many saves it dies. */
interface Life {
  readonly shape: Shape;
  readonly saves: number;
  readonly options: Pick<DagOptions<Data>, "schedule" | "saves" | "concurrency">;
}

const arbitraryLife: fc.Arbitrary<Life> = fc.record({
  shape: arbitraryShape,
  saves: fc.integer({ min: 1, max: 8 }),
  options: fc.record({
    schedule: fc.constantFrom("layers", "eager"),
    saves: fc.constantFrom<Saves>("item", "layer", 1, 2, 3),
    concurrency: fc.integer({ min: 1, max: 4 }),
  }),
});

test("across random crashes and edits, every task of the last dag has a result, and no saved task runs again", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(arbitraryLife, { maxLength: 5 }),
      arbitraryLife,
      async (lives, last) => {
        const store = new MemoryStore();
        const started = new Set<string>();
        const unmet: string[] = [];
        const build = (life: Life, left: number) => {
          const tasks = Object.fromEntries(
            [...life.shape].map(([name, dependsOn]) => [
              name,
              {
                dependsOn,
                run: async ({ data }: State<Data>) => {
                  for (const need of dependsOn)
                    if (data[need] !== need) unmet.push(`${name}: ${need}`);
                  started.add(name);
                  await Promise.resolve();
                  return name;
                },
              },
            ]),
          ) as DagTasks<Data>;
          const mortal = new MortalStore(store, left);
          return dag<Data>(tasks, {
            ...life.options,
            checkpoint: { store: mortal, interval: 1, preserve: true, keep: 100 },
          });
        };
        const go = (life: Life, left: number) =>
          build(life, left).resumeOrStart(State.create<Data>({}, { runId: "r" }));
        let kept = new Set<string>();
        let isDone = false;
        for (const life of lives) {
          started.clear();
          const final = await go(life, life.saves).catch(() => undefined);
          for (const task of kept) expect([...started]).not.toContain(task);
          kept = await savedTasks(store, life.shape, kept);
          isDone = final !== undefined;
          if (isDone) break;
        }
        expect(unmet).toEqual([]);
        if (isDone) return;
        started.clear();
        const final = await go(last, Number.POSITIVE_INFINITY);
        for (const task of last.shape.keys()) expect(final.data[task]).toBe(task);
        for (const task of kept) expect([...started]).not.toContain(task);
        expect(unmet).toEqual([]);
        expect(final.status).toBe("completed");
      },
    ),
    { numRuns: 300 },
  );
}, 120_000);

/** The tasks whose results the newest checkpoint has; of those in the middle of a layer, what this dag still knows. */
async function savedTasks(
  store: MemoryStore,
  shape: Shape,
  before: ReadonlySet<string>,
): Promise<Set<string>> {
  const state = await store.load<Data>("r").catch(() => undefined);
  if (state === undefined) return new Set(before);
  const results = (state.toJSON().unfinished?.results ?? {}) as Record<string, object>;
  const unfinished = Object.entries(results)
    .filter(([key]) => key.startsWith("results "))
    .flatMap(([, piece]) => Object.keys(piece));
  return new Set([...Object.keys(state.data), ...unfinished.filter((task) => shape.has(task))]);
}
