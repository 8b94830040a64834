import type { EmbeddedPostgres, PostgresQueryable } from "waymark/stores/postgres";

/** An error with a code, as a driver gives it. */
export function failure(code: string, message = code): Error {
  return Object.assign(new Error(message), { code });
}

type Trouble = (text: string, params: readonly unknown[]) => Error | undefined | Promise<undefined>;

/** A PGlite that fails when it is told to, before it has done what it was asked, or after. */
export class Flaky implements EmbeddedPostgres {
  readonly #inner: EmbeddedPostgres;
  /** What was asked of it. */
  readonly asked: string[] = [];
  before: Trouble = () => undefined;
  after: Trouble = () => undefined;

  constructor(inner: EmbeddedPostgres) {
    this.#inner = inner;
  }

  /** Fails each of the next statements that this fits once, in this order. */
  static once(pattern: RegExp, ...errors: Error[]): Trouble {
    return (text) => (pattern.test(text) ? errors.shift() : undefined);
  }

  query(text: string, params: unknown[] = []): Promise<{ rows: unknown[] }> {
    return this.#ask(this.#inner, text, params);
  }

  transaction<T>(work: (transaction: PostgresQueryable) => Promise<T>): Promise<T> {
    return this.#inner.transaction((transaction) =>
      work({ query: (text, params = []) => this.#ask(transaction, text, params) }),
    );
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
