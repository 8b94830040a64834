import { hasMethods } from "../../options.js";
import { listenTo } from "../server.js";

/** The part of ioredis's `Redis` or `Cluster` that is used. */
export interface IoRedisClient {
  /** Sends one command. */
  call(command: string, ...args: string[]): Promise<unknown>;
  /** Several commands, sent together on one connection. */
  pipeline(commands: string[][]): {
    /** Sends them; returns an error or a reply for each. */
    exec(): Promise<[error: Error | null, reply: unknown][] | null>;
  };
}

/** The part of a client or cluster of `redis` 5 that is used. */
export interface NodeRedisClient {
  /** Sends one command. For a cluster, the routing key and whether the command only reads come first. */
  sendCommand: unknown;
  /** Whether it was connected. */
  readonly isOpen: boolean;
  /** Connects it. */
  connect(): Promise<unknown>;
}

/** The client of a `RedisStore`: a client or a cluster of `ioredis` 5 or `redis` 5. */
export type RedisClient = IoRedisClient | NodeRedisClient;

/** A command, by name, with its arguments. */
type Command = readonly string[];

/** A connection to a server, through either package. */
export interface Commands {
  /** Sends a command on the connection for a tag. */
  send(tag: string, command: Command): Promise<unknown>;
  /** Sends commands back to back on that connection; errors are returned among the replies. */
  together(tag: string, commands: readonly Command[]): Promise<unknown[]>;
  /** Drops a connection that the store made; pending calls get no reply. */
  drop(): void;
}

/** Whether a value can be such a client. */
export function isRedisClient(value: unknown): value is RedisClient {
  return hasMethods(value, "call", "pipeline") || hasMethods(value, "connect", "sendCommand");
}

/** The commands of a client. */
export function commandsOf(client: RedisClient, drop: () => void = () => {}): Commands {
  listenTo(client);
  return { drop, ...("pipeline" in client ? ofIoRedis(client) : ofNodeRedis(client)) };
}

function ofIoRedis(client: IoRedisClient): Omit<Commands, "drop"> {
  return {
    send: (_tag, [name = "", ...args]) => client.call(name, ...args),
    together: async (_tag, commands) => {
      // A cluster routes a pipeline by the keys in it.
      const pipeline = client.pipeline(commands.map((command) => ["call", ...command]));
      return ((await pipeline.exec()) ?? []).map(([error, reply]) => error ?? reply);
    },
  };
}

function ofNodeRedis(client: NodeRedisClient): Omit<Commands, "drop"> {
  const sender = client.sendCommand as (...args: unknown[]) => Promise<unknown>;
  const isCluster = "slots" in client;
  const send = (tag: string, command: Command): Promise<unknown> =>
    isCluster ? sender.call(client, tag, false, command) : sender.call(client, command);
  return {
    send: async (tag, command) => {
      if (!client.isOpen) await client.connect();
      return send(tag, command);
    },
    together: async (tag, commands) => {
      if (!client.isOpen) await client.connect();
      const settled = await Promise.allSettled(commands.map((command) => send(tag, command)));
      return settled.map((one) => (one.status === "fulfilled" ? one.value : one.reason));
    },
  };
}
