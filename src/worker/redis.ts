import type { IQueueBackend } from "bullmq";
import { messageOf } from "../errors.js";
import { bound, LONGEST_BLOCK, type QueueBounds } from "./bounds.js";
import type { BackendFactory } from "./peers.js";

/** The part of an ioredis client that is used here. */
interface Reconnecting {
  readonly status: string;
  readonly stream?: { destroy(): void };
}

/** Creates queues on Redis. ioredis reconnects by itself, and calls wait for that. */
export function redisFactory(
  create: BackendFactory,
  { statementTimeout, retryFor }: QueueBounds,
): (isTyped: boolean) => BackendFactory {
  return (isTyped) => (name, options, needs) => {
    const backend = create(name, options, needs);
    Object.defineProperty(backend, "maximumBlockTimeout", { value: LONGEST_BLOCK });
    bound(backend, { statementTimeout, retryFor, isLost, isTyped, drop: reconnect });
    return backend;
  };
}

function isLost(error: unknown): boolean {
  return messageOf(error) === "Connection is closed.";
}

/** Ends a connection that does not respond, unless another is being made; ioredis then reconnects. */
function reconnect(backend: IQueueBackend): void {
  for (const name of ["connection", "blockingConnection"]) {
    const connection: unknown = Reflect.get(backend, name);
    const client = Reflect.get(Object(connection), "_client") as Reconnecting | undefined;
    if (client?.status === "ready" || client?.status === "connect") client.stream?.destroy();
  }
}
