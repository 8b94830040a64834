import { existsSync } from "node:fs";
import type { CheckpointStore } from "../../checkpoint/store.js";
import { PostgresStore, type PostgresStoreOptions } from "../../stores/postgres.js";
import { missing } from "../exit.js";

/** Who only looks does not want to wait long for a server that is not there, in milliseconds. */
const RETRY = 1000;
const READ_ONLY = "default_transaction_read_only";

/** A store in Postgres whose sessions may not write: no row is set aside, no table made. */
export function readOnlyPostgres(options: PostgresStoreOptions): CheckpointStore {
  const folder = String(options.client).replace(/^pglite:/, "");
  if (folder !== options.client && !folder.includes("://") && !existsSync(folder)) {
    // PGlite would make a database of it.
    throw missing(`there is no folder ${folder}`, "waymark run --store makes one");
  }
  return new PostgresStore({ ...options, retryFor: RETRY }, load);
}

/** The packages, so that what they connect to can't be written. */
async function load(name: string): Promise<unknown> {
  if (name === "pg") {
    const { default: pg } = await import("pg");
    const Pool = class extends pg.Pool {
      constructor(config: object) {
        super({ ...config, options: `-c ${READ_ONLY}=on` });
      }
    };
    return { default: { Pool } };
  }
  const { PGlite } = await import("@electric-sql/pglite");
  const create = async (folder?: string) => {
    const client = await PGlite.create(folder);
    await client.exec(`SET ${READ_ONLY} = on`);
    return client;
  };
  return { PGlite: { create } };
}
