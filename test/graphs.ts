import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import {
  type AnyEvent,
  type CheckpointStore,
  type Claim,
  ExecutionError,
  type GraphConfig,
  MemoryStore,
  type NodeFunction,
  type SaveOptions,
  State,
  StateGraph,
} from "waymark";

/** Data that says which nodes made it. */
export interface Trail {
  readonly trail: readonly string[];
}

/** A State that no node has seen. */
export function start(runId?: string): State<Trail> {
  return State.create<Trail>({ trail: [] }, runId === undefined ? {} : { runId });
}

/** A node that adds its own name to the trail. */
export const mark: NodeFunction<Trail> = (state, { node }) => ({
  trail: [...state.data.trail, node],
});

/** A graph whose nodes run one after the other, each a `mark` unless another function is given for it. */
export function linear(
  names: readonly string[],
  config: GraphConfig<Trail> = {},
  nodes: Readonly<Record<string, NodeFunction<Trail>>> = {},
): StateGraph<Trail, string> {
  const graph = new StateGraph<Trail, string>(config);
  for (const name of names) graph.addNode(name, nodes[name] ?? mark);
  for (const [at, to] of names.slice(1).entries()) graph.addEdge(names[at] ?? "", to);
  return graph.setEntryPoint(names[0] ?? "").setExitPoint(names.at(-1) ?? "");
}

/** A graph in which `tick` runs `rounds` times before `done`. */
export function cycle(rounds: number, config: GraphConfig<Trail> = {}): StateGraph<Trail, string> {
  return new StateGraph<Trail, string>(config)
    .addNode("tick", mark)
    .addNode("done", mark)
    .addEdge("tick", "tick", (state) => state.data.trail.length < rounds, "again")
    .addEdge("tick", "done")
    .setEntryPoint("tick")
    .setExitPoint("done");
}

/** A memory store that remembers each acknowledged save, and can be made to fail, to wait or to lose its writers. */
export class RecordingStore extends MemoryStore {
  #claims: Claim[] = [];
  /** What was saved, in order. */
  readonly saved: State<Trail>[] = [];
  /** Called before each save; what it throws, the save throws. */
  beforeSave: (state: State<Trail>) => unknown = () => {};
  /** Called once the State is in the store; what it throws, the save throws all the same. */
  afterSave: (state: State<Trail>) => unknown = () => {};

  constructor() {
    super({ keep: Number.POSITIVE_INFINITY });
  }

  override async save<D extends object>(state: State<D>, options?: SaveOptions): Promise<State<D>> {
    await this.beforeSave(state as unknown as State<Trail>);
    const saved = await super.save(state, options);
    const seen = saved as unknown as State<Trail>;
    this.saved.push(seen);
    await this.afterSave(seen);
    return saved;
  }

  override async claim(runId: string): Promise<Claim | undefined> {
    const claim = await super.claim(runId);
    if (claim !== undefined) this.#claims.push(claim);
    return claim;
  }

  /** The processes that work on runs have died: their claims end, though what they left may still move here. */
  async forgetClaims(): Promise<void> {
    for (const claim of this.#claims.splice(0)) await claim.release();
  }

  /** Each save as `reason:node@step`. */
  get log(): string[] {
    return this.saved.map(
      ({ reason, checkpointNode, step }) => `${reason}:${checkpointNode}@${step}`,
    );
  }
}

/** A store in which run `r` of a linear graph stopped in this node, which did not complete. */
export async function stoppedRun(
  names: readonly string[],
  node: string,
  config: GraphConfig<Trail> = {},
): Promise<RecordingStore> {
  const store = new RecordingStore();
  const fails: NodeFunction<Trail> = () => {
    throw new Error("stop");
  };
  const graph = linear(names, { ...config, checkpoint: { store, interval: 1 } }, { [node]: fails });
  await rejection(graph.execute(start("r")), ExecutionError);
  return store;
}

/** A linear graph whose run `r` is done and kept, and the ids of its checkpoints, oldest first. */
export async function finishedRun(names: readonly string[]) {
  const store = new RecordingStore();
  const graph = linear(names, { checkpoint: { store, interval: 1, preserve: true } });
  const final = await graph.execute(start("r"));
  const ids = store.saved.map(({ checkpointId }) => checkpointId);
  return { store, graph, final, ids };
}

/** Only what every store has, none of the optional methods. */
export function bare(store: CheckpointStore): CheckpointStore {
  return {
    save: (state, options) => store.save(state, options),
    load: (runId, at, context) => store.load(runId, at, context),
    delete: (runId) => store.delete(runId),
    list: () => store.list(),
  };
}

/** A promise that the test settles. */
export interface Gate {
  readonly opened: Promise<void>;
  open(): void;
}

export function gate(): Gate {
  let open = (): void => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open };
}

/** The error that a promise rejects with, which must be of this very class. */
export async function rejection<E>(
  promise: Promise<unknown>,
  type: abstract new (...args: never[]) => E,
): Promise<E> {
  const settled = await promise.then(
    (value) => ({ value }),
    (error: unknown) => ({ error }),
  );
  return thrown(() => {
    if ("error" in settled) throw settled.error;
  }, type);
}

/** The error that a function throws, which must be of this very class. */
export function thrown<E>(action: () => unknown, type: abstract new (...args: never[]) => E): E {
  try {
    action();
  } catch (error) {
    if (error instanceof type && Object.getPrototypeOf(error) === type.prototype) return error;
    throw error;
  }
  throw new Error(`no ${type.name} was thrown`);
}

/** All events of a graph from now on. */
export function listen(graph: StateGraph<Trail, string>): AnyEvent[] {
  const events: AnyEvent[] = [];
  graph.on("*", (event) => events.push(event));
  return events;
}

/** The types of events, those of States left out. */
export function typesOf(events: readonly AnyEvent[]): AnyEvent["type"][] {
  return events.map(({ type }) => type).filter((type) => !type.startsWith("state."));
}

/** Lets go of all that nobody holds any more. */
export async function collectGarbage(): Promise<void> {
  setFlagsFromString("--expose-gc");
  // What a WeakRef was made of or asked for lives until the current job is over.
  await new Promise((resolve) => setImmediate(resolve));
  (runInNewContext("gc") as () => void)();
}
