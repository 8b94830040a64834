import type { JSX } from "preact";

/** A bar of a plot, in parts from the ground up. */
export interface PlotBar {
  readonly label: string;
  /** What a screen reader says, and what is shown when it is pointed at. */
  readonly text: string;
  readonly parts: readonly { readonly kind: string; readonly value: number }[];
}

/** Bars side by side, on a scale from zero. */
export function BarPlot({
  title,
  bars,
  format,
}: {
  readonly title: string;
  readonly bars: readonly PlotBar[];
  readonly format: (value: number) => string;
}): JSX.Element {
  const sums = bars.map(({ parts }) => parts.reduce((sum, { value }) => sum + value, 0));
  const top = niceTop(Math.max(0, ...sums));
  const every = Math.ceil(bars.length / 5);
  return (
    <figure class="plot">
      <figcaption>{title}</figcaption>
      <div class="plot-area">
        <div class="grid" aria-hidden="true">
          {(format(top / 2) === "0.5" ? [1, 0] : [1, 0.5, 0]).map((share) => (
            <span key={share} style={{ bottom: `${share * 100}%` }}>
              {format(top * share)}
            </span>
          ))}
        </div>
        <ul class="bars">
          {bars.map(({ label, text, parts }, index) => (
            <li key={label} title={text}>
              <span class="unseen">{text}</span>
              <span class="pile" aria-hidden="true">
                {parts.map(({ kind, value }) => (
                  <span
                    key={kind}
                    class={`part ${kind}`}
                    style={{ height: `${(value / top) * 100}%` }}
                  />
                ))}
              </span>
              {index % every === 0 && (
                <span class="tick" aria-hidden="true">
                  {label}
                </span>
              )}
            </li>
          ))}
        </ul>
      </div>
    </figure>
  );
}

/** The next round number, so that an axis ends on one. */
function niceTop(value: number): number {
  if (value <= 0) return 1;
  const size = 10 ** Math.floor(Math.log10(value));
  return ([1, 2, 4, 5, 10].find((step) => step * size >= value) ?? 10) * size;
}

/** Values on one scale, as lying bars; `most` is a second one behind the first, such as p95 behind p50. */
export function ValuePlot({
  title,
  values,
  format,
}: {
  readonly title: string;
  readonly values: readonly {
    readonly label: string;
    readonly value: number;
    readonly most?: number;
  }[];
  readonly format: (value: number) => string;
}): JSX.Element {
  const top = Math.max(...values.map(({ value, most = value }) => most)) || 1;
  return (
    <figure class="plot lying">
      <figcaption>{title}</figcaption>
      <ul>
        {values.map(({ label, value, most }) => (
          <li key={label}>
            <span class="cut" title={label}>
              {label}
            </span>
            <span class="range" aria-hidden="true">
              {most !== undefined && (
                <span class="behind" style={{ width: `${(most / top) * 100}%` }} />
              )}
              <span class="before" style={{ width: `${(value / top) * 100}%` }} />
            </span>
            <span class="number">
              {format(value)}
              {most !== undefined && <span class="muted"> {format(most)}</span>}
            </span>
          </li>
        ))}
      </ul>
    </figure>
  );
}
