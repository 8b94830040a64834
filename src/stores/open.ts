import type { CheckpointStore } from "../checkpoint/store.js";
import { MemoryStore } from "./memory.js";

/*
 * Opens each kind of store that an address can name. Its module is loaded on first use.
 */

type Options = Readonly<Record<string, unknown>>;

export async function memory(_: string, options: Options): Promise<CheckpointStore> {
  return new MemoryStore(options);
}

export async function file(root: string, options: Options): Promise<CheckpointStore> {
  const { FileStore } = await import("./file.js");
  return new FileStore({ ...options, root });
}

export async function sqlite(path: string, options: Options): Promise<CheckpointStore> {
  const { SqliteStore } = await import("./sqlite.js");
  return new SqliteStore({ ...options, path });
}

export async function postgres(client: string, options: Options): Promise<CheckpointStore> {
  const { PostgresStore } = await import("./postgres.js");
  return new PostgresStore({ ...options, client });
}

export function pglite(folder: string, options: Options): Promise<CheckpointStore> {
  return postgres(`pglite:${folder}`, options);
}

export async function redis(url: string, options: Options): Promise<CheckpointStore> {
  const { RedisStore } = await import("./redis.js");
  return new RedisStore({ ...options, url });
}

export async function mirror(
  primary: CheckpointStore,
  copies: readonly CheckpointStore[],
): Promise<CheckpointStore> {
  const module = await import("./mirror.js");
  return module.mirror(primary, copies);
}
