import { useEffect, useState } from "preact/hooks";

/** The screens of the page. */
export type Screen = "runs" | "run" | "compare" | "inbox" | "figures" | "unknown";

/** Where the page is: all of it is in the fragment of the address, so that any screen can be shared. */
export interface Address {
  readonly screen: Screen;
  /** The run, on screens of one run; `""` elsewhere. */
  readonly id: string;
  /** The pause, in the inbox; `undefined` for all of them. */
  readonly pause: string | undefined;
  readonly query: URLSearchParams;
}

/** Where a fragment leads. */
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

/** The fragment that leads to a screen; fields that are empty are left out. */
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

/** The screen of a run. */
export function runHref(
  runId: string,
  query?: Readonly<Record<string, string | undefined>>,
): string {
  return href(["runs", runId], query);
}

/** The whole address of a fragment, to be copied; it never has the token. */
export function linkTo(fragment: string): string {
  return `${location.origin}${location.pathname}${fragment}`;
}

const moved = "studio:moved";

/** Goes to a fragment; `replace` leaves no entry in the browser's history. */
export function go(fragment: string, { replace = false } = {}): void {
  if (fragment === location.hash) return;
  history[replace ? "replaceState" : "pushState"](null, "", fragment);
  dispatchEvent(new Event(moved));
}

/** Changes fields of the address in place. */
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

/** Where the page is, and a new rendering when that changes. */
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
