/** How long ago a moment was: `3 min ago`. */
export function ago(moment: string, now: number): string {
  const ms = now - Date.parse(moment);
  if (Number.isNaN(ms)) return moment;
  return ms < 1000 ? "now" : `${duration(ms)} ago`;
}

const units: readonly (readonly [ms: number, name: string])[] = [
  [24 * 60 * 60 * 1000, "d"],
  [60 * 60 * 1000, "h"],
  [60 * 1000, "min"],
  [1000, "s"],
];

/** A length of time in its largest unit: `3 min`. */
export function duration(ms: number): string {
  const [size, name] = units.find(([unit]) => ms >= unit) ?? [1, "ms"];
  return `${Math.floor(ms / size)} ${name}`;
}

/** What something cost. */
export function dollars(costUsd: number): string {
  if (costUsd === 0) return "";
  return `$${costUsd < 0.01 ? costUsd.toPrecision(1) : costUsd.toFixed(2)}`;
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

/** A moment without its milliseconds, ISO 8601. */
export function seconds(moment: string): string {
  return moment.replace(/\.\d+Z$/, "Z");
}
