import type { JSX } from "preact";
import type { RunRow } from "../../api.js";
import { age, count, duration, moment, money } from "../format.js";

/** A column that can be shown or left out. */
export interface Column {
  readonly key: string;
  readonly title: string;
  readonly kind: "text" | "number";
  readonly cell: (run: RunRow, now: number) => JSX.Element | string;
}

/** The columns that every store has. */
const own: readonly Column[] = [
  { key: "phase", title: "Phase", kind: "text", cell: ({ phase }) => phase || "–" },
  { key: "steps", title: "Steps", kind: "number", cell: steps },
  {
    key: "started",
    title: "Started",
    kind: "number",
    cell: ({ startedAt }, now) => <Time time={startedAt} now={now} />,
  },
  {
    key: "saved",
    title: "Saved",
    kind: "number",
    cell: ({ savedAt }, now) => <Time time={savedAt} now={now} />,
  },
  {
    key: "elapsed",
    title: "Elapsed",
    kind: "number",
    cell: (run) => duration(elapsedOf(run)),
  },
  {
    key: "cost",
    title: "Cost",
    kind: "number",
    cell: ({ costUsd }) => money(costUsd ?? undefined),
  },
];

/** A moment as its age, in full when pointed at. */
export function Time({ time, now }: { readonly time: string; readonly now: number }): JSX.Element {
  return (
    <time dateTime={time} title={moment(time)}>
      {age(time, now)}
    </time>
  );
}

/** From its start to its last save; `undefined` for a run of which no times are known. */
export function elapsedOf({ startedAt, elapsedMs }: RunRow): number | undefined {
  return startedAt === "" ? undefined : elapsedMs;
}

function steps({ step, maxSteps }: RunRow): string {
  return maxSteps === null ? count(step) : `${count(step)}/${count(maxSteps)}`;
}

/** The columns for these runs: those of every store, and one for each key of their metadata, the most common first. */
export function columnsOf(runs: readonly RunRow[]): readonly Column[] {
  const counts = new Map<string, number>();
  for (const key of runs.flatMap(({ metadata }) => Object.keys(metadata))) {
    counts.set(key, (counts.get(key) ?? 0) + 1);
  }
  const keys = [...counts].sort(([a, m], [b, n]) => n - m || (a < b ? -1 : 1)).map(([key]) => key);
  return [
    ...own,
    ...keys.map<Column>((key) => ({
      key: `metadata.${key}`,
      title: key,
      kind: "text",
      cell: ({ metadata }) => (Object.hasOwn(metadata, key) ? String(metadata[key]) : "–"),
    })),
  ];
}

const KEY = "waymark-columns";

/** Which columns the person has switched on or off in this browser. */
export function storedColumns(): Readonly<Record<string, boolean>> {
  try {
    const value: unknown = JSON.parse(localStorage.getItem(KEY) ?? "{}");
    return typeof value === "object" && value !== null ? (value as Record<string, boolean>) : {};
  } catch {
    return {};
  }
}

/** Remembers them. */
export function storeColumns(chosen: Readonly<Record<string, boolean>>): void {
  try {
    localStorage.setItem(KEY, JSON.stringify(chosen));
  } catch {
    // A browser that keeps nothing has them until the page is closed.
  }
}

const MAX_METADATA_COLUMNS = 2;

/** Those of the columns that are shown: what was chosen, else all of the store's and the first of the metadata. */
export function shownColumns(
  columns: readonly Column[],
  runs: readonly RunRow[],
  chosen: Readonly<Record<string, boolean>>,
): readonly Column[] {
  let metadata = 0;
  return columns.filter(({ key }) => {
    const isMetadata = key.startsWith("metadata.");
    const usual = isMetadata
      ? ++metadata <= MAX_METADATA_COLUMNS
      : key !== "phase" || runs.some(({ phase }) => phase !== "");
    return chosen[key] ?? usual;
  });
}
