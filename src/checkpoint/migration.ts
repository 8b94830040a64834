import { asText, ConfigError, MigrationError, show } from "../errors.js";
import { withRecord } from "../state/derive.js";
import { freezeCopy } from "../state/freeze-copy.js";
import { traitsOf } from "../state/json-traits.js";
import { withDataCopies } from "../state/results.js";
import { isPlainObject } from "../state/shape.js";
import { recordOf, type State } from "../state/state.js";

/** Converts data of one schema version to the next. It may declare its own types for both. */
export type Migration = {
  // A method, because only a method's parameter may be narrower than `object`.
  /** Takes the frozen data of the older version and returns that of the next, synchronously. */
  migrate(data: object): object & {
    /** Rules out a promise: a migration is synchronous. */
    readonly then?: undefined;
  };
}["migrate"];

/**
 * The migrations of a graph, keyed by the version each starts from.
 *
 * @example
 * ```ts
 * import { type Migrations, StateGraph } from "waymark";
 *
 * const migrations: Migrations = {
 *   0: ({ name }: { name: string }) => ({ names: [name] }),
 *   1: ({ names }: { names: string[] }) => ({ names, greeted: false }),
 * };
 * new StateGraph<{ names: string[]; greeted: boolean }>({ version: 2, migrations });
 * ```
 */
export type Migrations = Readonly<Record<number, Migration>>;

/** Throws if the value is not a table of migrations. */
export function checkMigrations(name: string, value: unknown): void {
  if (typeof value !== "object" || value === null) {
    throw new ConfigError(name, `must be an object of functions by version; got ${show(value)}`);
  }
  for (const [version, migration] of Object.entries(value)) {
    if (!/^\d+$/.test(version) || typeof migration !== "function") {
      throw new ConfigError(
        `${name}.${version}`,
        `must be a version number with a function; got ${show(migration)}`,
      );
    }
  }
}

/**
 * Migrates a State to a version. It carries that version from its next save on.
 *
 * @throws MigrationError if the State is newer, a migration is missing, or a migration fails.
 */
export function migrate<D extends object>(
  state: State<D>,
  version: number,
  migrations: Migrations,
): State<D> {
  const { data, identity, progress } = recordOf(state);
  const { graph } = identity;
  if (graph === undefined || graph.version === version) return state;
  const refuse = (from: number, problem: string, options?: ErrorOptions): never => {
    throw new MigrationError(from, version, problem, options);
  };
  if (graph.version > version) {
    refuse(graph.version, "the checkpoint is newer than this graph: run it with the newer code");
  }
  const bring = (older: object): object => {
    let next = older;
    for (let from = graph.version; from < version; from++) {
      const migration =
        migrations[from] ??
        refuse(from, `there is no migration from ${from} to ${from + 1}: add migrations[${from}]`);
      let result: unknown;
      try {
        result = migration(next);
      } catch (cause) {
        refuse(from, `migrations[${from}] failed: ${asText(cause)}`, { cause });
      }
      if (!isPlainObject(result)) {
        const got = show(result);
        return refuse(from, `migrations[${from}] must return a plain object; got ${got}`);
      }
      next = result;
    }
    return next;
  };
  const kept = freezeCopy(bring(data));
  const { unfinished } = progress;
  return withRecord(state, {
    data: kept,
    traits: traitsOf(kept),
    identity: { ...identity, graph: { ...graph, version } },
    progress: { ...progress, unfinished: unfinished && withDataCopies(unfinished, bring) },
  });
}
