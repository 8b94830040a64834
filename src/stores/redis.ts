/**
 * Checkpoints in Redis.
 *
 * @packageDocumentation
 */
import {
  RecordStore,
  type RecordStoreOptions,
  recordStoreChecks,
} from "../checkpoint/records/record-store.js";
import { ConfigError } from "../errors.js";
import type { LoadPackage } from "../optional-peer.js";
import { check, checkOptions, flag, integer, oneOf } from "../options.js";
import { RedisBackend } from "./redis/backend.js";
import {
  type IoRedisClient,
  isRedisClient,
  type NodeRedisClient,
  type RedisClient,
} from "./redis/client.js";
import { checkUrl } from "./redis/connect.js";
import { Connection } from "./redis/connection.js";

export type { RecordStore, RecordStoreOptions } from "../checkpoint/records/record-store.js";
export type { CodecOptions } from "../codecs/pipeline.js";
export type { IoRedisClient, NodeRedisClient, RedisClient };

/** Options of {@link RedisStore}. Either `client` or `url` is required. */
export interface RedisStoreOptions extends RecordStoreOptions {
  /** A client or a cluster of `ioredis` 5 or `redis` 5. The store does not close it. */
  readonly client?: RedisClient;
  /**
   * `redis://…` or `rediss://…`: the store connects by itself, with `ioredis` or `redis`, whichever is
   * installed.
   */
  readonly url?: string;
  /** The prefix of its keys; `waymark` by default. */
  readonly prefix?: string;
  /**
   * What a save waits for. `"server"`, the default: the server's answer, so an acknowledged save is as
   * durable as `appendonly` and `appendfsync` make it. `"aof"`: until the append-only file is on disk;
   * requires `appendfsync always` or Redis 7.2. `"replicas"`: until a replica has it too.
   */
  readonly durability?: "server" | "aof" | "replicas";
  /** Milliseconds after which the server removes a run that is completed or failed; never by default. */
  readonly finishedTtl?: number;
  /** Write a whole State at least once in this many checkpoints of a run; 256 by default, 1 for every one. */
  readonly snapshotEvery?: number;
  /**
   * For how many milliseconds to retry a call that failed because of a lost connection, a server that is
   * starting, or a failover; 10,000 by default, 0 for never. A retried call takes effect once.
   */
  readonly retryFor?: number;
  /**
   * How many milliseconds to wait for an answer; 30,000 by default, `Infinity` for no limit. After a timeout,
   * a save may or may not have happened; the next save finds out.
   */
  readonly statementTimeout?: number;
  /** Only read: saves, claims and removals are rejected, and nothing is set aside. False by default. */
  readonly readOnly?: boolean;
}

const isClient = check("a client or a cluster of ioredis 5 or redis 5", isRedisClient);

const isPrefix = check(
  "a string of 1 to 200 characters without { and }",
  (value) => typeof value === "string" && /^[^{}\0\p{Surrogate}]{1,200}$/u.test(value),
);

/**
 * Keeps checkpoints in Redis 6 or later, or Valkey. It needs one of the packages `ioredis` or `redis`.
 *
 * A save is one script call that writes only what changed, and only if the run is still at the State's
 * sequence. While a run is claimed through this store, its saves also need that claim: once another process
 * has claimed the run, this one can write nothing more to it. Calls that fail because of a lost connection
 * are retried.
 *
 * What a crash or a failover can undo depends on the server and on `durability`. The store emits a process
 * warning if the server keeps nothing on disk or removes keys when its memory is full.
 *
 * @example
 * ```ts compile
 * import { Redis } from "ioredis";
 * import { State } from "waymark";
 * import { RedisStore } from "waymark/stores/redis";
 *
 * const client = new Redis("redis://localhost:6379");
 * const store = new RedisStore({ client, durability: "aof" });
 * const saved = await State.create({ topic: "cairns" }).checkpoint(store);
 * console.log((await store.load(saved.runId)).sequence); // 1
 * await store.close();
 * client.disconnect();
 * ```
 */
export class RedisStore extends RecordStore {
  /** The prefix of its keys. */
  readonly prefix: string;
  readonly #connection: Connection;

  /** @throws ConfigError if an option is invalid. */
  constructor(options: RedisStoreOptions);
  /** @internal */
  constructor(options: RedisStoreOptions, load: LoadPackage);
  constructor(options: RedisStoreOptions, load?: LoadPackage) {
    checkOptions("RedisStore", options, {
      ...recordStoreChecks,
      client: isClient,
      url: (_, url) => checkUrl(url),
      prefix: isPrefix,
      durability: oneOf("server", "aof", "replicas"),
      finishedTtl: integer(1),
      snapshotEvery: integer(1),
      retryFor: integer(0),
      statementTimeout: integer(1, true),
      readOnly: flag,
    });
    const { prefix = "waymark", durability = "server", finishedTtl, readOnly = false } = options;
    const { snapshotEvery = 256, retryFor = 10_000, statementTimeout = 30_000 } = options;
    const client = options.client ?? options.url;
    if (client === undefined) {
      throw new ConfigError("RedisStore.client", "must be set, or url; got neither");
    }
    if (options.client !== undefined && options.url !== undefined) {
      throw new ConfigError("RedisStore.url", "must not be set together with client");
    }
    const settings = { client, prefix, durability, retryFor, statementTimeout, readOnly, load };
    const connection = new Connection(settings);
    super(new RedisBackend(connection, prefix, finishedTtl), { ...options, snapshotEvery });
    this.prefix = prefix;
    this.#connection = connection;
  }

  /**
   * Facts about the server, and what may make it lose runs.
   *
   * @internal
   */
  facts(): ReturnType<Connection["facts"]> {
    return this.#connection.facts();
  }
}
