import type pg from "pg";
import { afterAll, afterEach, beforeAll, expect } from "vitest";
import { type NodeFunction, StateGraph } from "waymark";
import { PostgresStore } from "waymark/stores/postgres";
import { Client, Worker, type WorkerOptions } from "waymark/worker";
import { type Server, startServer } from "../stores/postgres/server.js";

/** A server, a store and a client for the tests of a file, and workers in the same process. */
export interface WorkPlace {
  readonly url: string;
  /** Where the queue is: on the same server, unless it is told otherwise. */
  readonly connection: string;
  readonly pool: pg.Pool;
  readonly store: PostgresStore;
  readonly client: Client;
  /** What went wrong beside the runs. */
  readonly errors: unknown[];
  /** How often a worker has taken a run. */
  starts(runId: string): Promise<number>;
  /** A worker that is closed after the test. */
  work(options: Partial<WorkerOptions> & Pick<WorkerOptions, "graphs">): Promise<Worker>;
}

/** @param startQueue - brings another server for the queue. */
export function usePlace(
  startQueue?: () => Promise<{ readonly url: string; stop(): Promise<void> }>,
): WorkPlace {
  const place = { errors: [] as unknown[] } as { -readonly [K in keyof WorkPlace]: WorkPlace[K] };
  const workers: Worker[] = [];
  let server: Server;
  let queue: Awaited<ReturnType<NonNullable<typeof startQueue>>> | undefined;
  beforeAll(async () => {
    server = await startServer();
    queue = await startQueue?.();
    place.url = server.url;
    place.connection = queue?.url ?? server.url;
    place.pool = server.pool();
    place.store = new PostgresStore({ client: place.pool });
    place.client = new Client({
      connection: place.connection,
      store: place.store,
      onError: (error) => place.errors.push(error),
    });
    place.starts = async (runId) => {
      const jobs = "SELECT attempts_started AS n FROM bullmq.job WHERE id = $1";
      return Number((await place.pool.query(jobs, [runId])).rows[0].n);
    };
    place.work = async (options) => {
      const worker = new Worker({
        store: place.store,
        connection: place.connection,
        lease: 2000,
        backoff: 20,
        onError: (error) => place.errors.push(error),
        ...options,
      });
      workers.push(worker);
      await worker.ready();
      return worker;
    };
  }, 60_000);
  afterEach(async () => {
    expect(place.errors.splice(0)).toEqual([]);
    await Promise.all(workers.splice(0).map((worker) => worker.close()));
  });
  afterAll(async () => {
    await place.client.close();
    await place.store.close();
    await server.stop();
    await queue?.stop();
  });
  return place;
}

export interface Count {
  readonly n: number;
}

let graphs = 0;

/** A graph of one node, in a queue of its own. */
export function single(node: NodeFunction<Count>, name = `graph ${++graphs}`) {
  return new StateGraph<Count>({ name })
    .addNode("only", node)
    .setEntryPoint("only")
    .setExitPoint("only");
}

/** A promise, and the way to keep it. */
export function gate(): { opened: Promise<void>; open: () => void } {
  let open = (): void => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open };
}
