import pg from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { CheckpointSaveError, State } from "waymark";
import { PostgresStore } from "waymark/stores/postgres";
import { rejection } from "../../graphs.js";
import { startProxy } from "../../proxy.js";
import { newSchema, type Server, startServer } from "./server.js";

let server: Server;
beforeAll(async () => {
  server = await startServer();
});
afterAll(() => server.stop());

const start = (): State<{ n: number }> => State.create({ n: 0 }, { runId: "run" });

/** Time enough to connect and to answer, also on a busy machine. */
const statementTimeout = 1500;

// They only wait, so they do it at the same time.
test.concurrent.each([
  ["an address", (url: string) => url],
  // It waits for a connection without a limit.
  ["the user's own pool", (url: string) => new pg.Pool({ connectionString: url })],
])("a silent connection fails the save, and the next connection works: %s", async (_, make) => {
  const proxy = await startProxy(server.url);
  const client = make(proxy.url);
  const schema = newSchema();
  const store = new PostgresStore({ client, schema, statementTimeout, retryFor: 0 });
  try {
    const first = await store.save(start());
    proxy.silence();
    const error = await rejection(store.save(first.set("n", 1)), CheckpointSaveError);
    expect(error.message).toMatch(/may not have been saved.*statementTimeout/);
    // A new connection is not answered either.
    await expect(store.load("run")).rejects.toMatchObject({
      code: "STORE",
      message: expect.stringMatching(/statementTimeout|connectionTimeoutMillis/),
    });
    proxy.heal();
    const second = await store.save(first.set("n", 2));
    expect((await store.load("run")).checkpointId).toBe(second.checkpointId);
  } finally {
    proxy.heal();
    proxy.cut();
    await store.close();
    if (typeof client !== "string") await client.end();
    await proxy.stop();
  }
});
