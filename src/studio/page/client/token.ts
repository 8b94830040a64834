/** The token lives here and nowhere else: no cookie, no storage, no address. */
let token = "";

/** Takes the token out of the fragment of the printed link, and the fragment out of the address. */
export function takeToken(): void {
  const match = /(?:^#|[?&])token=([^&]*)/.exec(location.hash);
  if (match === null) return;
  try {
    token = decodeURIComponent(match[1] ?? "");
  } catch {
    token = match[1] ?? "";
  }
  const rest = location.hash.replace(match[0], match[0].startsWith("?") ? "?" : "");
  const path = rest.startsWith("#/") ? rest.replace(/\?$/, "").replace("?&", "?") : "#/";
  history.replaceState(null, "", path);
}

/** The token that requests carry; `""` if there is none. */
export function currentToken(): string {
  return token;
}

/** Uses another token, which a person has typed. */
export function setToken(typed: string): void {
  // A whole link is as good as the token in it.
  token = /token=([^&\s]+)/.exec(typed)?.[1] ?? typed.trim();
}
