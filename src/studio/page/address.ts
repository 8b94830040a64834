import { useEffect, useState } from "preact/hooks";

/** The screens of the page. */
export type Screen = "runs" | "run" | "compare" | "inbox" | "figures" | "unknown";

/** The address of a screen. It is entirely in the fragment, so that any screen can be shared. */
export interface Address {
  readonly screen: Screen;
  /** The run, on screens of one run; `""` elsewhere. */
  readonly id: string;
  /** The pause, in the inbox; `undefined` for all of them. */
  readonly pause: string | undefined;
  readonly query: URLSearchParams;
}

/** Parses a fragment. */
function parseAddress(fragment: string): Address {
  const [path = "", query = ""] = fragment.replace(/^#/, "").split("?", 2);
  const parts = path.split("/").filter(Boolean).map(decoded);
  const [first = "runs", id = "", pause] = parts;
  const at = { id, pause, query: new URLSearchParams(query) };
  if (first === "runs") return { screen: id === "" ? "runs" : "run", ...at };
  if (first === "compare" || first === "inbox" || first === "figures")
    return { screen: first, ...at };
  return { screen: "unknown", ...at };
}

/** The fragment of a screen; empty fields are omitted. */
export function href(
  path: readonly string[],
  query: Readonly<Record<string, string | readonly string[] | undefined>> = {},
): string {
  const params = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    for (const one of [value ?? []].flat()) if (one !== "") params.append(name, one);
  }
  const text = params.toString();
  return `#/${path.map(encodeURIComponent).join("/")}${text === "" ? "" : `?${text}`}`;
}

/** The fragment of a run's screen. */
export function runHref(
  runId: string,
  query?: Readonly<Record<string, string | undefined>>,
): string {
  return href(["runs", runId], query);
}

/** The full URL of a fragment, for copying. It never contains the token. */
export function linkTo(fragment: string): string {
  return `${location.origin}${location.pathname}${fragment}`;
}

const moved = "studio:moved";

/** Navigates to a fragment; `replace` adds no entry to the browser's history. */
export function go(fragment: string, { replace = false } = {}): void {
  if (fragment === location.hash) return;
  history[replace ? "replaceState" : "pushState"](null, "", fragment);
  dispatchEvent(new Event(moved));
}

/** Changes fields of the current address, without a history entry. */
export function amend(
  fields: Readonly<Record<string, string | readonly string[] | undefined>>,
): void {
  const [path = "#/", query = ""] = location.hash.split("?", 2);
  const params = new URLSearchParams(query);
  for (const [name, value] of Object.entries(fields)) {
    params.delete(name);
    for (const one of [value ?? []].flat()) if (one !== "") params.append(name, one);
  }
  const text = params.toString();
  go(`${path || "#/"}${text === "" ? "" : `?${text}`}`, { replace: true });
}

/** The current address; renders again when it changes. */
export function useAddress(): Address {
  const [fragment, setFragment] = useState(location.hash);
  useEffect(() => {
    const update = (): void => setFragment(location.hash);
    for (const event of ["hashchange", "popstate", moved]) addEventListener(event, update);
    return () => {
      for (const event of ["hashchange", "popstate", moved]) removeEventListener(event, update);
    };
  }, []);
  return parseAddress(fragment);
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
