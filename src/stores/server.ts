import { BackendError } from "../checkpoint/records/backend.js";
import { LONGEST_TIMER, now, sleep, unlessLate } from "../clock.js";
import { ConfigError, isWaymarkError } from "../errors.js";

const FIRST_WAIT = 20;
const LONGEST_WAIT = 500;

/** How long to wait for a connection that a store makes itself, in milliseconds. */
export const CONNECT = 10_000;

/** The codes of the operating system if there was no connection, so that nothing was executed. */
export const NO_CONNECTION: readonly string[] = [
  "ECONNREFUSED",
  "ENOENT", // no socket: the server is not there
  "EHOSTUNREACH",
  "ENETUNREACH",
  "EAI_AGAIN",
  "ENOTFOUND", // no such name, perhaps not yet
];

/**
 * What a server's error means for the request:
 *
 * - `unreached`: the server did not receive it, or is not ready to execute it;
 * - `undone`: the server rolled it back;
 * - `broken`: the connection broke, perhaps after it was executed;
 * - `refused`: the server rejected it;
 * - `unknown`: it may or may not have been executed.
 */
export type FailureKind = "unreached" | "undone" | "broken" | "refused" | "unknown";

/** Interprets the errors of a server. */
export interface Failures {
  kindOf(error: unknown): FailureKind;
  /** The error's message, with advice where there is any. */
  explain(error: unknown): string;
}

/** How a store uses its server. */
export interface ServerSettings {
  /** For how many milliseconds to retry what failed because of the connection. */
  readonly retryFor: number;
  /** How long to wait for a response, in milliseconds. */
  readonly statementTimeout: number;
  /** Whether to write nothing. */
  readonly readOnly: boolean;
}

/**
 * The server of a store: connected on first use, and again after its connection was lost. Requests are sent again
 * then, so they must be idempotent.
 */
export abstract class ServerConnection<T, S extends ServerSettings> {
  /** The name of the store's class, for messages. */
  protected abstract readonly store: string;
  protected abstract readonly failures: Failures;
  protected readonly settings: S;
  #connecting: Promise<T> | undefined;
  #connected: T | undefined;

  constructor(settings: S) {
    this.settings = settings;
  }

  /** Connects; `undefined` if there is nothing to connect to yet. */
  protected abstract connect(): Promise<T>;

  /** Closes a connection. */
  protected abstract disconnect(connected: NonNullable<T>): Promise<void> | void;

  /** What `connect` returned, if it is still in use. */
  protected get connected(): T | undefined {
    return this.#connected;
  }

  /** @throws ConfigError if the store only reads. */
  checkWritable(): void {
    if (!this.settings.readOnly) return;
    throw new ConfigError(
      `${this.store}.readOnly`,
      "is true: this store saves, claims and removes nothing",
    );
  }

  /** Closes a connection that was made here; the next use makes a new one. */
  async close(): Promise<void> {
    const connecting = this.#connecting;
    this.forget();
    // If there was no connection, there is nothing to close.
    const connected = await connecting?.catch(() => undefined);
    if (connected) await this.disconnect(connected);
  }

  /** Makes the next use connect again. */
  protected forget(): void {
    this.#connecting = undefined;
    this.#connected = undefined;
  }

  /**
   * Retries for up to `retryFor` milliseconds what failed because of the connection rather than the request.
   *
   * @throws BackendError if the retries failed too; it is `unsure` if something may have taken effect.
   */
  protected async with<R>(action: (connected: T) => Promise<R>): Promise<R> {
    const end = now() + this.settings.retryFor;
    let unsure = false;
    for (let tries = 0; ; tries++) {
      let begun = false;
      try {
        const connected = this.#connected ?? (await this.#connect());
        begun = true;
        return await action(connected);
      } catch (error) {
        if (isWaymarkError(error)) throw error;
        const kind = this.failures.kindOf(error);
        unsure ||= begun && (kind === "broken" || kind === "unknown");
        const wait = Math.min(FIRST_WAIT * 2 ** tries, LONGEST_WAIT) * (0.5 + Math.random() / 2);
        if (kind === "refused" || kind === "unknown" || now() + wait > end) {
          throw new BackendError(this.failures.explain(error), { unsure, cause: error });
        }
        await sleep(wait);
      }
    }
  }

  /** Connects once for all that ask meanwhile. */
  async #connect(): Promise<T> {
    const connecting = this.#connecting ?? this.connect();
    this.#connecting = connecting;
    let connected: T | undefined;
    try {
      connected = await connecting;
      return connected;
    } finally {
      // What is missing now may exist the next time.
      if (this.#connecting === connecting) {
        if (connected === undefined) this.forget();
        else this.#connected = connected;
      }
    }
  }
}

const heard = new WeakSet<object>();

/**
 * Listens to the errors of a client, and of the connections that a pool hands out: without a listener, a lost
 * connection ends the process or is printed. The next request fails anyway.
 */
export function listenTo(source: object): void {
  const on: unknown = Reflect.get(source, "on");
  if (heard.has(source) || typeof on !== "function") return;
  heard.add(source);
  on.call(source, "error", () => {});
  // Not only once it is acquired here: the loss may be emitted at the moment it becomes available.
  on.call(source, "acquire", listenTo);
}

/** Keeps the process alive until the response, which a store's connection does not. */
const timer = (ms: number, callback: () => void): (() => void) => {
  const started = setTimeout(callback, Math.min(ms, LONGEST_TIMER));
  return () => clearTimeout(started);
};

/** Waits for a promise; calls `late`, which throws, if that takes longer than this many milliseconds. */
export function answeredWithin<T>(ms: number, promise: Promise<T>, late: () => never): Promise<T> {
  return unlessLate(promise, ms, late, timer);
}
