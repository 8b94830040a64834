import type { RunStatus } from "../../state/record.js";
import type { Io, Output } from "../io.js";

/** A text style. */
export type Look = "bold" | "dim" | "red" | "green" | "yellow" | "cyan";

const codes: Readonly<Record<Look, number>> = {
  bold: 1,
  dim: 90,
  red: 31,
  green: 32,
  yellow: 33,
  cyan: 36,
};

/** Styles text, or returns it unchanged. */
export type Paint = (look: Look | undefined, text: string) => string;

/** Styles text on a terminal, unless NO_COLOR or `--no-color` is set. */
export function painter(output: Output, env: Io["env"], wanted: boolean): Paint {
  const isOn = wanted && output.isTTY === true && !env.NO_COLOR && env.TERM !== "dumb";
  return (look, text) =>
    isOn && look !== undefined ? `\u001b[${codes[look]}m${text}\u001b[0m` : text;
}

const looks: Readonly<Record<RunStatus | "unreadable", Look>> = {
  completed: "green",
  failed: "red",
  paused: "yellow",
  in_progress: "cyan",
  pending: "dim",
  unreadable: "red",
};

/** The style of a run's status. */
export function lookOf(status: string): Look | undefined {
  return Object.hasOwn(looks, status) ? looks[status as keyof typeof looks] : undefined;
}

/** A status as text. A run in progress may have been abandoned. */
export function statusText(status: string, live: boolean | null): string {
  if (status !== "in_progress" || live === null) return status;
  return `${status}, ${live ? "live" : "stopped"}`;
}
