import type { StudioEvent } from "../../api.js";
import { apiUrl, failureOf, headers, type RequestFailure, unreachable } from "./http.js";
import { MessageReader } from "./sse.js";

/** The state of a stream. */
export type LiveStatus = "connecting" | "live" | "lost" | "refused";

const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 10_000;

/** Handlers of a stream. */
export interface LiveHandlers {
  onEvent(event: StudioEvent): void;
  onStatus(status: LiveStatus): void;
}

/**
 * Follows `GET /api/events` until it is closed. After a lost connection it continues after the last event that arrived.
 * Uses fetch, since `EventSource` can't send the token in a header.
 */
export function follow({ onEvent, onStatus }: LiveHandlers): () => void {
  const ending = new AbortController();
  const { signal } = ending;
  let lastId = "";
  let wait = FIRST_WAIT_MS;

  const connect = async (): Promise<void> => {
    const response = await fetch(apiUrl("events"), {
      signal,
      cache: "no-store",
      credentials: "omit",
      headers: headers({
        accept: "text/event-stream",
        ...(lastId !== "" && { "last-event-id": lastId }),
      }),
    });
    if (!response.ok || response.body === null) throw await failureOf(response);
    onStatus("live");
    wait = FIRST_WAIT_MS;
    const messages = new MessageReader();
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      for (const { id, event, data } of messages.add(value)) {
        if (id !== "") lastId = id;
        onEvent({ event, data: JSON.parse(data) } as StudioEvent);
      }
    }
  };

  const keep = async (): Promise<void> => {
    onStatus("connecting");
    while (!signal.aborted) {
      const failure = await connect().then(
        () => unreachable(),
        (error: unknown) => error,
      );
      if (signal.aborted) return;
      if (isRefusal(failure)) return onStatus("refused");
      onStatus("lost");
      await sleep(wait, signal);
      wait = Math.min(wait * 2, LONGEST_WAIT_MS);
    }
  };
  void keep();
  return () => ending.abort();
}

function isRefusal(failure: unknown): boolean {
  const kind = (failure as Partial<RequestFailure>).kind;
  return kind === "unauthorized" || kind === "forbidden" || kind === "missing";
}

/** Waits; ends early when the browser is online again or the page becomes visible. */
function sleep(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const wake = (): void => {
      clearTimeout(timer);
      removeEventListener("online", wake);
      document.removeEventListener("visibilitychange", wake);
      signal.removeEventListener("abort", wake);
      resolve();
    };
    const timer = setTimeout(wake, ms);
    addEventListener("online", wake);
    document.addEventListener("visibilitychange", wake);
    signal.addEventListener("abort", wake);
  });
}
