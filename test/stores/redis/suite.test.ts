import { Cluster, Redis } from "ioredis";
import { createClient, createCluster } from "redis";
import { afterAll, beforeAll, describe, test } from "vitest";
import { type RedisClient, RedisStore, type RedisStoreOptions } from "waymark/stores/redis";
import { testCheckpointStore } from "waymark/testing";
import { ALWAYS, type RedisServer, startRedis, withRedis } from "./server.js";

const encrypt = { keys: { k1: new Uint8Array(32) }, current: "k1" };
const compress = { algorithm: "brotli", threshold: 0 } as const;

let prefixes = 0;

/** The suite on a client that is there once the tests begin; each test has a prefix of its own. */
function suite(
  what: string,
  connection: () => Pick<RedisStoreOptions, "client" | "url">,
  options: RedisStoreOptions = {},
): void {
  let prefix = "";
  const open = (): RedisStore => new RedisStore({ ...options, ...connection(), prefix });
  testCheckpointStore({
    name: `RedisStore on ${what}`,
    create: () => {
      prefix = `suite:${++prefixes}`;
      return open();
    },
    reopen: open,
    test,
  });
}

withRedis("RedisStore", () => {
  describe("on a server", () => {
    let server: RedisServer;
    let io: Redis;
    const node = useNodeRedis(() => createClient({ url: server.url }));
    const resp3 = useNodeRedis(() => createClient({ url: server.url, RESP: 3 }));
    beforeAll(async () => {
      server = await startRedis(ALWAYS);
      io = new Redis(server.url, { keyPrefix: "app:" });
    });
    afterAll(async () => {
      io.disconnect();
      for (const client of [node(), resp3()]) if (client.isOpen) client.destroy();
      await server.stop();
    });
    suite("a url", () => ({ url: server.url }));
    suite("ioredis with a prefix, compressed and encrypted", () => ({ client: io }), {
      codec: { compress, encrypt },
    });
    suite("redis", () => ({ client: node() }), { snapshotEvery: 2, durability: "aof" });
    suite("redis by RESP 3", () => ({ client: resp3() }), { finishedTtl: 3_600_000 });
  });

  // Of one node, which has all slots: it refuses keys of two slots in a script as any other does.
  describe("on a cluster", () => {
    let server: RedisServer;
    let io: Cluster;
    const node = useNodeRedis(() => createCluster({ rootNodes: [{ url: server.url }] }));
    beforeAll(async () => {
      server = await startRedis(["--cluster-enabled", "yes", "--cluster-announce-ip", "127.0.0.1"]);
      const client = new Redis(server.url);
      await client.call("CLUSTER", "ADDSLOTSRANGE", "0", "16383");
      for (let info = ""; !info.includes("cluster_state:ok"); ) {
        info = String(await client.call("CLUSTER", "INFO"));
      }
      client.disconnect();
      io = new Cluster([{ host: "127.0.0.1", port: server.port }]);
    });
    afterAll(async () => {
      io.disconnect();
      if (node().isOpen) node().destroy();
      await server.stop();
    });
    suite("a cluster by ioredis", () => ({ client: io }));
    suite("a cluster by redis", () => ({ client: node() }));
  });
});

/** A client that is made once a test asks for it; the store connects it. */
function useNodeRedis<T extends RedisClient & { destroy(): void }>(make: () => T): () => T {
  let client: T | undefined;
  return () => {
    client ??= make();
    return client;
  };
}
