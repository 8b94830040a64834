import { join } from "node:path";
import Database from "libsql";
import { describe, test } from "vitest";
import { SqliteStore, type SqliteStoreOptions } from "waymark/stores/sqlite";
import { testCheckpointStore } from "waymark/testing";
import { newFolder } from "../folders.js";

function suite(what: string, options: SqliteStoreOptions): void {
  let path = "";
  testCheckpointStore({
    name: `SqliteStore, ${what}`,
    create: () => {
      path = join(newFolder(), "waymark.db");
      return new SqliteStore({ ...options, path });
    },
    reopen: () => new SqliteStore({ ...options, path }),
    test,
  });
}

const encrypt = { keys: { k1: new Uint8Array(32) }, current: "k1" };
const compress = { algorithm: "brotli", threshold: 0 } as const;

suite("as it is", {});
suite("compressed and encrypted", { codec: { compress, encrypt } });
suite("each checkpoint whole, left to the system", { snapshotEvery: 1, durability: "os" });

describe("with a client", () => {
  let client = new Database(":memory:");
  testCheckpointStore({
    name: "SqliteStore on a client",
    create: () => {
      client = new Database(":memory:");
      return new SqliteStore({ client });
    },
    reopen: () => new SqliteStore({ client }),
    test,
  });
});
