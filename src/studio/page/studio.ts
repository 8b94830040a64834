import { createContext } from "preact";
import { useContext, useEffect, useRef } from "preact/hooks";
import type { StudioEvent, StudioSession } from "../api.js";
import type { LiveStatus } from "./client/live.js";

/** An entry of the palette. */
export interface Choice {
  readonly title: string;
  /** Its group: `Go to`, `This run`, `Runs`. */
  readonly group: string;
  /** The text beside it. */
  readonly hint?: string;
  readonly choose: () => void;
}

/** What every screen shares. */
export interface Studio {
  readonly session: StudioSession;
  readonly status: LiveStatus;
  /** Calls a handler for each event, until the returned function is called. */
  readonly subscribe: (handler: (event: StudioEvent) => void) => () => void;
  /** Adds choices to the palette, until the returned function is called. */
  readonly offer: (choices: () => readonly Choice[]) => () => void;
  /** Announces that something was done, visibly and to screen readers. */
  readonly announce: (text: string) => void;
}

/** Provided by the app. */
export const StudioContext = createContext<Studio | undefined>(undefined);

/** What every screen shares. */
export function useStudio(): Studio {
  const studio = useContext(StudioContext);
  if (studio === undefined) throw new Error("a screen must be inside the app");
  return studio;
}

/** Handles events while the component is mounted. */
export function useEvents(handler: (event: StudioEvent) => void): void {
  const { subscribe } = useStudio();
  const newest = useRef(handler);
  newest.current = handler;
  useEffect(() => subscribe((event) => newest.current(event)), [subscribe]);
}

/** Adds choices to the palette while the component is mounted. */
export function useChoices(choices: () => readonly Choice[]): void {
  const { offer } = useStudio();
  const newest = useRef(choices);
  newest.current = choices;
  useEffect(() => offer(() => newest.current()), [offer]);
}
