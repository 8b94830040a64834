import { ConfigError, show } from "../errors.js";
import { check, checkOptions, integer, text } from "../options.js";

/** The queue's address, with more options. */
export interface QueueConnectionOptions {
  /** `postgres://…` or `redis://…`. */
  readonly url: string;
  /** On Postgres: the schema of the queue's tables, created if it does not exist; `bullmq` by default. */
  readonly schema?: string;
  /** On Postgres: the largest number of connections, in addition to the one that listens; at least 1, 4 by default. */
  readonly connections?: number;
  /** On Redis: the prefix of all keys; `bull` by default. */
  readonly prefix?: string;
  /**
   * How long to wait for a response, in milliseconds; at least 1, 30,000 by default. A call that takes longer fails,
   * with the code `QUEUE` for a client, and its connection is replaced. `Infinity` waits without a limit.
   */
  readonly statementTimeout?: number;
  /** How long to keep trying to reach a server that is down or starting, in milliseconds; 30,000 by default. */
  readonly retryFor?: number;
  /** Additional options for the `Pool` of pg, or for ioredis. */
  readonly driver?: object;
}

/**
 * The queue's address: `postgres://…`, through the package `pg`, so that one database holds the queue and the
 * checkpoints; or `redis://…`, through the package `ioredis`.
 */
export type QueueConnection = string | QueueConnectionOptions;

/** @internal A validated connection, with its defaults filled in. */
export interface CheckedConnection extends Required<QueueConnectionOptions> {
  readonly kind: "postgres" | "redis";
}

const SCHEMES = { postgres: /^postgres(ql)?:\/\//, redis: /^rediss?:\/\// } as const;

const isSchema = check(
  "a name of letters, digits and underscores, 63 at most",
  (value) => typeof value === "string" && /^[A-Za-z_][A-Za-z0-9_$]{0,62}$/.test(value),
);

/**
 * @internal
 * @throws ConfigError if it is invalid. The message shows only the scheme, as the rest may be secret.
 */
export function checkConnection(connection: QueueConnection): CheckedConnection {
  const options = typeof connection === "string" ? { url: connection } : connection;
  checkOptions("connection", options, {
    url: text,
    schema: isSchema,
    connections: integer(1),
    prefix: text,
    statementTimeout: integer(1, true),
    retryFor: integer(0),
    driver: check("an object", (value) => typeof value === "object" && value !== null),
  });
  const { url, schema = "bullmq", connections = 4, prefix = "bull", driver = {} } = options;
  const { statementTimeout = 30_000, retryFor = 30_000 } = options;
  const kind = (["postgres", "redis"] as const).find((one) => SCHEMES[one].test(url ?? ""));
  if (kind !== undefined) {
    return { kind, url, schema, connections, prefix, driver, statementTimeout, retryFor };
  }
  const scheme = typeof url === "string" ? /^[a-z+]+:/i.exec(url)?.[0] : undefined;
  const got = scheme === undefined ? "none of them" : show(`${scheme}…`);
  throw new ConfigError("connection", `must be "postgres://…" or "redis://…"; got ${got}`);
}
