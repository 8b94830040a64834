import { usage } from "./exit.js";

/** The arguments and options of a command. */
export class Values {
  /** The arguments, in their order. */
  readonly arguments: readonly string[];
  readonly #options: Readonly<Record<string, unknown>>;

  constructor(args: readonly unknown[], options: Readonly<Record<string, unknown>>) {
    this.arguments = args.flat().flatMap((value) => (typeof value === "string" ? [value] : []));
    this.#options = options;
  }

  /** One argument; `""` if it was not given. */
  argument(at: number): string {
    return this.arguments[at] ?? "";
  }

  /** The value of an option. */
  text(name: string): string | undefined {
    const value = this.#options[name];
    return typeof value === "string" ? value : undefined;
  }

  /** The values of an option that may be given several times. */
  texts(name: string): readonly string[] {
    const value = this.#options[name];
    return Array.isArray(value) ? value.map(String) : [];
  }

  /** Whether an option was given. */
  flag(name: string): boolean {
    return this.#options[name] === true;
  }

  /** Whether an option was negated by its `--no-` form. */
  denied(name: string): boolean {
    return this.#options[name] === false;
  }

  /** The value of an option as an integer. */
  count(name: string, least: number, most = Number.MAX_SAFE_INTEGER): number | undefined {
    const text = this.text(name);
    if (text === undefined) return undefined;
    const value = /^\d+$/.test(text) ? Number(text) : Number.NaN;
    if (value >= least && value <= most) return value;
    const range = most === Number.MAX_SAFE_INTEGER ? `≥ ${least}` : `from ${least} to ${most}`;
    throw usage(`--${dashed(name)} must be an integer ${range}; got "${text}"`);
  }
}

function dashed(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}
