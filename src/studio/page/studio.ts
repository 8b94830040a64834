import { createContext } from "preact";
import { useContext, useEffect, useRef } from "preact/hooks";
import type { StudioEvent, StudioSession } from "../api.js";
import type { LiveStatus } from "./client/live.js";

/** Something the palette offers. */
export interface Choice {
  readonly title: string;
  /** What it belongs to: `Go to`, `This run`, `Runs`. */
  readonly group: string;
  /** What is shown beside it. */
  readonly hint?: string;
  readonly choose: () => void;
}

/** What every screen shares. */
export interface Studio {
  readonly session: StudioSession;
  readonly status: LiveStatus;
  /** Calls a handler for each event of the stream, until the returned function is called. */
  readonly subscribe: (handler: (event: StudioEvent) => void) => () => void;
  /** Offers choices in the palette, until the returned function is called. */
  readonly offer: (choices: () => readonly Choice[]) => () => void;
  /** Says that something was done, to eyes and to screen readers. */
  readonly announce: (text: string) => void;
}

/** Filled by the app. */
export const StudioContext = createContext<Studio | undefined>(undefined);

/** What every screen shares. */
export function useStudio(): Studio {
  const studio = useContext(StudioContext);
  if (studio === undefined) throw new Error("a screen must be inside the app");
  return studio;
}

/** Handles the events of the stream while it is shown. */
export function useEvents(handler: (event: StudioEvent) => void): void {
  const { subscribe } = useStudio();
  const newest = useRef(handler);
  newest.current = handler;
  useEffect(() => subscribe((event) => newest.current(event)), [subscribe]);
}

/** Offers choices in the palette while it is shown. */
export function useChoices(choices: () => readonly Choice[]): void {
  const { offer } = useStudio();
  const newest = useRef(choices);
  newest.current = choices;
  useEffect(() => offer(() => newest.current()), [offer]);
}
