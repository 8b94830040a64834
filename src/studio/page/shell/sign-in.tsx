import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { currentToken, setToken } from "../client/token.js";
import { Cairn } from "../parts/icon.js";

/** What somebody sees who came without a token: by a shared link, or after a reload. */
export function SignIn({ onToken }: { readonly onToken: () => void }): JSX.Element {
  const [typed, setTyped] = useState("");
  const wasRefused = currentToken() !== "";
  return (
    <main class="alone">
      <form
        class="sign-in"
        onSubmit={(event) => {
          event.preventDefault();
          setToken(typed);
          onToken();
        }}
      >
        <Cairn />
        <h1>waymark studio</h1>
        <p>
          Open the link that <code class="mono">waymark studio</code> printed, or paste that link or
          its token here. This page forgets it when it is closed.
        </p>
        <label>
          <span>Token</span>
          <input
            type="password"
            class="mono"
            autocomplete="off"
            required
            value={typed}
            aria-invalid={wasRefused}
            onInput={(event) => setTyped(event.currentTarget.value)}
          />
        </label>
        {wasRefused && (
          <p class="refused" role="alert">
            The studio does not know this token. Each start of the studio prints a new one.
          </p>
        )}
        <button type="submit" class="primary">
          Open the studio
        </button>
      </form>
    </main>
  );
}
