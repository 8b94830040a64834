import {
  type AnyEvent,
  type GraphConfig,
  MemoryStore,
  type NodeFunction,
  type NodeOptions,
  type SaveOptions,
  type State,
  StateGraph,
} from "waymark";

/** A graph of one node, `work`. */
export function only<D extends object>(
  node: NodeFunction<D>,
  config: GraphConfig<D> = {},
  options: NodeOptions<D> = {},
): StateGraph<D, string> {
  return new StateGraph<D, string>(config)
    .addNode("work", node, options)
    .setEntryPoint("work")
    .setExitPoint("work");
}

/** A graph's events of these families, from now on. */
export function eventsOf<D extends object>(
  graph: StateGraph<D, string>,
  ...families: readonly string[]
): AnyEvent[] {
  const events: AnyEvent[] = [];
  graph.on("*", (event) => {
    if (families.includes(event.type.split(".")[0] ?? "")) events.push(event);
  });
  return events;
}

/** Each event as its type and some fields of its data. */
export function brief(events: readonly AnyEvent[], ...fields: readonly string[]): string[] {
  return events.map(({ type, data }) =>
    [type as AnyEvent["type"], ...fields.map((field) => String(Reflect.get(data, field) ?? ""))]
      .join(" ")
      .trim(),
  );
}

/** A store as a process sees it that dies: after so many saves none comes through any more. */
export class MortalStore extends MemoryStore {
  readonly #inner: MemoryStore;
  /** How many saves came through. */
  saves = 0;
  /** How many more come through. */
  left: number;

  constructor(inner: MemoryStore, left = Number.POSITIVE_INFINITY) {
    super();
    this.#inner = inner;
    this.left = left;
  }

  override async save<D extends object>(state: State<D>, options?: SaveOptions): Promise<State<D>> {
    if (this.left <= 0) throw new Error("the process is dead");
    this.left--;
    this.saves++;
    return this.#inner.save(state, options);
  }

  override load: MemoryStore["load"] = (runId, at) => this.#inner.load(runId, at);
  override delete: MemoryStore["delete"] = (runId) => this.#inner.delete(runId);
  override history: MemoryStore["history"] = (runId) => this.#inner.history(runId);
}

/** What the newest checkpoint of a run remembers of the node that it is in. */
export async function remembered(
  store: MemoryStore,
  runId: string,
): Promise<Readonly<Record<string, unknown>>> {
  const { unfinished } = (await store.load(runId)).toJSON();
  return (unfinished?.results ?? {}) as Readonly<Record<string, unknown>>;
}

/** Which items of a parallel node the newest checkpoint of a run has the results of. */
export async function finishedItems(store: MemoryStore, runId: string): Promise<number[]> {
  const results = await remembered(store, runId);
  return Object.entries(results)
    .filter(([key]) => /^results \d+/.test(key))
    .flatMap(([, piece]) => Object.keys(piece as object).map(Number))
    .sort((one, other) => one - other);
}

/** Counts by name. */
export class Counts {
  readonly #counts = new Map<string, number>();

  add(name: string | number): void {
    this.#counts.set(String(name), this.of(name) + 1);
  }

  of(name: string | number): number {
    return this.#counts.get(String(name)) ?? 0;
  }

  get all(): Readonly<Record<string, number>> {
    return Object.fromEntries(this.#counts);
  }
}
