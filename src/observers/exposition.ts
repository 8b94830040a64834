import type { HistogramSnapshot } from "./histogram.js";

type Labels = Readonly<Record<string, string>>;

/** The values of a metric: one, or several by their labels. */
type Samples<T> = T | readonly { readonly labels?: Labels; readonly value: T }[];

/** Builds the Prometheus text format. */
export class Exposition {
  readonly #lines: string[] = [];

  counter(name: string, help: string, samples: Samples<number>): this {
    return this.#plain("counter", name, help, samples);
  }

  gauge(name: string, help: string, samples: Samples<number>): this {
    return this.#plain("gauge", name, help, samples);
  }

  /** @param unit - what to divide the values by: 1000 turns milliseconds into seconds. */
  histogram(name: string, help: string, unit: number, samples: Samples<HistogramSnapshot>): this {
    this.#head("histogram", name, help);
    const list = "buckets" in samples ? [{ value: samples }] : samples;
    for (const { labels = {}, value } of list) {
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

  #plain(type: string, name: string, help: string, samples: Samples<number>): this {
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
