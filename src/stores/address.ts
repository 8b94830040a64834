import type { CheckpointStore } from "../checkpoint/store.js";
import { ConfigError, show } from "../errors.js";
import { MemoryStore } from "./memory.js";

/** The kinds of store that an address can name. */
type StoreScheme = "file" | "sqlite" | "pglite" | "postgres" | "redis" | "memory";

/** Where a store is. */
export interface StoreAddress {
  /** Which kind of store it is. */
  readonly scheme: StoreScheme;
  /** A folder, a file or a URL; `""` for memory. */
  readonly location: string;
}

/** How to open a store, beside where it is: the options of its class. */
export type StoreOptions = Readonly<Record<string, unknown>>;

type Open = (location: string, options: StoreOptions) => Promise<CheckpointStore>;

/** Each kind with how it is opened. The module is loaded when it is needed. */
const schemes: Readonly<Record<StoreScheme, Open>> = {
  memory: async (_, options) => new MemoryStore(options),
  file: async (root, options) => {
    const { FileStore } = await import("#stores/file");
    return new FileStore({ ...options, root });
  },
  sqlite: async (path, options) => {
    const { SqliteStore } = await import("#stores/sqlite");
    return new SqliteStore({ ...options, path });
  },
  pglite: async (folder, options) => {
    const { PostgresStore } = await import("#stores/postgres");
    return new PostgresStore({ ...options, client: `pglite:${folder}` });
  },
  postgres: async (client, options) => {
    const { PostgresStore } = await import("#stores/postgres");
    return new PostgresStore({ ...options, client });
  },
  redis: async (url, options) => {
    const { RedisStore } = await import("#stores/redis");
    return new RedisStore({ ...options, url });
  },
};

/** The kinds whose address is a URL, which may hold a password. */
const urls: Partial<Record<StoreScheme, RegExp>> = {
  postgres: /^postgres(ql)?:\/\//,
  redis: /^rediss?:\/\//,
};

/** Whether a store is on a server, so that its location is a URL and no path. */
export function isServer({ scheme }: StoreAddress): boolean {
  return scheme in urls;
}

/** Where a store is whose address names no place. */
const defaultPlaces: Readonly<Record<StoreScheme, string>> = {
  memory: "",
  file: ".waymark",
  sqlite: ".waymark/waymark.db",
  pglite: ".waymark/pg",
  postgres: "",
  redis: "",
};

/** The forms that an address can have, for messages and help. */
export const addressForms =
  "memory, file:DIR, sqlite:FILE, pglite:DIR, postgres://USER@HOST/DATABASE or redis://HOST";

/**
 * An address out of its text: `file:DIR`, `sqlite:FILE`, `pglite:DIR`, `postgres://…`, `redis://…`, or a bare
 * `file`, `sqlite`, `pglite` or `memory` for the default place. `undefined` if it is none of these.
 */
export function parseAddress(text: string): StoreAddress | undefined {
  for (const scheme of ["postgres", "redis"] as const) {
    if (urls[scheme]?.test(text)) return { scheme, location: text };
  }
  const [, scheme = "", colon, location = ""] = /^([a-z]+)(:)?(.*)$/s.exec(text) ?? [];
  if (!Object.hasOwn(schemes, scheme) || Object.hasOwn(urls, scheme)) return undefined;
  if ((colon === undefined) !== (location === "")) return undefined;
  if (scheme === "memory" && colon !== undefined) return undefined;
  const kind = scheme as StoreScheme;
  return { scheme: kind, location: location || defaultPlaces[kind] };
}

/** An address as it may be shown: without a password. */
export function showAddress(address: StoreAddress): string {
  const { scheme, location } = address;
  if (isServer(address)) return hidePassword(location);
  return location === "" ? scheme : `${scheme}:${location}`;
}

/** A text without the password that may be in it. */
export function hidePassword(text: string): string {
  return text
    .replace(/(:\/\/[^/:@]*):[^/]*@/, "$1:***@")
    .replace(/([?&](?:ssl)?password=)[^&]*/g, "$1***");
}

/**
 * Opens the store at an address.
 *
 * @throws ConfigError if it needs a package that is not installed, or an option is invalid.
 */
export function openStore(
  { scheme, location }: StoreAddress,
  options: StoreOptions = {},
): Promise<CheckpointStore> {
  return schemes[scheme](location, options);
}

/** The error for a text that names no store. */
export function unknownStore(text: string, names: readonly string[]): ConfigError {
  const registered = names.length === 0 ? "" : `, or a registered name: ${names.join(", ")}`;
  return new ConfigError(
    "store",
    `must be an address (${addressForms})${registered}; got ${show(hidePassword(text))}`,
  );
}
