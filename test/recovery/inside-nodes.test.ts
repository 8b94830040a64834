import { describe, expect, test } from "vitest";
import {
  type CheckpointAt,
  type CheckpointStore,
  chain,
  type NodeFunction,
  parallel,
  recoverRuns,
  State,
  StateGraph,
  subgraph,
} from "waymark";
import { linear, RecordingStore, start, type Trail } from "../graphs.js";
import { restarted, settled } from "./crashes.js";

/** Gives what a file would: of what was saved, only what is in its JSON. */
class WrittenStore extends RecordingStore {
  override async load<D extends object>(runId: string, at?: CheckpointAt): Promise<State<D>> {
    const loaded = await super.load<D>(runId, at);
    return State.fromJSON<D>(JSON.stringify(loaded));
  }
}

const numbers = (length: number): number[] => Array.from({ length }, (_, index) => index);

/** A graph of `rounds` steps that each do `work`. */
function rounds(count: number, work: () => unknown) {
  return new StateGraph<{ n: number }>()
    .addNode("round", async (state) => {
      await work();
      return { n: state.data.n + 1 };
    })
    .addNode("end", (state) => state)
    .addEdge("round", "round", (state) => state.data.n < count)
    .addEdge("round", "end")
    .setEntryPoint("round")
    .setExitPoint("end");
}

const inner = (count: number, work: () => unknown): NodeFunction<Trail> =>
  subgraph(rounds(count, work), {
    in: () => ({ n: 0 }),
    out: (state) => state,
  });

/** before → a, of which `a` works through its parts; a process dies in the fifth that it begins. */
const nodes: Readonly<Record<string, (work: () => unknown) => NodeFunction<Trail>>> = {
  chain: (work) =>
    chain(numbers(20), async (state) => {
      await work();
      return state;
    }),
  subgraph: (work) => inner(20, work),
  "chain in a subgraph": (work) => {
    const steps = new StateGraph<{ n: number }>()
      .addNode(
        "steps",
        chain(numbers(20), async (state) => {
          await work();
          return state;
        }),
      )
      .setEntryPoint("steps")
      .setExitPoint("steps");
    return subgraph(steps, { in: () => ({ n: 0 }), out: (state) => state });
  },
  // So many that their results are put together, which makes fewer keys of them.
  "parallel node": (work) =>
    parallel(
      numbers(2000),
      async (_state, item) => {
        if (item % 100 === 99) await work();
        return item;
      },
      { concurrency: 1 },
    ),
};

describe("a run that crashes repeatedly but progresses counts its attempts from zero", () => {
  test.each(Object.keys(nodes))("inside a %s", async (name) => {
    const store = new WrittenStore();
    const ran: string[] = [];
    let alive = 4;
    const work = (): unknown => (alive-- > 0 ? undefined : new Promise(() => {}));
    const graphIn = (opened: CheckpointStore) =>
      linear(
        ["before", "a"],
        { checkpoint: { store: opened, interval: 1, preserve: true } },
        {
          before: (state) => {
            ran.push("before");
            return state;
          },
          a: nodes[name]?.(work) ?? ((state) => state),
        },
      );
    const died = async (): Promise<never[]> => {
      for (let turn = 0; turn < 30; turn++) await settled();
      return [];
    };
    void graphIn(restarted(store)).execute(start("r"));
    await died();
    let reports: unknown[] = [];
    for (let process = 0; process < 4; process++) {
      alive = 4;
      const opened = restarted(store);
      const recovering = recoverRuns({ store: opened, graphs: [graphIn(opened)] });
      reports = await Promise.race([recovering, died()]);
    }
    expect(reports).toMatchObject([{ outcome: "completed", attempts: 1, fellBack: false }]);
    expect(ran).toEqual(["before"]);
  });
});

describe("a run without progress is given up", () => {
  test("even if its inner run saves each failure", async () => {
    const store = new WrittenStore();
    const fails = (): never => {
      throw new Error("boom");
    };
    const config = { checkpoint: { store, interval: 1 } };
    const graph = linear(["a"], config, { a: inner(3, fails) });
    await expect(graph.execute(start("r"))).rejects.toThrow("boom");
    const outcomes: unknown[] = [];
    for (let process = 0; process < 3; process++) {
      const [report] = await recoverRuns({ store, graphs: [graph] });
      outcomes.push([report?.outcome, report?.attempts]);
    }
    expect(outcomes).toEqual([
      ["failed", 1],
      ["failed", 2],
      ["gave-up", 3],
    ]);
  });

  test("even if it replaces remembered values and sets a milestone before each crash", async () => {
    const store = new WrittenStore();
    let deaths = 0;
    const node: NodeFunction<Trail> = async (state, context) => {
      await context.remember("deaths", deaths++);
      await context.checkpoint(state.set("trail", [`death ${deaths}`]), "before it");
      return new Promise(() => {});
    };
    const graphIn = (opened: CheckpointStore) =>
      linear(["a"], { checkpoint: { store: opened, interval: 1 } }, { a: node });
    void graphIn(restarted(store)).execute(start("r"));
    await settled();
    let reports: unknown[] = [];
    for (let process = 0; process < 4; process++) {
      const opened = restarted(store);
      const recovering = recoverRuns({ store: opened, graphs: [graphIn(opened)] });
      reports = await Promise.race([recovering, settled().then(() => [])]);
    }
    expect(reports).toMatchObject([{ outcome: "gave-up", attempts: 3 }]);
    expect(deaths).toBe(4);
  });
});

test("a checkpoint of an older version without a count counts the results it holds", () => {
  const { unfinished, ...json } = State.create({ n: 1 }).toJSON();
  expect(unfinished).toBeUndefined();
  const results = { one: 1, two: 2 };
  const old = State.fromJSON({ ...json, unfinished: { node: "a", results } });
  expect(old.toJSON().unfinished?.count).toBe(2);
  const newer = State.fromJSON({ ...json, unfinished: { node: "a", results, count: 7 } });
  expect(newer.toJSON().unfinished).toEqual({ node: "a", results, count: 7 });
});
