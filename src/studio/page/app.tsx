import type { JSX } from "preact";
import { useCallback, useMemo, useRef, useState } from "preact/hooks";
import type { StudioEvent, StudioSession } from "../api.js";
import { type Address, useAddress } from "./address.js";
import { useGet, useLive } from "./client/hooks.js";
import { currentToken } from "./client/token.js";
import { FiguresScreen } from "./figures/figures-screen.js";
import { InboxScreen } from "./inbox/inbox-screen.js";
import { Blank, Failed } from "./parts/states.js";
import { RunScreen } from "./run/run-screen.js";
import { CompareScreen } from "./runs/compare-screen.js";
import { RunsScreen } from "./runs/runs-screen.js";
import { EmptyShell, Shell } from "./shell/shell.js";
import { SignIn } from "./shell/sign-in.js";
import { type Choice, type Studio, StudioContext } from "./studio.js";

/** The page: a shell around one screen, once the token is accepted. */
export function App(): JSX.Element {
  const [token, setToken] = useState(0);
  const { data: session, failure, reload } = useGet<StudioSession>(`session?${token || ""}`);
  if (session !== undefined) return <Open session={session} />;
  if (failure?.kind === "unauthorized") return <SignIn onToken={() => setToken(token + 1)} />;
  if (failure !== undefined) {
    return (
      <main class="alone">
        <Failed failure={failure} onRetry={reload} />
      </main>
    );
  }
  // Without a token, the next thing to show is most likely the sign-in, not the shell.
  return currentToken() === "" ? <main class="alone" aria-busy="true" /> : <EmptyShell />;
}

function Open({ session }: { readonly session: StudioSession }): JSX.Element {
  // Read here, so that each address creates a new element: the shell's `children` keep the last rendered tree in memory.
  const address = useAddress();
  const [said, setSaid] = useState("");
  const handlers = useRef(new Set<(event: StudioEvent) => void>());
  const offers = useRef(new Set<() => readonly Choice[]>());
  const status = useLive((event) => {
    for (const handler of handlers.current) handler(event);
  });
  const subscribe = useCallback((handler: (event: StudioEvent) => void) => {
    handlers.current.add(handler);
    return () => void handlers.current.delete(handler);
  }, []);
  const offer = useCallback((choices: () => readonly Choice[]) => {
    offers.current.add(choices);
    return () => void offers.current.delete(choices);
  }, []);
  const announce = useCallback((text: string) => {
    setSaid(text);
    setTimeout(() => setSaid((now) => (now === text ? "" : now)), 4000);
  }, []);
  const studio = useMemo<Studio>(
    () => ({ session, status, subscribe, offer, announce }),
    [session, status, subscribe, offer, announce],
  );
  return (
    <StudioContext.Provider value={studio}>
      <Shell
        address={address}
        said={said}
        choices={() => [...offers.current].flatMap((choices) => choices())}
      >
        <CurrentScreen address={address} />
      </Shell>
    </StudioContext.Provider>
  );
}

function CurrentScreen({ address }: { readonly address: Address }): JSX.Element {
  switch (address.screen) {
    case "runs":
      return <RunsScreen query={address.query} />;
    case "run":
      return <RunScreen key={address.id} runId={address.id} query={address.query} />;
    case "compare":
      return <CompareScreen query={address.query} />;
    case "inbox":
      return <InboxScreen runId={address.id} pause={address.pause} query={address.query} />;
    case "figures":
      return <FiguresScreen query={address.query} />;
    default:
      return (
        <Blank icon="search" title="There is no such page">
          <a href="#/runs">All runs</a>
        </Blank>
      );
  }
}
