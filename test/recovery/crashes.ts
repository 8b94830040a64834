import {
  type CheckpointStore,
  type Claim,
  MemoryStore,
  type NodeFunction,
  recoverRuns,
} from "waymark";
import type { RecoverOptions } from "../../src/recovery/recover-runs.js";
import { linear, mark, RecordingStore, start, type Trail } from "../graphs.js";

/** What a new process finds in a store: all that was saved, and nobody's claims. */
export function restarted(store: CheckpointStore): CheckpointStore {
  const claims = new MemoryStore();
  return {
    save: (state, options) => store.save(state, options),
    load: (runId, at, context) => store.load(runId, at, context),
    delete: (runId) => store.delete(runId),
    list: () => store.list(),
    history: async (runId) => (await store.history?.(runId)) ?? [],
    runs: async (filter) => (await store.runs?.(filter)) ?? [],
    claim: (runId): Promise<Claim | undefined> => claims.claim(runId),
  };
}

/** What a node does at its n-th call: works, throws, or takes the process with it. */
export type Behaviour = "work" | "throw" | "crash";

/** a → b → c in a store, of which `b` behaves as it is told, call by call, and then works. */
export function world(...behaviours: Behaviour[]) {
  const store = new RecordingStore();
  const ran: string[] = [];
  const step: NodeFunction<Trail> = (state, context) => {
    ran.push(context.node);
    const behaviour = context.node === "b" ? behaviours.shift() : "work";
    if (behaviour === "throw") throw new Error("boom");
    return behaviour === "crash" ? new Promise(() => {}) : mark(state, context);
  };
  /** The graph of a process that starts now. */
  const graphIn = (opened: CheckpointStore, name = "trail") =>
    linear(
      ["a", "b", "c"],
      { name, checkpoint: { store: opened, interval: 1, preserve: true } },
      { a: step, b: step, c: step },
    );
  /** Starts a process that recovers; gives what it reports, nothing when it dies at it. */
  const recover = async (options: Partial<RecoverOptions> = {}): ReturnType<typeof recoverRuns> => {
    const opened = restarted(store);
    const recovering = recoverRuns({ store: opened, graphs: [graphIn(opened)], ...options });
    const died = settled().then(() => []);
    return Promise.race([recovering, died]);
  };
  /** Starts the run `r`, which may die. */
  const begin = async (): Promise<void> => {
    const running = graphIn(restarted(store))
      .execute(start("r"))
      .catch(() => {});
    await Promise.race([running, settled()]);
  };
  return { store, ran, graphIn, recover, begin };
}

/** Lets everything happen that needs no more time. */
export async function settled(): Promise<void> {
  for (let turn = 0; turn < 10; turn++) await new Promise(setImmediate);
}
