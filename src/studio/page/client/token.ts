/** The token is kept only here: not in a cookie, in storage, or in the address. */
let token = "";

/** Takes the token from the fragment of the printed link, and removes it from the address. */
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

/** The token for requests; `""` if there is none. */
export function currentToken(): string {
  return token;
}

/** Sets the token that a person has typed. */
export function setToken(typed: string): void {
  // It may also be the whole link.
  token = /token=([^&\s]+)/.exec(typed)?.[1] ?? typed.trim();
}
