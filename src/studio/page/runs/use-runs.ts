import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import type { RunRow, RunsPage } from "../../api.js";
import { useQuietReload } from "../client/hooks.js";
import { get, type RequestFailure } from "../client/http.js";
import { useEvents } from "../studio.js";

/** How many runs a page has. */
const PAGE = 50;
/** A search that finds little looks through many runs; after so many requests it asks whether to look further. */
const MAX_REQUESTS = 20;
const RELOAD_PAUSE_MS = 400;

/** A page of runs, as far as it has been found. */
export interface RunsList {
  readonly runs: readonly RunRow[] | undefined;
  readonly next: string | undefined;
  readonly failure: RequestFailure | undefined;
  /** Whether it was stopped before its end was reached. */
  readonly stopped: boolean;
  /** How many runs have been looked at. */
  readonly scanned: number;
  readonly stop: () => void;
  /** How often something has changed since the list was loaded, while it is not live. */
  readonly changes: number;
  readonly reload: () => void;
}

/** The runs that a query finds; while `live`, loaded again when one changes. */
export function useRuns(query: string, live: boolean): RunsList {
  const [found, setFound] =
    useState<Omit<RunsList, "changes" | "reload" | "scanned" | "stop">>(nothing);
  const [changes, setChanges] = useState(0);
  const [scanned, setScanned] = useState(0);
  const [turn, setTurn] = useState(0);
  const stop = useRef(() => {});
  const due = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  const last = useRef(query);
  const busy = useRef(false);
  // A new turn loads again.
  useEffect(() => {
    const ending = new AbortController();
    if (last.current !== query) setFound(nothing);
    last.current = query;
    busy.current = true;
    let soFar: RunsPage = { runs: [], scanned: 0 };
    setScanned(0);
    stop.current = () => {
      ending.abort();
      busy.current = false;
      setFound({ ...nothing, runs: soFar.runs, next: soFar.next, stopped: true });
    };
    const onPage = (page: RunsPage): void => {
      soFar = page;
      setScanned(page.scanned);
    };
    load(query, ending.signal, onPage)
      .then(
        ({ runs, next }) => {
          setFound({ ...nothing, runs, next });
          setChanges(0);
        },
        (failure: RequestFailure) => {
          if (!ending.signal.aborted) setFound((before) => ({ ...before, failure }));
        },
      )
      .finally(() => {
        if (!ending.signal.aborted) busy.current = false;
      });
    return () => ending.abort();
  }, [query, turn]);
  useEffect(() => () => clearTimeout(due.current), []);
  const reload = useCallback(() => {
    const again = (): void => {
      due.current = undefined;
      // In a busy store a search would otherwise begin again and again, and never end.
      if (busy.current) due.current = setTimeout(again, RELOAD_PAUSE_MS);
      else setTurn((before) => before + 1);
    };
    due.current ??= setTimeout(again, RELOAD_PAUSE_MS);
  }, []);
  const follows = live && !found.stopped;
  useEvents(() => (follows ? reload() : setChanges((before) => before + 1)));
  useQuietReload(() => follows && reload());
  return { ...found, scanned, stop: () => stop.current(), changes, reload };
}

const nothing = { runs: undefined, next: undefined, failure: undefined, stopped: false };

async function load(
  query: string,
  signal: AbortSignal,
  onPage: (soFar: RunsPage) => void,
): Promise<RunsPage> {
  const params = new URLSearchParams(query);
  params.set("limit", String(PAGE));
  const runs: RunRow[] = [];
  let scanned = 0;
  let next: string | undefined;
  for (let requests = 0; requests < MAX_REQUESTS; requests++) {
    if (next !== undefined) params.set("cursor", next);
    params.set("limit", String(PAGE - runs.length));
    const page = await get<RunsPage>(`runs?${params}`, signal);
    runs.push(...page.runs);
    next = page.next;
    scanned += page.scanned;
    onPage({ runs: [...runs], scanned, ...(next !== undefined && { next }) });
    if (next === undefined || runs.length >= PAGE) break;
  }
  return { runs, scanned, ...(next !== undefined && { next }) };
}
