import type pg from "pg";
import { type Server, startServer } from "../stores/postgres/server.js";

/** A server with a database for each test. */
export interface Databases {
  /** The address of a new, empty one. */
  create(): Promise<string>;
  /** Runs statements in one. */
  query(url: string, text: string): Promise<unknown[]>;
  /** Removes them all. */
  stop(): Promise<void>;
}

export async function startDatabases(): Promise<Databases> {
  const server: Server = await startServer();
  const pools = new Map<string, pg.Pool>();
  const names: string[] = [];
  const pool = server.pool();
  return {
    async create() {
      const name = `waymark_cli_${process.pid}_${Date.now()}_${names.length}`;
      await pool.query(`CREATE DATABASE ${name}`);
      names.push(name);
      const url = new URL(server.url);
      url.pathname = `/${name}`;
      return url.href;
    },
    async query(url, text) {
      const known = pools.get(url) ?? server.pool({ connectionString: url });
      pools.set(url, known);
      return (await known.query(text)).rows;
    },
    async stop() {
      for (const one of pools.values()) await one.end();
      for (const name of names) await pool.query(`DROP DATABASE ${name} WITH (FORCE)`);
      await server.stop();
    },
  };
}
