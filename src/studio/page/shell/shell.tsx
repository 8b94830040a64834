import type { ComponentChildren, JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { Inbox } from "../../api.js";
import { type Address, go, type Screen } from "../address.js";
import { useGet } from "../client/hooks.js";
import { Cairn, Icon, type IconName } from "../parts/icon.js";
import { type Choice, useEvents, useStudio } from "../studio.js";
import { type Theme, useTheme } from "../theme.js";
import { Keys } from "./keys.js";
import { Palette } from "./palette.js";
import { useShortcuts } from "./shortcuts.js";

const places: readonly {
  readonly name: string;
  readonly href: string;
  readonly icon: IconName;
  readonly screens: readonly Screen[];
}[] = [
  { name: "Runs", href: "#/runs", icon: "runs", screens: ["runs", "run", "compare"] },
  { name: "Inbox", href: "#/inbox", icon: "inbox", screens: ["inbox"] },
  { name: "Figures", href: "#/figures", icon: "figures", screens: ["figures"] },
];

/** What is around every screen. */
export function Shell({
  address: { screen, id },
  said,
  choices,
  children,
}: {
  readonly address: Address;
  /** What was just done. */
  readonly said: string;
  readonly choices: () => readonly Choice[];
  readonly children: ComponentChildren;
}): JSX.Element {
  const { session, status } = useStudio();
  const [open, setOpen] = useState<"palette" | "keys">();
  const close = (): void => setOpen(undefined);
  useShortcuts({
    palette: () => setOpen("palette"),
    keys: () => setOpen("keys"),
    go: (to) => go(`#/${to}`),
  });
  useEffect(() => {
    const place = places.find(({ screens }) => screens.includes(screen))?.name ?? "";
    document.title = [id, place, "waymark"].filter(Boolean).join(" · ");
  }, [screen, id]);
  return (
    <>
      <button type="button" class="skip" onClick={skipToContent}>
        Skip to content
      </button>
      <header class="top">
        <a class="brand" href="#/runs" aria-label="waymark, all runs">
          <Brand />
        </a>
        <span class="store mono cut" title={session.store}>
          {session.store}
        </span>
        <nav class="places" aria-label="Studio">
          {places.map(({ name, href, icon, screens }) => (
            <a key={name} href={href} aria-current={screens.includes(screen) ? "page" : undefined}>
              <Icon name={icon} />
              {name}
              {name === "Inbox" && <InboxCount />}
            </a>
          ))}
        </nav>
        <div class="tools">
          {session.readOnly && (
            <span class="badge">
              <Icon name="lock" />
              read-only
            </span>
          )}
          <button
            type="button"
            class="plain palette-button"
            title="Search and commands"
            onClick={() => setOpen("palette")}
          >
            <Icon name="search" />
            <span class="unseen">Search and commands</span>
            <kbd>{isMac() ? "⌘K" : "Ctrl K"}</kbd>
          </button>
          <ThemeSwitch />
        </div>
      </header>
      {(status === "lost" || status === "refused") && (
        <p class="lost" role="status">
          <Icon name="lost" />
          {status === "lost"
            ? "Disconnected. This is what was last known; the page reconnects by itself."
            : "The studio was started anew. Open the link that it printed."}
        </p>
      )}
      <main id="content" tabIndex={-1}>
        {children}
      </main>
      <div class={`said${said === "" ? "" : " shown"}`} role="status">
        {said}
      </div>
      {open === "palette" && <Palette choices={choices} onClose={close} />}
      {open === "keys" && <Keys onClose={close} />}
    </>
  );
}

/** What is there before the studio has answered: as much of the header as is always the same. */
export function EmptyShell(): JSX.Element {
  return (
    <>
      <header class="top">
        <span class="brand">
          <Brand />
        </span>
      </header>
      <main aria-busy="true" />
    </>
  );
}

function Brand(): JSX.Element {
  return (
    <>
      <Cairn />
      <span>waymark</span>
    </>
  );
}

function InboxCount(): JSX.Element | null {
  const { data, reload } = useGet<Inbox>("inbox");
  useEvents(reload);
  const count = data?.pauses.length ?? 0;
  if (count === 0) return null;
  return (
    <span class="count">
      {data?.more ? `${count}+` : count}
      <span class="unseen"> open</span>
    </span>
  );
}

const themes: readonly (readonly [theme: Theme, icon: IconName])[] = [
  ["system", "system"],
  ["light", "sun"],
  ["dark", "moon"],
];

function ThemeSwitch(): JSX.Element {
  const [theme, choose] = useTheme();
  const at = themes.findIndex(([name]) => name === theme);
  const [next] = themes[(at + 1) % themes.length] ?? ["system"];
  return (
    <button
      type="button"
      class="plain square"
      aria-label={`Theme: ${theme}. Change to ${next}`}
      title={`Theme: ${theme}`}
      onClick={() => choose(next)}
    >
      <Icon name={themes[at]?.[1] ?? "system"} />
    </button>
  );
}

function skipToContent(): void {
  document.getElementById("content")?.focus();
}

function isMac(): boolean {
  return /Mac|iPhone|iPad/.test(navigator.userAgent);
}
