import type { PostgresConnection, PostgresPool, PostgresQueryable } from "waymark/stores/postgres";

/** An error with a code, as a driver gives it. */
export function failure(code: string, message = code): Error {
  return Object.assign(new Error(message), { code });
}

type Trouble = (text: string, params: readonly unknown[]) => Error | undefined | Promise<undefined>;

/** A pool that fails when it is told to, before it has done what it was asked, or after. */
export class Flaky implements PostgresPool {
  readonly #inner: PostgresPool;
  /** What was asked of it. */
  readonly asked: string[] = [];
  before: Trouble = () => undefined;
  after: Trouble = () => undefined;

  constructor(inner: PostgresPool) {
    this.#inner = inner;
  }

  /** Fails each of the next statements that this fits once, in this order. */
  static once(pattern: RegExp, ...errors: Error[]): Trouble {
    return (text) => (pattern.test(text) ? errors.shift() : undefined);
  }

  query(text: string, params: unknown[] = []): Promise<{ rows: unknown[] }> {
    return this.#ask(this.#inner, text, params);
  }

  async connect(): Promise<PostgresConnection> {
    const connection = await this.#inner.connect();
    return {
      query: (text, params = []) => this.#ask(connection, text, params),
      release: (error) => connection.release(error),
    };
  }

  async #ask(
    client: PostgresQueryable,
    text: string,
    params: unknown[],
  ): Promise<{ rows: unknown[] }> {
    this.asked.push(text);
    const before = await this.before(text, params);
    if (before !== undefined) throw before;
    const result = await client.query(text, params);
    const after = await this.after(text, params);
    if (after !== undefined) throw after;
    return result;
  }
}
