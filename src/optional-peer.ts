import { createRequire } from "node:module";
import { ConfigError, isMissingPackage } from "./errors.js";

/** Loads a package; tests replace it. */
export type LoadPackage = (name: string) => Promise<unknown>;

/** Bundlers find a package only if its import names it. */
const packages: Readonly<Record<string, () => Promise<unknown>>> = {
  "@electric-sql/pglite": () => import("@electric-sql/pglite"),
  bullmq: () => import("bullmq"),
  ioredis: () => import("ioredis"),
  pg: () => import("pg"),
  redis: () => import("redis"),
};

const importPackage: LoadPackage = (name) => packages[name]?.() ?? import(name);

/**
 * Loads the first of these packages that is installed; returns its name, too.
 *
 * @param option - what needs it.
 * @throws ConfigError, which says what to install, if there is none.
 */
export async function optionalPeer<N extends string>(
  names: readonly [N, ...N[]],
  option: string,
  load: LoadPackage = importPackage,
): Promise<readonly [name: N, module: unknown]> {
  for (const name of names) {
    try {
      return [name, await load(name)];
    } catch (error) {
      if (!isMissingPackage(error)) throw error;
    }
  }
  throw missingPeer(option, `the package ${names[0]}`, names[0]);
}

/** Loads a package at once. */
export const requirePeer: (name: string) => unknown = createRequire(import.meta.url);

/** Loads a package at once; `undefined` if it is not installed. */
export function peerIfInstalled(name: string): unknown {
  try {
    return requirePeer(name);
  } catch (error) {
    if (isMissingPackage(error)) return undefined;
    throw error;
  }
}

/** The error for a package that is not installed. */
export function missingPeer(option: string, what: string, install: string): ConfigError {
  return new ConfigError(option, `needs ${what}: npm install ${install}`);
}
