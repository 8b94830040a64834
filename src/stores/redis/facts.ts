import { ConfigError } from "../../errors.js";

/** What a save waits for; see `RedisStoreOptions.durability`. */
export type Durability = "server" | "aof" | "replicas";

/** Facts about a server. */
export type ServerFacts = Readonly<ReturnType<typeof parseFacts>>;

/** The facts in the answer to INFO. */
export function parseFacts(text: string) {
  const lines = text.split(/\r?\n/).map((line) => line.split(":", 2));
  const fields = new Map(lines.map(([name, value = ""]) => [name, value]));
  return {
    /** The version of Redis that it is or emulates. */
    version: fields.get("redis_version") ?? "",
    isCluster: fields.get("cluster_enabled") === "1",
    /** Whether it is a replica, which accepts no writes. */
    isReplica: fields.get("role") === "slave",
    /** Whether it writes an append-only file. */
    hasAof: fields.get("aof_enabled") === "1",
    /** How many replicas are connected. */
    replicas: Number(fields.get("connected_slaves") ?? 0),
    /** What it removes when its memory is full. */
    eviction: fields.get("maxmemory_policy") ?? "",
    bytes: Number(fields.get("used_memory") ?? 0),
  };
}

const OPTION = "RedisStore.durability";

/**
 * The command that waits until a save is durable; `undefined` if the reply to the save already means that.
 *
 * @param setting - returns a setting of the server; `"?"` if the user may not see it.
 * @throws ConfigError if the server can't do that.
 */
export async function waitFor(
  facts: ServerFacts,
  durability: Durability,
  timeout: number,
  setting: (name: string) => Promise<string>,
): Promise<readonly string[] | undefined> {
  // The server gives up before the store does, so that the store knows why. 0 means forever.
  const ms = String(Number.isFinite(timeout) ? Math.ceil(timeout / 2) : 0);
  if (durability === "replicas") {
    if (facts.replicas > 0) return ["WAIT", "1", ms];
    throw new ConfigError(OPTION, 'is "replicas", but the server has no replica');
  }
  if (durability === "aof") {
    if (!facts.hasAof) {
      throw new ConfigError(
        OPTION,
        'is "aof", but the server has no append-only file: set appendonly yes',
      );
    }
    // The server then answers only once the disk has it.
    if ((await setting("appendfsync")) === "always") return undefined;
    const [major = 0, minor = 0] = facts.version.split(".").map(Number);
    if (major > 7 || (major === 7 && minor >= 2)) return ["WAITAOF", "1", "0", ms];
    throw new ConfigError(
      OPTION,
      `is "aof", which needs appendfsync always, or Redis 7.2; got Redis ${facts.version}`,
    );
  }
  const problem = await problemOf(facts, setting);
  if (problem !== undefined) warn(problem);
  return undefined;
}

/** What may lose acknowledged saves although the server keeps running or is only restarted. */
export async function problemOf(
  { hasAof, eviction }: ServerFacts,
  setting: (name: string) => Promise<string>,
): Promise<string | undefined> {
  if (eviction.startsWith("allkeys")) {
    return `it removes runs when its memory is full: set maxmemory-policy noeviction, which is ${eviction}`;
  }
  if (hasAof) return undefined;
  return (await setting("save")) === ""
    ? "it keeps nothing on a disk, so a restart loses all runs: set appendonly yes"
    : "it has no append-only file, so a crash loses what was saved since its last snapshot: set appendonly yes";
}

const warned = new Set<string>();

/** Warns once per process of each problem; a store has no other way to report it. */
function warn(problem: string): void {
  if (warned.has(problem)) return;
  warned.add(problem);
  process.emitWarning(`the Redis server of a RedisStore may lose checkpoints: ${problem}`, {
    type: "WaymarkWarning",
    code: "WAYMARK_REDIS_DURABILITY",
  });
}
