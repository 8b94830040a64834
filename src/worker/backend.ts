import { EventEmitter } from "node:events";
import type { IQueueBackend } from "bullmq";
import { inBackground, now, sleep, unlessLate } from "../clock.js";
import { messageOf, WaymarkError } from "../errors.js";
import { type LoadPackage, optionalPeer } from "../optional-peer.js";
import type { CheckedConnection } from "./connection.js";

/** The module of BullMQ. */
export type BullMQ = typeof import("bullmq");

/** Creates a backend of BullMQ from the name of its queue and its owner's options. */
export type BackendFactory = (
  name: string,
  options: { readonly connection: unknown },
  needs?: { readonly blocking?: boolean; readonly withBlockingConnection?: boolean },
) => IQueueBackend;

/** Loads the packages that the queue needs, on first use. */
export async function loadPeers(driver: "pg" | "ioredis", load?: LoadPackage): Promise<BullMQ> {
  const [, module] = await optionalPeer(["bullmq"], "connection", load);
  // BullMQ loads its driver itself, but its error is less clear if the driver is missing.
  await optionalPeer([driver], "connection", load);
  const bullmq = module as BullMQ & { readonly default?: BullMQ };
  return bullmq.default ?? bullmq;
}

/** How long to wait for the queue: for a response, and for a server that can't be reached. */
export type QueueBounds = Pick<CheckedConnection, "statementTimeout" | "retryFor">;

/** How to handle the connection of a backend. */
interface Connecting {
  /** Whether an error means that the connection failed, not the statement. */
  isLost(error: unknown): boolean;
  /** Drops a connection that does not respond. */
  drop(backend: IQueueBackend): void;
  /** Whether a lost connection is a `QUEUE` error. Not for BullMQ's workers, which recognise only the driver's own errors. */
  readonly isTyped: boolean;
}

/** The longest time that an idle worker waits before it looks for work, in seconds. */
export const LONGEST_BLOCK = 5;

const FIRST_WAIT = 50;
const LONGEST_WAIT = 500;

/** Methods that wait for no response, or that their caller bounds. */
const UNBOUNDED = new Set(["constructor", "close", "disconnect", "forQueue", "waitUntilReady"]);
/** Methods that wait for something to happen, up to {@link LONGEST_BLOCK}. */
const BLOCKING = new Set(["waitForJob", "readEvents"]);
/** Methods that only read, and so can be retried. */
const READS = /^(get|has|is)[A-Z]/;

/** Creates the error of a queue that does not respond, or that can't be reached. */
export function queueError(message: string, cause?: unknown): WaymarkError {
  return new WaymarkError("QUEUE", message, cause === undefined ? undefined : { cause });
}

/** Waits for a promise; throws a `QUEUE` error if that takes longer than this many milliseconds. */
export function answered<T>(promise: Promise<T>, ms: number, drop?: () => void): Promise<T> {
  const late = (): never => {
    drop?.();
    throw queueError(`the queue did not respond within connection.statementTimeout (${ms} ms)`);
  };
  return unlessLate(promise, ms, late, inBackground);
}

/** Bounds every call of a backend, also those that BullMQ makes. */
export function bound(backend: IQueueBackend, bounds: QueueBounds, how: Connecting): void {
  Object.defineProperty(backend, "maximumBlockTimeout", { value: LONGEST_BLOCK });
  for (const name of methodsOf(backend)) {
    const method = Reflect.get(backend, name) as (...args: unknown[]) => unknown;
    const ms = bounds.statementTimeout + (BLOCKING.has(name) ? LONGEST_BLOCK * 1000 : 0);
    Reflect.set(backend, name, (...args: unknown[]): unknown => {
      const call = (): unknown => method.apply(backend, args);
      const first = call();
      if (!(first instanceof Promise)) return first;
      const again = READS.test(name) ? (): Promise<unknown> => Promise.resolve(call()) : undefined;
      const bounded = answered(asked(first, again, bounds, how), ms, () => how.drop(backend));
      // The name only labels the connection; failing to set it must not stop the listening to events.
      return name === "setName" ? bounded.catch(() => {}) : bounded;
    });
  }
}

/** Waits for a call; repeats it, if it can be repeated, while the connection is lost. */
export async function asked<T>(
  first: Promise<T>,
  again: (() => Promise<T>) | undefined,
  { statementTimeout, retryFor }: QueueBounds,
  { isLost, isTyped }: Pick<Connecting, "isLost" | "isTyped">,
): Promise<T> {
  // Nobody waits for it after `statementTimeout`, and it would use a connection that others could have.
  const end = now() + Math.min(retryFor, statementTimeout);
  let asking = first;
  for (let wait = FIRST_WAIT; ; wait = Math.min(wait * 2, LONGEST_WAIT)) {
    try {
      return await asking;
    } catch (error) {
      if (!isLost(error)) throw error;
      if (again === undefined || now() + wait > end) {
        throw isTyped
          ? queueError(`the queue can't be reached: ${messageOf(error)}`, error)
          : error;
      }
      await sleep(wait);
      asking = again();
    }
  }
}

function methodsOf(backend: object): Set<string> {
  const names = new Set<string>();
  let owner: object | null = Object.getPrototypeOf(backend);
  while (owner !== null && owner !== EventEmitter.prototype && owner !== Object.prototype) {
    for (const [name, { value }] of Object.entries(Object.getOwnPropertyDescriptors(owner))) {
      if (typeof value === "function" && !UNBOUNDED.has(name)) names.add(name);
    }
    owner = Object.getPrototypeOf(owner);
  }
  return names;
}

/** How long a server, or a run that was asked to stop, may take before it is abandoned, in milliseconds. */
export const GRACE = 5000;

/** Whether a promise resolves within this many milliseconds; rejects if it rejects within them. */
export function inTime(promise: Promise<unknown>, ms: number): Promise<boolean> {
  return unlessLate(
    promise.then(() => true),
    ms,
    () => false,
  );
}
