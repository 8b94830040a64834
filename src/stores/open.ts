import type { CheckpointStore } from "../checkpoint/store.js";
import { MemoryStore } from "./memory.js";

type Options = Readonly<Record<string, unknown>>;
type Opener = (location: string, options: Options) => Promise<CheckpointStore>;

const postgres: Opener = async (client, options) => {
  const { PostgresStore } = await import("./postgres.js");
  return new PostgresStore({ ...options, client });
};

/** Opens each kind of store that an address can name. Its module is loaded on first use. */
const openers = {
  memory: async (_, options) => new MemoryStore(options),
  file: async (root, options) => {
    const { FileStore } = await import("./file.js");
    return new FileStore({ ...options, root });
  },
  sqlite: async (path, options) => {
    const { SqliteStore } = await import("./sqlite.js");
    return new SqliteStore({ ...options, path });
  },
  postgres,
  pglite: (folder, options) => postgres(`pglite:${folder}`, options),
  redis: async (url, options) => {
    const { RedisStore } = await import("./redis.js");
    return new RedisStore({ ...options, url });
  },
} satisfies Record<string, Opener>;

export function open(
  scheme: keyof typeof openers,
  ...at: Parameters<Opener>
): Promise<CheckpointStore> {
  return openers[scheme](...at);
}

export async function mirror(
  primary: CheckpointStore,
  copies: readonly CheckpointStore[],
): Promise<CheckpointStore> {
  const module = await import("./mirror.js");
  return module.mirror(primary, copies);
}
