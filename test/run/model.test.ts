import * as fc from "fast-check";
import { expect, test } from "vitest";
import {
  type CheckpointAt,
  CheckpointConflictError,
  type NodeContext,
  State,
  StateGraph,
} from "waymark";
import { gate, RecordingStore, rejection, type Trail } from "../graphs.js";

/**
 * The model is one undisturbed run. Against it stand runs of the same random graph that are thrown
 * out of nodes, cancelled, refused by their store or left for dead at random places, each time taken
 * up by a new graph that knows nothing but what the store holds as text.
 */
interface Work extends Trail {
  readonly x: number;
}

interface NodePlan {
  readonly factor: number;
  readonly plus: number;
  readonly async: boolean;
  readonly exit: boolean;
  readonly edges: readonly {
    readonly to: number;
    readonly modulus: number;
    readonly remainder: number;
  }[];
}

/** What goes wrong in one attempt, at its `at`-th node or save. */
interface Trouble {
  readonly kind:
    | "throw"
    | "abort"
    | "abort inside"
    | "save refused"
    | "answer lost"
    | "left for dead";
  readonly at: number;
}

const nodePlans = fc.array(
  fc.record<NodePlan>({
    factor: fc.integer({ min: 1, max: 50 }),
    plus: fc.nat(1000),
    async: fc.boolean(),
    exit: fc.integer({ min: 0, max: 9 }).map((n) => n === 0),
    edges: fc.array(
      fc.record({ to: fc.nat(6), modulus: fc.integer({ min: 1, max: 4 }), remainder: fc.nat(3) }),
      { maxLength: 3 },
    ),
  }),
  { minLength: 1, maxLength: 6 },
);

const troubles = fc.array(
  fc.record<Trouble>({
    kind: fc.constantFrom(
      "throw",
      "abort",
      "abort inside",
      "save refused",
      "answer lost",
      "left for dead",
    ),
    at: fc.nat(5),
  }),
  { maxLength: 10 },
);

/** While there is fuel, edges choose by the data; after that every node leads to the next, and so to the end. */
const FUEL = 14;

type Before = (context: NodeContext) => unknown;

function graphOf(plans: readonly NodePlan[], before: Before, store?: RecordingStore, interval = 0) {
  const checkpoint = store === undefined ? {} : { store, interval, preserve: true };
  const graph = new StateGraph<Work, string>({ checkpoint });
  for (const [at, { factor, plus, async }] of plans.entries()) {
    const work = ({ data: { x, trail } }: State<Work>) => ({
      x: (x * factor + plus) % 1009,
      trail: [...trail, `n${at}`],
    });
    graph.addNode(`n${at}`, (state, context) => {
      const wait = before(context);
      return async || wait instanceof Promise
        ? Promise.resolve(wait).then(() => work(state))
        : work(state);
    });
  }
  graph.addNode("end", (state, context) => {
    const wait = before(context);
    return wait instanceof Promise ? wait.then(() => state) : state;
  });
  const name = (at: number): string => (at < plans.length ? `n${at}` : "end");
  for (const [at, { edges, exit }] of plans.entries()) {
    for (const { to, modulus, remainder } of edges) {
      const takes = ({ data: { x, trail } }: State<Work>) =>
        trail.length < FUEL && x % modulus === remainder % modulus;
      graph.addEdge(name(at), name(to), takes);
    }
    graph.addEdge(name(at), name(at + 1));
    if (exit) graph.setExitPoint(name(at));
  }
  return graph.setEntryPoint("n0").setExitPoint("end");
}

/** Gives back what a file would. */
class TextStore extends RecordingStore {
  override async load<D extends object>(runId: string, at?: CheckpointAt): Promise<State<D>> {
    return State.fromJSON<D>(JSON.stringify(await super.load<D>(runId, at)));
  }

  /** How many nodes are acknowledged. */
  get acknowledged(): number {
    return this.saved.at(-1)?.step ?? 0;
  }
}

class Crash extends Error {}

/** One attempt, disturbed or not; the final State if it got there. */
async function attempt(
  trouble: Trouble | undefined,
  store: TextStore,
  build: (before: Before) => StateGraph<Work, string>,
  initial: State<Work>,
  ran: (context: NodeContext) => void,
): Promise<{ final?: State<Work>; zombie?: { running: Promise<unknown>; wake: () => void } }> {
  const controller = new AbortController();
  const wake = gate();
  const dead = gate();
  let nodes = 0;
  let saves = 0;
  const due = (kind: Trouble["kind"], count: number): boolean =>
    trouble?.kind === kind && trouble.at === count;
  store.beforeSave = () => {
    if (due("save refused", saves)) throw new Crash();
  };
  store.afterSave = () => {
    if (due("answer lost", saves++)) throw new Crash();
  };
  let isZombie = false;
  const before: Before = (context) => {
    if (isZombie) return undefined;
    ran(context);
    const count = nodes++;
    if (due("throw", count)) throw new Crash();
    if (due("abort", count)) controller.abort();
    if (due("abort inside", count)) {
      controller.abort();
      context.signal.throwIfAborted();
    }
    if (!due("left for dead", count)) return undefined;
    isZombie = true;
    dead.open();
    return wake.opened;
  };
  const running = build(before).resumeOrStart(initial, { signal: controller.signal });
  const outcome = await Promise.race([
    running.catch((error: { cause?: unknown }) => {
      // Anything but the trouble that was made is a bug.
      if (!(error.cause instanceof Crash) && error.cause !== controller.signal.reason) throw error;
    }),
    dead.opened,
  ]);
  if (isZombie) return { zombie: { running, wake: wake.open } };
  return outcome instanceof State ? { final: outcome } : {};
}

test("a run stopped anywhere and resumed ends like an undisturbed one", async () => {
  const law = async (
    plans: NodePlan[],
    x: number,
    interval: number,
    troublesToCome: Trouble[],
  ): Promise<void> => {
    const initial = State.create<Work>({ x, trail: [] });
    const order: string[] = [];
    const model = await graphOf(plans, ({ node }) => order.push(node)).execute(initial);

    const store = new TextStore();
    const attempted: string[] = [];
    const ran = ({ node, step }: NodeContext): void => {
      expect(step).toBeGreaterThanOrEqual(store.acknowledged);
      attempted[step] = node;
    };
    const build = (before: Before) => graphOf(plans, before, store, interval);
    const zombies: { running: Promise<unknown>; wake: () => void }[] = [];
    let final: State<Work> | undefined;
    for (const trouble of [...troublesToCome, undefined]) {
      const outcome = await attempt(trouble, store, build, initial, ran);
      expect(attempted.slice(0, store.acknowledged)).toEqual(order.slice(0, store.acknowledged));
      if (outcome.zombie !== undefined) {
        zombies.push(outcome.zombie);
        await store.forgetClaims();
      }
      final = outcome.final;
      if (final !== undefined) break;
    }

    expect(final?.data).toEqual(model.data);
    expect(attempted).toEqual(order);
    expect(final?.status).toBe("completed");
    expect(final?.step).toBe(model.step);
    expect(final?.checkpointNode).toBe(model.checkpointNode);
    expect(final?.visits).toEqual(model.visits);
    // Its record is that of an undisturbed run, but for how often each node was tried.
    expect(final?.steps.map(({ node, step }) => `${step} ${node}`)).toEqual(
      order.map((node, at) => `${at + 1} ${node}`),
    );
    for (const [node, { visits, attempts, durationMs }] of Object.entries(final?.totals ?? {})) {
      const steps = final?.steps.filter((step) => step.node === node) ?? [];
      expect(visits).toBe(model.visits[node]);
      expect(attempts).toBe(steps.reduce((sum, step) => sum + step.attempts, 0));
      expect(durationMs).toBe(steps.reduce((sum, step) => sum + step.durationMs, 0));
    }

    // Those left for dead wake up: they lose, and what is in the store stays.
    const saves = store.saved.length;
    store.beforeSave = () => {};
    store.afterSave = () => {};
    for (const { running, wake } of zombies) {
      wake();
      await rejection(running, CheckpointConflictError);
    }
    expect(store.saved).toHaveLength(saves);
    expect(store.saved.map(({ sequence }) => sequence)).toEqual(store.saved.map((_, at) => at + 1));
    const again = await build(() => expect.unreachable()).resumeOrStart(initial);
    expect(again.data).toEqual(model.data);
  };
  const cases = fc.asyncProperty(
    nodePlans,
    fc.nat(1008),
    fc.integer({ min: 1, max: 4 }),
    troubles,
    law,
  );
  await fc.assert(cases, { numRuns: 300 });
});
