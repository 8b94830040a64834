import fc from "fast-check";
import { expect, test } from "vitest";
import {
  type CheckpointStore,
  type NodeContext,
  type NodeFunction,
  type NodeOptions,
  State,
  StateGraph,
} from "waymark";
import { progressOf } from "../../src/state/derive.js";
import { RecordingStore, start, type Trail } from "../graphs.js";

/** One thing that a node does. */
type Op =
  | { readonly op: "once" | "milestone" | "fail"; readonly key: string }
  | { readonly op: "together"; readonly keys: readonly string[] }
  | { readonly op: "pause"; readonly key: string; readonly ask: boolean };

const key = fc.constantFrom("a", "b", "c");
const op: fc.Arbitrary<Op> = fc.oneof(
  fc.record({ op: fc.constantFrom("once" as const, "milestone" as const, "fail" as const), key }),
  fc.record({ op: fc.constant("together" as const), keys: fc.uniqueArray(key) }),
  fc.record({ op: fc.constant("pause" as const), key, ask: fc.boolean() }),
);
const script = fc.array(op, { maxLength: 5 });

/** What is outside of the processes: effects, services that are down for a while, and death. */
class World {
  readonly store = new RecordingStore();
  readonly effects = new Map<string, number>();
  /** How often an effect may have happened, because its process died before its result was saved. */
  readonly allowed = new Map<string, number>();
  /** The effects of this process whose results are not saved. */
  readonly #unsaved = new Set<string>();
  readonly #failed = new Set<string>();
  readonly #lives: number[];
  #left = 0;
  #die: () => void = () => {};

  constructor(lives: readonly number[]) {
    this.#lives = [...lives];
  }

  /** Starts a process; resolves to `undefined` when it dies. */
  async process<T>(work: (store: CheckpointStore) => Promise<T>): Promise<T | undefined> {
    this.#left = this.#lives.shift() ?? Number.POSITIVE_INFINITY;
    let dead = false;
    const died = new Promise<undefined>((resolve) => {
      this.#die = () => {
        dead = true;
        resolve(undefined);
      };
    });
    const { store } = this;
    const working = work({
      save: async (state, options) => {
        if (dead) await new Promise(() => {});
        const saved = await store.save(state, options);
        for (const key of progressOf(saved).unfinished?.results.byKey().keys() ?? []) {
          this.#unsaved.delete(`${saved.step} ${key}`);
        }
        return saved;
      },
      load: (runId, at) => store.load(runId, at),
      delete: (runId) => store.delete(runId),
      list: () => store.list(),
    });
    return Promise.race([working, died]);
  }

  /** A moment in which the process may die. */
  async moment(): Promise<void> {
    if (this.#left-- > 0) return;
    for (const id of this.#unsaved) this.allowed.set(id, (this.allowed.get(id) ?? 1) + 1);
    this.#unsaved.clear();
    this.#die();
    await new Promise(() => {});
  }

  async effect(id: string): Promise<string> {
    this.effects.set(id, (this.effects.get(id) ?? 0) + 1);
    this.#unsaved.add(id);
    await this.moment();
    return `<${id}>`;
  }

  /** Fails the first time. */
  call(id: string): void {
    if (this.#failed.has(id)) return;
    this.#failed.add(id);
    throw new Error(`${id} is down`);
  }
}

/** A node that follows a script. */
function nodeOf(ops: readonly Op[], world: World): NodeFunction<Trail> {
  return async (given, context) => {
    let state = given;
    const results: string[] = [];
    const once = async (key: string): Promise<void> => {
      const id = `${context.step} ${key}`;
      results.push(await context.once(key, () => world.effect(id)));
    };
    for (const [index, one] of ops.entries()) {
      await world.moment();
      const id = `${context.node} ${index}`;
      if (one.op === "once") await once(one.key);
      else if (one.op === "together") await Promise.all(one.keys.map(once));
      else if (one.op === "fail") world.call(id);
      else if (one.op === "pause") results.push(String(await pauseFor(context, one.key, one.ask)));
      else if (!state.data.trail.includes(id)) {
        state = await context.checkpoint(state.set("trail", [...state.data.trail, id]), one.key);
      }
    }
    await world.moment();
    return { trail: [...state.data.trail, ...results.sort()] };
  };
}

const pauseFor = (context: NodeContext<Trail>, name: string, ask: boolean) =>
  context.pause(name, ask ? { reason: name, ask: true } : { reason: name });

const options: NodeOptions<Trail> = { retry: { maxAttempts: 2, initialInterval: 0 } };

/** Runs scripts to their end, in as many processes as it takes. */
async function finalTrail(scripts: readonly (readonly Op[])[], world: World): Promise<unknown> {
  for (let processes = 0; processes < 500; processes++) {
    const final = await world
      .process(async (store) => {
        const graph = new StateGraph<Trail, string>({
          checkpoint: { store, interval: 1, preserve: true },
        });
        for (const [index, ops] of scripts.entries()) {
          graph.addNode(`n${index}`, nodeOf(ops, world), options);
          if (index > 0) graph.addEdge(`n${index - 1}`, `n${index}`);
        }
        graph.setEntryPoint("n0").setExitPoint(`n${scripts.length - 1}`);
        const found = await store.load<Trail>("r").catch(() => undefined);
        if (found === undefined) return graph.execute(start("r"));
        return graph.resume("r", { input: answerTo(found) });
      })
      .catch(() => undefined);
    if (final?.status === "completed") return final.data.trail;
  }
  throw new Error("no end in sight");
}

function answerTo({ pauses }: State<Trail>): unknown {
  return pauses.some(({ ask }) => ask !== undefined) ? `answer to ${pauses[0]?.name}` : undefined;
}

test("any nodes with crashes anywhere give the result of an undisturbed run", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(script, { minLength: 1, maxLength: 3 }),
      fc.array(fc.nat({ max: 12 }), { maxLength: 8 }),
      async (scripts, lives) => {
        const calm = new World([]);
        const expected = await finalTrail(scripts, calm);
        const world = new World(lives);
        expect(await finalTrail(scripts, world)).toEqual(expected);
        for (const [id, times] of world.effects) {
          expect(times, id).toBeLessThanOrEqual(world.allowed.get(id) ?? 1);
        }
        expect([...world.effects.keys()].sort()).toEqual([...calm.effects.keys()].sort());
        for (const times of calm.effects.values()) expect(times).toBe(1);
        const saved = await world.store.load<Trail>("r");
        expect(State.fromJSON<Trail>(JSON.stringify(saved)).data).toEqual(saved.data);
      },
    ),
    { numRuns: 300 },
  );
});
