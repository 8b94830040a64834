import type { ComponentChildren, JSX } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import { useSubmit } from "../client/hooks.js";
import { Command } from "./command.js";
import { Dialog } from "./dialog.js";
import { Problem } from "./states.js";

/** Asks once before something is done, and shows the command that does the same. */
export function Confirm({
  title,
  confirm,
  command,
  danger = false,
  act,
  onClose,
  children,
}: {
  readonly title: string;
  /** What the button says. */
  readonly confirm: string;
  /** What does the same in a terminal; `""` if nothing does. */
  readonly command: string;
  readonly danger?: boolean;
  /** Does it. What it throws is shown, and it can be tried again. */
  readonly act: () => Promise<unknown>;
  readonly onClose: () => void;
  readonly children?: ComponentChildren;
}): JSX.Element {
  const { busy, failure, submit } = useSubmit(act);
  const first = useRef<HTMLButtonElement>(null);
  // Enter does what was asked for, but never what can't be undone.
  useLayoutEffect(() => first.current?.focus(), []);
  return (
    <Dialog title={title} onClose={onClose}>
      <form class="form" noValidate onSubmit={submit}>
        {children}
        {failure !== undefined && <Problem failure={failure} />}
        {command !== "" && (
          <div class="same">
            <span class="muted">The same from a terminal</span>
            <Command command={command} />
          </div>
        )}
        <div class="form-end">
          <button type="button" class="plain" ref={danger ? first : null} onClick={onClose}>
            Keep as it is
          </button>
          <button
            type="submit"
            class={danger ? "danger primary" : "primary"}
            ref={danger ? null : first}
            disabled={busy}
          >
            {busy ? "Working…" : confirm}
          </button>
        </div>
      </form>
    </Dialog>
  );
}
