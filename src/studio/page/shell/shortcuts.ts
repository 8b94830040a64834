import { useEffect, useRef } from "preact/hooks";

const targets: Readonly<Record<string, string>> = { r: "runs", i: "inbox", f: "figures" };

/** The keys that work on every screen. */
export function useShortcuts(actions: {
  readonly palette: () => void;
  readonly keys: () => void;
  readonly go: (screen: string) => void;
}): void {
  const newest = useRef(actions);
  newest.current = actions;
  useEffect(() => {
    let leader = false;
    const onKey = (event: KeyboardEvent): void => {
      if ((event.metaKey || event.ctrlKey) && event.key.toLowerCase() === "k") {
        event.preventDefault();
        newest.current.palette();
        return;
      }
      if (isTyping(event)) return;
      const target = leader ? targets[event.key] : undefined;
      leader = event.key === "g";
      if (target !== undefined) newest.current.go(target);
      if (event.key === "?") newest.current.keys();
      if (event.key === "/") {
        const search = document.querySelector<HTMLInputElement>("main input[type=search]");
        if (search === null) return;
        event.preventDefault();
        search.focus();
      }
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, []);
}

/** Calls a handler for a key that nothing else uses, while it is shown. */
export function useKey(handler: (event: KeyboardEvent) => void): void {
  const newest = useRef(handler);
  newest.current = handler;
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      if (!isTyping(event)) newest.current(event);
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, []);
}

function isTyping(event: KeyboardEvent): boolean {
  const target = event.target as HTMLElement;
  const isField = target.matches("input:not([type=checkbox]), textarea, select");
  const isModal = document.querySelector("dialog[open]") !== null;
  return isField || isModal || event.metaKey || event.ctrlKey || event.altKey;
}
