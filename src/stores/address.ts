import type { CheckpointStore } from "../checkpoint/store.js";
import { ConfigError, show } from "../errors.js";

/** The kinds of store that an address can name. */
type StoreScheme = "file" | "sqlite" | "pglite" | "postgres" | "redis" | "memory";

/** Where a store is. */
export interface StoreAddress {
  /** Which kind of store it is. */
  readonly scheme: StoreScheme;
  /** A folder, a file or a URL; `""` for memory. */
  readonly location: string;
  /** Where its copies are, if it is the primary of a mirror. */
  readonly replicas?: readonly StoreAddress[];
}

/** The options of the store's class, other than its location. */
export type StoreOptions = Readonly<Record<string, unknown>>;

/** The kinds that are not on a server, with the default location of each. */
const places: Partial<Record<StoreScheme, string>> = {
  memory: "",
  file: ".waymark",
  sqlite: ".waymark/waymark.db",
  pglite: ".waymark/pg",
};

/** Whether a store is on a server: its location is then a URL, which may hold a password, and not a path. */
export function isServer({ scheme }: StoreAddress): boolean {
  return !Object.hasOwn(places, scheme);
}

/** The forms that an address can have, for messages and help. */
export const addressForms =
  "memory, file:DIR, sqlite:FILE, pglite:DIR, postgres://USER@HOST/DATABASE, redis://HOST or mirror:STORE,COPY";

const MIRROR = "mirror:";
/** The comma before the next store of a mirror; any other is part of a path or a URL. */
const NEXT_STORE = /,(?=(?:file|sqlite|pglite|postgres|postgresql|redis|rediss)(?:[:,]|$))/;

/**
 * Parses an address: `file:DIR`, `sqlite:FILE`, `pglite:DIR`, `postgres://…`, `redis://…`, a bare `file`,
 * `sqlite`, `pglite` or `memory` for the default place, or `mirror:` and two or more of these, the primary first.
 * `undefined` if it is none of these.
 */
export function parseAddress(text: string): StoreAddress | undefined {
  if (!text.startsWith(MIRROR)) return parseOne(text);
  const stores = text.slice(MIRROR.length).split(NEXT_STORE).map(parseOne);
  const [primary, ...replicas] = stores.filter((one) => one !== undefined);
  const isWhole = replicas.length > 0 && replicas.length === stores.length - 1;
  // Mirroring memory makes no sense: its checkpoints end with the process.
  if (primary === undefined || !isWhole || primary.scheme === "memory") return undefined;
  return { ...primary, replicas };
}

function parseOne(text: string): StoreAddress | undefined {
  if (/^postgres(ql)?:\/\//.test(text)) return { scheme: "postgres", location: text };
  if (/^rediss?:\/\//.test(text)) return { scheme: "redis", location: text };
  const [, scheme = "", colon, location = ""] = /^([a-z]+)(:)?(.*)$/s.exec(text) ?? [];
  if (!Object.hasOwn(places, scheme)) return undefined;
  const kind = scheme as StoreScheme;
  // A colon must be followed by a location, which memory does not have.
  if (colon === undefined)
    return location === "" ? { scheme: kind, location: places[kind] ?? "" } : undefined;
  return location === "" || kind === "memory" ? undefined : { scheme: kind, location };
}

/** An address for display, without its password. */
export function showAddress({ replicas = [], ...address }: StoreAddress): string {
  if (replicas.length > 0) return MIRROR + [address, ...replicas].map(showAddress).join(",");
  const { scheme, location } = address;
  if (isServer(address)) return hidePassword(location);
  return location === "" ? scheme : `${scheme}:${location}`;
}

/** A text with the passwords in its URLs removed. */
export function hidePassword(text: string): string {
  return text
    .replace(/(:\/\/[^/:@]*):[^/]*@/g, "$1:***@")
    .replace(/([?&](?:ssl)?password=)[^&,]*/g, "$1***");
}

/**
 * Opens the store at an address. A mirror opened only for reading is its primary alone, since reads never use the
 * copies.
 *
 * @throws ConfigError if it needs a package that is not installed, or an option is invalid.
 */
export async function openStore(
  { scheme, location, replicas = [] }: StoreAddress,
  options: StoreOptions = {},
): Promise<CheckpointStore> {
  // The modules of stores need Node, so they are loaded on first use.
  const { mirror, open } = await import("#stores/open");
  const primary = await open(scheme, location, options);
  if (replicas.length === 0 || options.readOnly === true) return primary;
  return mirror(primary, await Promise.all(replicas.map((one) => openStore(one, options))));
}

/** The error for a text that names no store. */
export function unknownStore(text: string, names: readonly string[]): ConfigError {
  const registered = names.length === 0 ? "" : `, or a registered name: ${names.join(", ")}`;
  return new ConfigError(
    "store",
    `must be an address (${addressForms})${registered}; got ${show(hidePassword(text))}`,
  );
}
