import type { JSX } from "preact";
import type { RunRow } from "../../api.js";

/** How a run or a node is marked: a run's statuses, and marks that only the page uses. */
export type Mark = RunRow["status"] | "stopped" | "corrupt" | "next" | "none";

const words: Readonly<Record<Mark, string>> = {
  pending: "pending",
  in_progress: "running",
  paused: "paused",
  completed: "completed",
  failed: "failed",
  stopped: "stopped",
  corrupt: "corrupt",
  next: "next",
  none: "not reached",
};

/** The word for a status. */
export function statusWord(mark: Mark): string {
  return words[mark];
}

/** The shape of a status, in its colour. */
export function StatusShape({ mark }: { readonly mark: Mark }): JSX.Element {
  return (
    <svg class={`shape ${mark}`} viewBox="0 0 16 16" aria-hidden="true" focusable="false">
      {shapes[mark]()}
    </svg>
  );
}

/** The shape of a status with its word. */
export function Status({ mark }: { readonly mark: Mark }): JSX.Element {
  return (
    <span class={`status ${mark}`}>
      <StatusShape mark={mark} />
      {words[mark]}
    </span>
  );
}

// Distinct without colour: a disc with a check, a square with a cross, bars, a moving arc, rings. Functions, since an
// element that outlives the screen it was last rendered in keeps all of that screen in memory.
const shapes: Readonly<Record<Mark, () => JSX.Element>> = {
  completed: () => (
    <>
      <circle class="fill" cx="8" cy="8" r="7" />
      <path class="cut-out" d="M4.8 8.3l2.2 2.2 4.2-4.8" />
    </>
  ),
  failed: () => (
    <>
      <rect class="fill" x="1.5" y="1.5" width="13" height="13" rx="2.5" />
      <path class="cut-out" d="M5.4 5.4l5.2 5.2M10.6 5.4l-5.2 5.2" />
    </>
  ),
  paused: () => (
    <>
      <rect class="fill" x="2.5" y="2" width="4" height="12" rx="1" />
      <rect class="fill" x="9.5" y="2" width="4" height="12" rx="1" />
    </>
  ),
  in_progress: () => (
    <>
      <circle class="track" cx="8" cy="8" r="6" />
      <path class="arc" d="M8 2a6 6 0 0 1 6 6" />
      <circle class="fill" cx="8" cy="8" r="2" />
    </>
  ),
  stopped: () => (
    <>
      <circle class="ring" cx="8" cy="8" r="6" />
      <rect class="fill" x="5.5" y="5.5" width="5" height="5" rx="0.5" />
    </>
  ),
  pending: () => <circle class="ring" cx="8" cy="8" r="5.5" />,
  next: () => <circle class="ring dashed" cx="8" cy="8" r="5.5" />,
  none: () => <circle class="fill" cx="8" cy="8" r="2" />,
  corrupt: () => (
    <>
      <path class="fill" d="M8 1.5l7 13H1z" />
      <path class="cut-out" d="M8 6v4M8 12v.01" />
    </>
  ),
};
