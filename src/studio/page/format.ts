/** Numbers, times and sizes as a person reads them. */

const units: readonly (readonly [name: string, ms: number])[] = [
  ["d", 86_400_000],
  ["h", 3_600_000],
  ["min", 60_000],
  ["s", 1000],
];

/** A duration: `840 ms`, `3.2 s`, `4 min 10 s`, `2 d 3 h`. */
export function duration(ms: number | undefined): string {
  if (ms === undefined || !Number.isFinite(ms)) return "–";
  if (ms < 1000) return `${Math.max(0, Math.round(ms))} ms`;
  if (ms < 60_000) return `${trimmed(ms / 1000, ms < 10_000 ? 1 : 0)} s`;
  const at = units.findIndex(([, size]) => ms >= size);
  const [name, size] = units[at] ?? ["s", 1000];
  const [next, smaller] = units[at + 1] ?? ["", 1];
  const rest = Math.floor((ms % size) / smaller);
  return `${Math.floor(ms / size)} ${name}${rest > 0 && next !== "" ? ` ${rest} ${next}` : ""}`;
}

/** How long ago a moment was: `now`, `2 min ago`, `in 3 h`. */
export function age(time: string | undefined, now: number): string {
  const at = time === undefined ? Number.NaN : Date.parse(time);
  if (Number.isNaN(at)) return "–";
  const ms = now - at;
  if (Math.abs(ms) < 5000) return "now";
  const [name, size] = units.find(([, unit]) => Math.abs(ms) >= unit) ?? ["s", 1000];
  const text = `${Math.floor(Math.abs(ms) / size)} ${name}`;
  return ms < 0 ? `in ${text}` : `${text} ago`;
}

/** A moment in full, in the reader's own zone. */
export function moment(time: string | undefined): string {
  const at = time === undefined ? Number.NaN : Date.parse(time);
  if (Number.isNaN(at)) return "unknown";
  return new Date(at).toLocaleString(undefined, {
    dateStyle: "medium",
    timeStyle: "medium",
  });
}

/** The time of day, with milliseconds. */
export function clock(time: string): string {
  const at = new Date(time);
  if (Number.isNaN(at.getTime())) return time;
  const ms = String(at.getMilliseconds()).padStart(3, "0");
  return `${at.toLocaleTimeString(undefined, { hour12: false })}.${ms}`;
}

/** Money: `$0.14`, `$0.0021`, `$1,204.50`; a dash for none. */
export function money(usd: number | undefined): string {
  if (usd === undefined || usd === 0) return "–";
  const digits = Math.abs(usd) >= 0.01 ? 2 : 4;
  return `$${usd.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits })}`;
}

/** A count, in groups of three digits. */
export function count(value: number | undefined): string {
  return value === undefined ? "–" : value.toLocaleString("en");
}

/** A count for a label: `950`, `12.4k`, `3.1M`. */
export function short(value: number): string {
  if (Math.abs(value) < 1000) return trimmed(value, 2);
  if (Math.abs(value) < 1_000_000) return `${trimmed(value / 1000, 1)}k`;
  return `${trimmed(value / 1_000_000, 1)}M`;
}

/** A size: `312 B`, `4.1 KB`. */
export function bytes(size: number | undefined): string {
  if (size === undefined) return "–";
  if (size < 1024) return `${size} B`;
  if (size < 1024 * 1024) return `${trimmed(size / 1024, 1)} KB`;
  return `${trimmed(size / 1024 / 1024, 1)} MB`;
}

/** A share of one: `12 %`. */
export function percent(share: number): string {
  return `${trimmed(share * 100, share > 0 && share < 0.1 ? 1 : 0)} %`;
}

function trimmed(value: number, digits: number): string {
  return String(Number(value.toFixed(digits)));
}
