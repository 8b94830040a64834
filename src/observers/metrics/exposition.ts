import type { HistogramSnapshot } from "./histogram.js";

type Labels = Readonly<Record<string, string>>;

/** One value of a metric. */
export interface Sample {
  readonly labels?: Labels;
  readonly value: number;
}

/** Builds the Prometheus text format. */
export class Exposition {
  readonly #lines: string[] = [];

  counter(name: string, help: string, samples: number | readonly Sample[]): this {
    return this.#plain("counter", name, help, samples);
  }

  gauge(name: string, help: string, samples: number | readonly Sample[]): this {
    return this.#plain("gauge", name, help, samples);
  }

  /** @param unit - what to divide the values by: 1000 turns milliseconds into seconds. */
  histogram(
    name: string,
    help: string,
    unit: number,
    samples: readonly { readonly labels?: Labels; readonly value: HistogramSnapshot }[],
  ): this {
    this.#head("histogram", name, help);
    for (const { labels = {}, value } of samples) {
      for (const { le, count } of value.buckets) {
        const bound = le === Number.POSITIVE_INFINITY ? "+Inf" : String(le / unit);
        this.#line(`${name}_bucket`, { ...labels, le: bound }, count);
      }
      this.#line(`${name}_sum`, labels, value.sum / unit);
      this.#line(`${name}_count`, labels, value.count);
    }
    return this;
  }

  toString(): string {
    return `${this.#lines.join("\n")}\n`;
  }

  #plain(type: string, name: string, help: string, samples: number | readonly Sample[]): this {
    this.#head(type, name, help);
    const list = typeof samples === "number" ? [{ value: samples }] : samples;
    for (const { labels = {}, value } of list) this.#line(name, labels, value);
    return this;
  }

  #head(type: string, name: string, help: string): void {
    this.#lines.push(`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`);
  }

  #line(name: string, labels: Labels, value: number): void {
    const list = Object.entries(labels).map(([key, text]) => `${key}="${escapeLabel(text)}"`);
    this.#lines.push(`${name}${list.length === 0 ? "" : `{${list.join(",")}}`} ${value}`);
  }
}

function escapeLabel(text: string): string {
  return text.replace(/\\/g, "\\\\").replace(/"/g, '\\"').replace(/\n/g, "\\n");
}
