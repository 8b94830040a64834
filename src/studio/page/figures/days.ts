import type { DayFigures } from "../../api.js";
import { count, money, percent } from "../format.js";
import type { PlotBar } from "./plots.js";

const DAY_MS = 86_400_000;
const MOST_DAYS = 30;

/** The newest days up to the last one with runs, those without runs too; at least a week. */
export function filledDays(days: readonly DayFigures[]): DayFigures[] {
  const [first, last] = [days[0], days.at(-1)];
  if (last === undefined || first === undefined) return [];
  const known = new Map(days.map((day) => [day.day, day]));
  const end = Date.parse(last.day);
  const span = Math.round((end - Date.parse(first.day)) / DAY_MS) + 1;
  const length = Math.min(MOST_DAYS, Math.max(7, span));
  return Array.from({ length }, (_, index) => {
    const day = new Date(end - (length - 1 - index) * DAY_MS).toISOString().slice(0, 10);
    return known.get(day) ?? { day, runs: 0, completed: 0, failed: 0, costUsd: 0 };
  });
}

function dayLabel(day: string): string {
  return new Date(`${day}T12:00:00Z`).toLocaleDateString("en", { month: "short", day: "numeric" });
}

/** How many runs started on a day, by how they ended. */
export function runsBar({ day, runs, completed, failed }: DayFigures): PlotBar {
  const label = dayLabel(day);
  return {
    label,
    text: `${label}: ${count(runs)} runs, ${count(completed)} completed, ${count(failed)} failed`,
    parts: [
      { kind: "failed", value: failed },
      { kind: "completed", value: completed },
      { kind: "open", value: Math.max(0, runs - completed - failed) },
    ],
  };
}

/** Which part of the runs that ended failed. */
export function failureBar({ day, completed, failed }: DayFigures): PlotBar {
  const ended = completed + failed;
  const rate = ended === 0 ? 0 : failed / ended;
  const label = dayLabel(day);
  return {
    label,
    text: `${label}: ${ended === 0 ? "none ended" : percent(rate)}`,
    parts: [{ kind: "failed", value: rate }],
  };
}

/** What the runs of a day cost. */
export function costBar({ day, costUsd }: DayFigures): PlotBar {
  const label = dayLabel(day);
  return {
    label,
    text: `${label}: ${money(costUsd)}`,
    parts: [{ kind: "cost", value: costUsd }],
  };
}
