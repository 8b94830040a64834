import { afterEach, beforeEach, expect, test } from "vitest";
import {
  chain,
  type NodeFunction,
  type NodeOptions,
  parallel,
  State,
  StateGraph,
  subgraph,
} from "waymark";
import { type FakeClock, useFakeClock } from "waymark/testing";
import { progressOf } from "../../src/state/derive.js";
import { gate, RecordingStore } from "../graphs.js";

interface Sum {
  readonly n: number;
}

let clock: FakeClock;
beforeEach(() => {
  clock = useFakeClock();
});
afterEach(() => clock.restore());

const items = [1, 2, 3];

/** A graph of one node; nothing is removed from its store. */
function graphOf(node: NodeFunction<Sum>, store: RecordingStore, options: NodeOptions<Sum>) {
  return new StateGraph<Sum>({ checkpoint: { store, interval: 1, preserve: true } })
    .addNode("only", node, options)
    .setEntryPoint("only")
    .setExitPoint("only");
}

/** What a node of each kind remembers of how far it is. */
const kinds: Readonly<
  Record<string, (work: (n: number) => Promise<void>) => readonly [NodeFunction<Sum>, string]>
> = {
  chain: (work) => [
    chain(items, async (state: State<Sum>, n) => {
      await work(n);
      return { n: state.data.n + n };
    }),
    "chain",
  ],
  parallel: (work) => [
    parallel(
      items,
      async (_state: State<Sum>, n) => {
        await work(n);
        return n;
      },
      { concurrency: 1, merge: (_state, all) => ({ n: all.reduce((sum, n) => sum + n) }) },
    ),
    "results 0.0",
  ],
  subgraph: (work) => {
    const steps = new StateGraph<Sum>()
      .addNode("step", async (state) => {
        const n = state.data.n === 0 ? 1 : state.data.n === 1 ? 2 : 3;
        await work(n);
        return { n: state.data.n + n };
      })
      .addNode("end", (state) => state)
      .addEdge("step", "end", (state) => state.data.n === 6)
      .addEdge("step", "step")
      .setEntryPoint("step")
      .setExitPoint("end");
    return [
      subgraph(steps, { in: ({ data }) => data, out: (_state, { data }) => data }),
      "subgraph",
    ];
  },
};

test.each(Object.entries(kinds))(
  "an abandoned attempt of a %s that ends later changes nothing",
  async (_kind, make) => {
    const store = new RecordingStore();
    const [slow, last] = [gate(), gate()];
    let calls = 0;
    // The first call ignores its signal, and ends while the second attempt is at its last item.
    const [node, key] = make(async (n) => {
      if (++calls === 1) await slow.opened;
      else if (n === 3) await last.opened;
    });
    const known = (): unknown => {
      const state = store.saved.at(-1);
      return state && progressOf(state).unfinished?.results.byKey().get(key);
    };
    const retry = { maxAttempts: 2, initialInterval: 0 };
    const running = graphOf(node, store, { timeout: 100, retry }).execute(
      State.create<Sum>({ n: 0 }, { runId: "r" }),
    );
    await clock.advance(150);
    const before = known();
    expect(before).toBeDefined();
    slow.open();
    await clock.advance(10);
    expect(known()).toBe(before);
    last.open();
    await clock.advance(10);
    expect((await running).data.n).toBe(6);
  },
);

test.each(Object.entries(kinds))(
  "an attempt of a %s that ends after its run causes no unhandled rejection",
  async (_kind, make) => {
    const store = new RecordingStore();
    const slow = gate();
    const [node] = make(() => slow.opened);
    const running = graphOf(node, store, { timeout: 100 }).execute(State.create<Sum>({ n: 0 }));
    const failed = expect(running).rejects.toThrow("took longer than its timeout of 100 ms");
    await clock.advance(150);
    await failed;
    const saves = store.saved.length;
    slow.open();
    // A rejection that nobody handles would fail the test file.
    await clock.advance(10);
    expect(store.saved).toHaveLength(saves);
  },
);
