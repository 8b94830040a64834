import { pathToFileURL } from "node:url";
import { missingPeer, peerIfInstalled } from "../../optional-peer.js";
import type { SqliteClient } from "./client.js";

/** A client that the store has opened, and closes. */
export interface OwnedClient extends SqliteClient {
  close(): unknown;
}

/** Loads the module of a driver; `undefined` if it is not installed. Tests replace it. */
export type Load = (name: string) => unknown;

type Constructor = new (path: string, options?: object) => OwnedClient;

/** A driver: the module it is in, and how it opens a file. */
interface Driver {
  readonly name: string;
  open(module: unknown, path: string, readOnly: boolean): OwnedClient;
}

/** The drivers; the first that is available is used. */
const drivers: readonly Driver[] = [
  {
    name: "node:sqlite",
    open: (module, path, readOnly) =>
      new (exported(module, "DatabaseSync"))(path, readOnly ? { readOnly } : {}),
  },
  {
    name: "bun:sqlite",
    open: (module, path, readOnly) =>
      new (exported(module, "Database"))(path, readOnly ? { readonly: true } : { readwrite: true }),
  },
  {
    name: "better-sqlite3",
    open: (module, path, readOnly) =>
      new (module as Constructor)(path, { readonly: readOnly, fileMustExist: true }),
  },
  {
    name: "libsql",
    // It has no read-only option, but accepts a URL.
    open: (module, path, readOnly) =>
      new (module as Constructor)(readOnly ? `${pathToFileURL(path).href}?mode=ro` : path),
  },
];

function exported(module: unknown, name: string): Constructor {
  return Reflect.get(Object(module), name) as Constructor;
}

/** Modules of the runtime may be absent; the others are packages. */
const load: Load = (name) => {
  if (name === "node:sqlite") return process.getBuiltinModule?.(name);
  if (name === "bun:sqlite" && process.versions.bun === undefined) return undefined;
  return peerIfInstalled(name);
};

/**
 * Opens a file with the first available driver.
 *
 * @throws ConfigError if there is none.
 */
export function openFile(path: string, readOnly: boolean, loadDriver: Load = load): OwnedClient {
  for (const { name, open } of drivers) {
    const module = loadDriver(name);
    if (module !== undefined) return open(module, path, readOnly);
  }
  const install = "better-sqlite3 (or libsql), or use Node 22.13 or later, which has one";
  throw missingPeer("SqliteStore.path", "a SQLite driver", install);
}
