import * as fc from "fast-check";
import { expect, test } from "vitest";
import {
  chain,
  type DagTasks,
  dag,
  type GraphConfig,
  MemoryStore,
  type NodeFunction,
  parallel,
  route,
  State,
  StateGraph,
  subgraph,
} from "waymark";
import { Counts, MortalStore } from "./nodes.js";

/** What happens to a process: it dies after so many saves, or one of its effects fails. */
type Fate = { readonly saves: number } | { readonly fails: number };

const fates = fc.array(
  fc.oneof(fc.record({ saves: fc.nat({ max: 14 }) }), fc.record({ fails: fc.nat({ max: 11 }) })),
  { maxLength: 4 },
);

/** The effects of all processes of a run, and what is in its store. */
class World {
  readonly store = new MemoryStore();
  readonly counts = new Counts();
  /** The effects whose results were in the store when a process had ended. */
  readonly #kept = new Map<string, number>();
  #fails: number | undefined;
  #number = 0;

  /** Something that must not happen again once its result is saved; it takes some turns. */
  async effect<T>(name: string, turns: number, result: T): Promise<T> {
    this.counts.add(name);
    for (let turn = 0; turn < turns; turn++) await undefined;
    if (this.#number++ === this.#fails) throw new Error(`${name} failed`);
    return result;
  }

  /** Runs in one process after the other until one comes to the end. */
  async run<D extends object>(
    state: State<D>,
    fates: readonly Fate[],
    graph: (config: GraphConfig<D>) => StateGraph<D, string>,
    effectsIn: (newest: State<D>) => readonly string[],
  ): Promise<State<D>> {
    for (const fate of [...fates, { saves: Number.POSITIVE_INFINITY }]) {
      const store = new MortalStore(this.store, "saves" in fate ? fate.saves : undefined);
      this.#fails = "fails" in fate ? fate.fails : undefined;
      this.#number = 0;
      const config: GraphConfig<D> = { checkpoint: { store, interval: 1, preserve: true } };
      const final = await graph(config)
        .resumeOrStart(state)
        .catch(() => undefined);
      for (const [name, count] of this.#kept) {
        expect(this.counts.of(name), `${name} was saved and ran again`).toBe(count);
      }
      if (final?.status === "completed") return final;
      const newest = await this.store.load<D>(state.runId).catch(() => undefined);
      for (const name of newest === undefined ? [] : effectsIn(newest)) {
        this.#kept.set(name, this.counts.of(name));
      }
    }
    throw new Error("the last process has not come to the end");
  }
}

type Results = Record<string, string>;

/** Tasks that depend on some of those before them, and how many turns each takes. */
const dags = fc
  .array(fc.record({ needs: fc.array(fc.nat({ max: 7 }), { maxLength: 3 }), turns: fc.nat(5) }), {
    minLength: 1,
    maxLength: 8,
  })
  .map((tasks) =>
    tasks.map(({ needs, turns }, at) => ({
      name: `t${at}`,
      needs: at === 0 ? [] : needs.map((need) => `t${need % at}`),
      turns,
    })),
  );

/** The tasks whose results a checkpoint has: of the layers that are done, and of the one that is not. */
function tasksIn(state: State<Results>): string[] {
  const { unfinished } = state.toJSON();
  const layer = unfinished?.node.replace(/^\d+: /, "").split(", ") ?? [];
  const pieces = Object.values((unfinished?.results ?? {}) as Record<string, object>);
  const indexes = pieces.flatMap((piece) => Object.keys(piece).map(Number));
  return [...Object.keys(state.data), ...indexes.map((index) => layer[index] ?? "")];
}

test("a dag has the same result, whatever happens on the way", {
  timeout: 120_000,
}, async () => {
  await fc.assert(
    fc.asyncProperty(
      dags,
      fates,
      fc.integer({ min: 1, max: 4 }),
      async (plan, fates, concurrency) => {
        const build = (world: World) => (config: GraphConfig<Results>) =>
          dag<Results>(
            Object.fromEntries(
              plan.map(({ name, needs, turns }) => [
                name,
                {
                  dependsOn: needs,
                  run: ({ data }: State<Results>) =>
                    world.effect(name, turns, `${name}(${needs.map((need) => data[need]).join()})`),
                },
              ]),
            ) as DagTasks<Results>,
            { ...config, concurrency },
          );
        const start = (): State<Results> => State.create<Results>({}, { runId: "r" });
        const calm = new World();
        const undisturbed = await calm.run(start(), [], build(calm), tasksIn);
        const world = new World();
        const final = await world.run(start(), fates, build(world), tasksIn);
        expect(final.data).toEqual(undisturbed.data);
        expect(final.step).toBe(undisturbed.step);
        expect(Object.values(calm.counts.all).every((count) => count === 1)).toBe(true);
      },
    ),
    { numRuns: 300 },
  );
});

interface Log {
  readonly log: readonly string[];
}

/** One of the kinds of nodes, its name and what is in it. */
type Part = { readonly kind: "chain" | "parallel" | "route" | "subgraph"; readonly size: number };

const parts = fc.array(
  fc.record({
    kind: fc.constantFrom<Part["kind"]>("chain", "parallel", "route", "subgraph"),
    size: fc.nat({ max: 4 }),
  }),
  { minLength: 1, maxLength: 4 },
);

const add = (state: State<Log>, ...more: readonly string[]): State<Log> =>
  state.set("log", [...state.data.log, ...more]);

/** A node of a kind; what it does is in the log. Effects are named after the node. */
function nodeOf({ kind, size }: Part, name: string, world: World): NodeFunction<Log> {
  const items = Array.from({ length: size }, (_, at) => `${name}.${at}`);
  switch (kind) {
    case "chain":
      return chain(items, async (state, item) => add(state, await world.effect(item, 1, item)));
    case "parallel":
      return parallel(items, (_state, item, { index }) => world.effect(item, index % 3, item), {
        concurrency: 2,
        merge: (state, results) => add(state, ...results),
      });
    case "route":
      return route((state) => (state.data.log.length % 2 === 0 ? "chain" : "parallel"), {
        chain: nodeOf({ kind: "chain", size }, name, world),
        parallel: nodeOf({ kind: "parallel", size }, name, world),
      });
    case "subgraph":
      return subgraph(
        graphOf(
          [
            { kind: "chain", size },
            { kind: "parallel", size },
          ],
          name,
          world,
        ),
        {
          in: (state) => ({ log: state.data.log }),
          out: (_state, inner) => ({ log: inner.data.log }),
        },
      );
  }
}

function graphOf(
  parts: readonly Part[],
  name: string,
  world: World,
  config: GraphConfig<Log> = {},
): StateGraph<Log, string> {
  const graph = new StateGraph<Log, string>(config);
  for (const [at, part] of parts.entries()) {
    graph.addNode(`${name}${at}`, nodeOf(part, `${name}${at}`, world));
    if (at > 0) graph.addEdge(`${name}${at - 1}`, `${name}${at}`);
  }
  return graph.setEntryPoint(`${name}0`).setExitPoint(`${name}${parts.length - 1}`);
}

/** The effects whose results a checkpoint has, however deep; its record of steps names also those that failed. */
function effectsIn(state: State<Log>): string[] {
  const isRecord = (key: string): boolean => key === "begun" || key === "steps";
  const text = JSON.stringify(state.toJSON(), (key, value: unknown) =>
    isRecord(key) ? undefined : value,
  );
  return [...new Set(text.match(/"n[\d.n]*\.\d+"/g) ?? [])].map((quoted) => quoted.slice(1, -1));
}

test("nodes of every kind have the same result, whatever happens on the way", {
  timeout: 120_000,
}, async () => {
  await fc.assert(
    fc.asyncProperty(parts, fates, async (parts, fates) => {
      const start = (): State<Log> => State.create<Log>({ log: [] }, { runId: "r" });
      const calm = new World();
      const undisturbed = await calm.run(
        start(),
        [],
        (config) => graphOf(parts, "n", calm, config),
        effectsIn,
      );
      expect(Object.values(calm.counts.all).every((count) => count === 1)).toBe(true);
      const world = new World();
      const final = await world.run(
        start(),
        fates,
        (config) => graphOf(parts, "n", world, config),
        effectsIn,
      );
      expect(final.data).toEqual(undisturbed.data);
    }),
    { numRuns: 300 },
  );
});
