import { ConfigError, show } from "../../errors.js";
import { type LoadPackage, optionalPeer } from "../../optional-peer.js";
import { CONNECT } from "../server.js";
import { type Commands, commandsOf, type IoRedisClient, type NodeRedisClient } from "./client.js";
import { answered, failures } from "./failure.js";

const ADDRESS = /^rediss?:\/\//;

/** Rejects a string that is not the URL of a server. Shows only its scheme, since the rest may be secret. */
export function checkUrl(url: unknown): asserts url is string {
  if (typeof url === "string" && ADDRESS.test(url) && URL.canParse(url)) return;
  const scheme = typeof url === "string" ? /^[a-z+]+:/i.exec(url)?.[0] : undefined;
  const got = scheme === undefined ? "something else" : show(`${scheme}…`);
  throw new ConfigError("RedisStore.url", `must be "redis://…" or "rediss://…"; got ${got}`);
}

/** A server to connect to. */
interface Target {
  readonly url: string;
  /** How long it may take to respond, in milliseconds. */
  readonly statementTimeout: number;
  /** Called when the connection is lost. */
  readonly onEnd: () => void;
}

/**
 * Connects to a server with ioredis or, if that is not installed, with redis. The connection does not reconnect by
 * itself: the store makes a new one when it needs it, so that no call waits in a hidden queue. It does not keep
 * the process alive.
 */
export async function connect(target: Target, load?: LoadPackage): Promise<Commands> {
  const [name, module] = await optionalPeer(["ioredis", "redis"], "RedisStore.url", load);
  return name === "ioredis" ? openIoRedis(module, target) : openNodeRedis(module, target);
}

interface OwnIoRedis extends IoRedisClient {
  connect(): Promise<void>;
  disconnect(): void;
  on(event: string, listener: (error: Error) => void): void;
  readonly stream: { unref(): void };
}

async function openIoRedis(module: unknown, target: Target): Promise<Commands> {
  const { url, statementTimeout, onEnd } = target;
  const { Redis } = module as { Redis: new (url: string, options: object) => OwnIoRedis };
  const client = new Redis(url, {
    lazyConnect: true,
    connectTimeout: CONNECT,
    retryStrategy: () => null,
    // The store itself checks whether the server is ready.
    enableReadyCheck: false,
  });
  let cause: unknown;
  client.on("error", (error) => {
    cause = error;
  });
  client.on("end", onEnd);
  const drop = (): void => client.disconnect();
  const ready = async (): Promise<void> => {
    try {
      await client.connect();
      // ioredis waits for neither AUTH nor SELECT, and stays in database 0 if SELECT fails. Their answers
      // come before this one.
      await client.call("PING").catch((error: unknown) => {
        if (failures.kindOf(error) !== "refused") throw error;
      });
    } catch (error) {
      // If the connection failed, this error says only that it is closed; the event has the cause.
      cause ??= error;
    }
    if (cause === undefined) return;
    drop();
    throw cause;
  };
  await answered(statementTimeout, ready(), drop);
  client.stream.unref();
  return commandsOf(client, drop);
}

interface OwnNodeRedis extends NodeRedisClient {
  destroy(): void;
  unref(): void;
  on(event: string, listener: () => void): void;
}

async function openNodeRedis(module: unknown, target: Target): Promise<Commands> {
  const { url, statementTimeout, onEnd } = target;
  const { createClient } = module as { createClient(options: object): OwnNodeRedis };
  const client = createClient({
    url,
    socket: { connectTimeout: CONNECT, reconnectStrategy: false },
  });
  client.on("error", onEnd);
  client.on("end", onEnd);
  const drop = (): void => {
    if (client.isOpen) client.destroy();
  };
  await answered(statementTimeout, client.connect(), drop);
  client.unref();
  return commandsOf(client, drop);
}
