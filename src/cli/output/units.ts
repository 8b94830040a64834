/** How long ago a time was: `3 min ago`. */
export function ago(moment: string, now: number): string {
  const ms = now - Date.parse(moment);
  if (Number.isNaN(ms)) return moment;
  return ms < 1000 ? "now" : `${parts(ms)[0]} ago`;
}

const units: readonly (readonly [ms: number, name: string])[] = [
  [24 * 60 * 60 * 1000, "d"],
  [60 * 60 * 1000, "h"],
  [60 * 1000, "min"],
  [1000, "s"],
];

/** A duration split into units, largest first. */
function parts(ms: number): string[] {
  let rest = ms;
  return units.flatMap(([size, name]) => {
    const whole = Math.floor(rest / size);
    rest -= whole * size;
    return whole === 0 ? [] : [`${whole} ${name}`];
  });
}

/** A duration, rounded for reading: `850 ms`, `3.2 s`, `2 min 5 s`, `3 d 4 h`. */
export function duration(ms: number): string {
  if (ms < 1000) return `${Math.floor(ms)} ms`;
  if (ms < 60_000) return `${(Math.floor(ms / 100) / 10).toFixed(1)} s`;
  return parts(ms).slice(0, 2).join(" ");
}

/** A cost in US dollars. */
export function dollars(costUsd: number): string {
  if (costUsd === 0) return "";
  if (costUsd < 0.0001) return "<$0.0001";
  return `$${costUsd < 0.01 ? costUsd.toFixed(4) : costUsd.toFixed(2)}`;
}

/** A number with thousands separators: `12,900`. */
export function grouped(number: number): string {
  return number.toLocaleString("en");
}

/** Tokens and cost as text; `undefined` if there are none. */
export function usageText(usage: {
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly costUsd: number;
}): string | undefined {
  const { inputTokens, outputTokens, costUsd } = usage;
  if (inputTokens + outputTokens + costUsd === 0) return undefined;
  const tokens = `${grouped(inputTokens)} tokens in, ${grouped(outputTokens)} out`;
  return `${tokens}, ${dollars(costUsd) || "$0"}`;
}

/** A number of bytes: `1.2 KB`. */
export function bytes(count: number): string {
  const names = ["B", "KB", "MB", "GB", "TB"];
  let size = count;
  let at = 0;
  while (size >= 1000 && at < names.length - 1) {
    size /= 1000;
    at++;
  }
  return `${at === 0 || size >= 100 ? Math.round(size) : size.toFixed(1)} ${names[at]}`;
}

/** `1 run`, `2 runs`. */
export function count(number: number, one: string, many = `${one}s`): string {
  return `${number} ${number === 1 ? one : many}`;
}

/** An ISO 8601 time without its milliseconds. */
export function seconds(moment: string): string {
  return moment.replace(/\.\d+Z$/, "Z");
}

/** Completed steps, and the most there can be, if known: `3/4`. */
export function stepsText(done: number, most: number | null | undefined): string {
  return most == null ? String(done) : `${done}/${most}`;
}
