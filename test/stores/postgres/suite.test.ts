import type pg from "pg";
import { afterAll, beforeAll, test } from "vitest";
import { PostgresStore, type PostgresStoreOptions } from "waymark/stores/postgres";
import { testCheckpointStore } from "waymark/testing";
import { newSchema, type Server, startServer } from "./server.js";

let server: Server;
let pool: pg.Pool;

beforeAll(async () => {
  server = await startServer();
  pool = server.pool();
});

afterAll(() => server.stop());

/** What each client is, asked for when a test begins: by then they are there. */
const clients = {
  "a pool of pg": () => pool,
  "a connection string": () => server.url,
} as const;

function suite(
  client: keyof typeof clients,
  what: string,
  options: Omit<PostgresStoreOptions, "client" | "schema">,
): void {
  const schema = newSchema();
  const open = (): PostgresStore =>
    new PostgresStore({ ...options, client: clients[client](), schema });
  let isMade = false;
  testCheckpointStore({
    name: `PostgresStore on ${client}, ${what}`,
    create: async () => {
      // The tables are made by the first test; to make them for each takes longer than the tests.
      if (isMade)
        await pool.query(`DELETE FROM "${schema}".checkpoints; DELETE FROM "${schema}".runs`);
      isMade = true;
      return open();
    },
    reopen: open,
    test,
  });
}

const encrypt = { keys: { k1: new Uint8Array(32) }, current: "k1" };

suite("a pool of pg", "as it is", {});
const compress = { algorithm: "brotli", threshold: 0 } as const;
suite("a pool of pg", "compressed and encrypted", { codec: { compress, encrypt } });
suite("a pool of pg", "not prepared", { prepare: false, snapshotEvery: 2 });
suite("a connection string", "as it is", {});
