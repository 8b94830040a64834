import type { JSX } from "preact";

/** SVG paths in a 16 × 16 view box. */
const lines = {
  check: "M3.5 8.5l3 3 6-7",
  cross: "M4 4l8 8M12 4l-8 8",
  pause: "M5.5 3.5v9M10.5 3.5v9",
  more: "M3.5 8h.01M8 8h.01M12.5 8h.01",
  search: "M7 2.5a4.5 4.5 0 1 0 0 9 4.5 4.5 0 0 0 0-9zM10.5 10.5l3 3",
  copy: "M5.5 5.5v-3h8v8h-3M2.5 5.5h8v8h-8z",
  link: "M6.5 9.5l3-3M7 4.5l1.5-1.5a3 3 0 0 1 4.5 4.5L11.5 9M9 11.5L7.5 13A3 3 0 0 1 3 8.5L4.5 7",
  down: "M4 6l4 4 4-4",
  right: "M6 4l4 4-4 4",
  left: "M10 4L6 8l4 4",
  plus: "M8 3v10M3 8h10",
  minus: "M3 8h10",
  fit: "M2.5 6V2.5H6M10 2.5h3.5V6M13.5 10v3.5H10M6 13.5H2.5V10",
  sun: "M8 5.2a2.8 2.8 0 1 0 0 5.6 2.8 2.8 0 0 0 0-5.6zM8 1.5v1M8 13.5v1M1.5 8h1M13.5 8h1M3.4 3.4l.7.7M11.9 11.9l.7.7M3.4 12.6l.7-.7M11.9 4.1l.7-.7",
  moon: "M13 9.5A5.5 5.5 0 0 1 6.5 3a5.5 5.5 0 1 0 6.5 6.5z",
  system: "M8 2.5a5.5 5.5 0 1 0 0 11zM8 2.5a5.5 5.5 0 0 1 0 11",
  warning: "M8 2.5l6 11H2zM8 6.5v3M8 11.6v.01",
  lock: "M4 7.5h8v6H4zM5.5 7.5V5a2.5 2.5 0 0 1 5 0v2.5",
  lost: "M2.5 2.5l11 11M3 7a8 8 0 0 1 2.5-1.7M13 7a8 8 0 0 0-3.5-2M5.5 9.7A4 4 0 0 1 8 8.7M8 12.5h.01",
  compare: "M2.5 4.5h7M7 2l2.5 2.5L7 7M13.5 11.5h-7M9 9l-2.5 2.5L9 14",
  trash: "M3 4.5h10M6.5 4.5v-2h3v2M4.5 4.5l.5 9h6l.5-9",
  inbox: "M2.5 9.5l2-6h7l2 6v4h-11zM2.5 9.5h3.5a2 2 0 0 0 4 0h3.5",
  runs: "M2.5 4h11M2.5 8h11M2.5 12h11",
  figures: "M3 13V8M8 13V3M13 13V6",
  refresh: "M13 8a5 5 0 1 1-1.5-3.5M13 2.5v3h-3",
} as const;

/** The name of an icon. */
export type IconName = keyof typeof lines;

/** An icon beside a text with the same meaning; hidden from screen readers. */
export function Icon({ name }: { readonly name: IconName }): JSX.Element {
  return (
    <svg class="icon" viewBox="0 0 16 16" aria-hidden="true" focusable="false">
      <path d={lines[name]} />
    </svg>
  );
}

/** A cairn, the logo of waymark. */
export function Cairn(): JSX.Element {
  return (
    <svg class="cairn" viewBox="0 0 32 32" aria-hidden="true" focusable="false">
      <ellipse cx="16" cy="27" rx="13" ry="4" />
      <ellipse cx="16" cy="19" rx="9.5" ry="3.6" />
      <ellipse cx="16" cy="12" rx="6.5" ry="3" />
      <ellipse cx="16" cy="6" rx="3.8" ry="2.6" />
    </svg>
  );
}
