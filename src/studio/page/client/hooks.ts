import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import type { StudioEvent } from "../../api.js";
import { get, type RequestFailure } from "./http.js";
import { follow, type LiveStatus } from "./live.js";

/** The state of a request. */
export interface Loaded<T> {
  /** The latest response; kept while a newer one is loading. */
  readonly data: T | undefined;
  readonly failure: RequestFailure | undefined;
  readonly loading: boolean;
  /** Requests again; throttled, however often it is called. */
  readonly reload: () => void;
}

const RELOAD_PAUSE_MS = 250;

/** Requests `GET api/<path>`; does nothing while the path is `undefined`. */
export function useGet<T>(path: string | undefined): Loaded<T> {
  const [answer, setAnswer] = useState<{
    readonly path: string | undefined;
    readonly data?: T;
    readonly failure?: RequestFailure;
  }>({ path });
  const [turn, setTurn] = useState(0);
  const due = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  const isBusy = useRef(false);
  const isStale = useRef(false);
  useEffect(() => {
    if (path === undefined) return;
    const ending = new AbortController();
    isBusy.current = true;
    isStale.current = false;
    get<T>(path, ending.signal)
      .then(
        (data) => setAnswer({ path, data }),
        (failure: RequestFailure) => {
          if (ending.signal.aborted) return;
          setAnswer((before) => ({ ...(before.path === path ? before : {}), path, failure }));
        },
      )
      .finally(() => {
        if (ending.signal.aborted) return;
        isBusy.current = false;
        if (isStale.current) setTurn((before) => before + 1);
      });
    return () => {
      isBusy.current = false;
      ending.abort();
    };
  }, [path, turn]);
  useEffect(() => () => clearTimeout(due.current), []);
  const reload = useCallback(() => {
    due.current ??= setTimeout(() => {
      due.current = undefined;
      // Not aborted: otherwise a response that takes longer than the time between two events would never arrive.
      if (isBusy.current) isStale.current = true;
      else setTurn((before) => before + 1);
    }, RELOAD_PAUSE_MS);
  }, []);
  const isOwn = answer.path === path;
  const data = isOwn ? answer.data : undefined;
  const failure = isOwn ? answer.failure : undefined;
  return { data, failure, loading: path !== undefined && !data && !failure, reload };
}

/** Follows the changes of all runs while the component is mounted. */
export function useLive(onEvent: (event: StudioEvent) => void): LiveStatus {
  const [status, setStatus] = useState<LiveStatus>("connecting");
  const handler = useRef(onEvent);
  handler.current = onEvent;
  useEffect(() => follow({ onEvent: (event) => handler.current(event), onStatus: setStatus }), []);
  return status;
}

/** Submits a form: whether it is being sent, and why it failed. It can be submitted again. */
export function useSubmit(act: () => Promise<unknown>): {
  readonly busy: boolean;
  readonly failure: RequestFailure | undefined;
  readonly submit: (event: Event) => Promise<void>;
} {
  const [busy, setBusy] = useState(false);
  const [failure, setFailure] = useState<RequestFailure>();
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault();
    // The fields say what is wrong with them, where they are.
    const wrong = (event.currentTarget as HTMLFormElement).querySelector<HTMLElement>(
      ":is(input, select, textarea):invalid",
    );
    wrong?.focus();
    if (wrong !== null) return;
    setBusy(true);
    setFailure(undefined);
    try {
      await act();
    } catch (error) {
      setFailure(error as RequestFailure);
    } finally {
      setBusy(false);
    }
  };
  return { busy, failure, submit };
}

const SETTLED_MS = 200;

/** A text, once it has not changed for a moment. */
export function useSettled(text: string): string {
  const [settled, setSettled] = useState(text);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(text), SETTLED_MS);
    return () => clearTimeout(timer);
  }, [text]);
  return settled;
}

const QUIET_RELOAD_MS = 15_000;

/** Reloads every 15 seconds, since no event reports that a worker died or that an old run was deleted elsewhere. */
export function useQuietReload(reload: () => void): void {
  const newest = useRef(reload);
  newest.current = reload;
  useEffect(() => {
    const timer = setInterval(() => {
      if (document.visibilityState === "visible") newest.current();
    }, QUIET_RELOAD_MS);
    return () => clearInterval(timer);
  }, []);
}

/** The current time, updated regularly so that ages stay correct. */
export function useNow(everyMs = 10_000): number {
  const [now, setNow] = useState(() => Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), everyMs);
    return () => clearInterval(timer);
  }, [everyMs]);
  return now;
}
