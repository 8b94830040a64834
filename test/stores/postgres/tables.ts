import type pg from "pg";
import { afterAll, afterEach, beforeAll, beforeEach } from "vitest";
import { State } from "waymark";
import { PostgresStore, type PostgresStoreOptions } from "waymark/stores/postgres";
import { recordOf, stateOf } from "../../../src/state/state.js";
import { newSchema, type Server, startServer } from "./server.js";

/** What the runs of these tests are about. */
export interface Notes {
  readonly n: number;
  readonly text?: string;
}

/** A State that was never saved. */
export const start = (runId = "run", data: Notes = { n: 0 }): State<Notes> =>
  State.create<Notes>(data, { runId });

/** A server for the tests of a file, and for each test tables of its own. */
export class Tables {
  readonly #stores: PostgresStore[] = [];
  #server: Server | undefined;
  #pool: pg.Pool | undefined;
  /** The schema of the test that runs. */
  schema = "";

  /** Starts the server before the tests of this file, and stops it after them. */
  static use(): Tables {
    const tables = new Tables();
    beforeAll(async () => {
      tables.#server = await startServer();
      tables.#pool = tables.#server.pool();
    });
    beforeEach(() => {
      tables.schema = newSchema();
    });
    afterEach(async () => {
      for (const store of tables.#stores.splice(0)) await store.close();
    });
    afterAll(() => tables.#server?.stop());
    return tables;
  }

  get server(): Server {
    if (this.#server === undefined) throw new Error("it starts before the first test");
    return this.#server;
  }

  get pool(): pg.Pool {
    if (this.#pool === undefined) throw new Error("it is made before the first test");
    return this.#pool;
  }

  /** A store on the schema, closed after the test. */
  open(options: Partial<PostgresStoreOptions> = {}): PostgresStore {
    const store = new PostgresStore({ client: this.pool, schema: this.schema, ...options });
    this.#stores.push(store);
    return store;
  }

  /** Asks the database itself, past the store; `$schema` stands for the schema. */
  async ask(text: string, params: unknown[] = []): Promise<Record<string, unknown>[]> {
    const schema = `"${this.schema.replaceAll('"', '""')}"`;
    const { rows } = await this.pool.query(text.replaceAll("$schema", schema), params);
    return rows;
  }

  /** The sequences that have a row. */
  async stored(): Promise<number[]> {
    const rows = await this.ask("SELECT sequence FROM $schema.checkpoints ORDER BY 1");
    return rows.map((row) => Number(row.sequence));
  }
}

/** The State after one more step, with another `n`. */
export function stepTo(state: State<Notes>, n: number): State<Notes> {
  const record = recordOf(state.set("n", n));
  const { progress } = record;
  return stateOf({ ...record, progress: { ...progress, step: progress.step + 1 } });
}

/** Saves so many steps of the run "run", with `n` from 1 up. */
export async function saveSteps(
  store: PostgresStore,
  times: number,
  data: Notes = { n: 0 },
): Promise<State<Notes>> {
  let state = start("run", data);
  for (let n = 1; n <= times; n++) state = await store.save(stepTo(state, n));
  return state;
}

/** The State as the last of its run. */
export function ended(state: State<Notes>): State<Notes> {
  const record = recordOf(stepTo(state, state.data.n));
  return stateOf({ ...record, progress: { ...record.progress, status: "completed" } });
}

/** The sequences of the run "run" that are kept, newest first. */
export async function sequencesOf(store: PostgresStore): Promise<number[]> {
  return (await store.history("run")).map(({ sequence }) => sequence);
}
