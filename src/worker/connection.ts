import { ConfigError, show } from "../errors.js";
import { check, checkOptions, integer, text } from "../options.js";

/** Where the queue is, with more to say about it than its address. */
export interface QueueConnectionOptions {
  /** `postgres://…` or `redis://…`. */
  readonly url: string;
  /** On Postgres: the schema for the tables of the queue; `bullmq` by default. It is made when it is needed. */
  readonly schema?: string;
  /** On Postgres: how many connections to open at most, beside the one that listens; at least 1, 4 by default. */
  readonly connections?: number;
  /** On Redis: what the keys begin with; `bull` by default. */
  readonly prefix?: string;
  /** More options for the `Pool` of pg, or for ioredis. */
  readonly driver?: object;
}

/**
 * Where the queue is: `postgres://…`, by the package `pg`, so that one database holds the work and the
 * checkpoints; or `redis://…`, by the package `ioredis`.
 */
export type QueueConnection = string | QueueConnectionOptions;

/** A validated connection, with its defaults filled in. */
export interface CheckedConnection {
  readonly kind: "postgres" | "redis";
  readonly url: string;
  readonly schema: string;
  readonly connections: number;
  readonly prefix: string;
  readonly driver: object;
}

const SCHEMES = { postgres: /^postgres(ql)?:\/\//, redis: /^rediss?:\/\// } as const;

const isSchema = check(
  "a name of letters, digits and underscores, 63 at most",
  (value) => typeof value === "string" && /^[A-Za-z_][A-Za-z0-9_$]{0,62}$/.test(value),
);

/** @throws ConfigError if it is invalid. What comes after the scheme may be secret. */
export function checkConnection(connection: QueueConnection): CheckedConnection {
  const options = typeof connection === "string" ? { url: connection } : connection;
  checkOptions("connection", options, {
    url: text,
    schema: isSchema,
    connections: integer(1),
    prefix: text,
    driver: check("an object", (value) => typeof value === "object" && value !== null),
  });
  const { url, schema = "bullmq", connections = 4, prefix = "bull", driver = {} } = options;
  const kind = (["postgres", "redis"] as const).find((one) => SCHEMES[one].test(url ?? ""));
  if (kind !== undefined) return { kind, url, schema, connections, prefix, driver };
  const scheme = typeof url === "string" ? /^[a-z+]+:/i.exec(url)?.[0] : undefined;
  const got = scheme === undefined ? "none of them" : show(`${scheme}…`);
  throw new ConfigError("connection", `must be "postgres://…" or "redis://…"; got ${got}`);
}
