import type { ComponentChildren, JSX } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import { Icon } from "./icon.js";

/** A modal dialog with a heading, open as long as it is there. */
export function Dialog({
  title,
  onClose,
  children,
}: {
  readonly title: string;
  readonly onClose: () => void;
  readonly children: ComponentChildren;
}): JSX.Element {
  return (
    <Modal label={title} onClose={onClose}>
      <header class="dialog-head">
        <h2>{title}</h2>
        <button type="button" class="plain square" aria-label="Close" onClick={onClose}>
          <Icon name="cross" />
        </button>
      </header>
      {children}
    </Modal>
  );
}

/** A modal dialog, open as long as it is there. */
export function Modal({
  label,
  kind = "",
  onClose,
  children,
}: {
  readonly label: string;
  /** The name of its class. */
  readonly kind?: string;
  readonly onClose: () => void;
  readonly children: ComponentChildren;
}): JSX.Element {
  const dialog = useRef<HTMLDialogElement>(null);
  useLayoutEffect(() => {
    const element = dialog.current;
    element?.showModal();
    // Closing it, rather than only removing it, gives the focus back to what had it before.
    return () => element?.close();
  }, []);
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: Escape closes a dialog by itself; the click is on what lies around it.
    <dialog
      ref={dialog}
      class={`dialog ${kind}`}
      aria-label={label}
      // One that is gone has been closed already.
      onClose={() => dialog.current !== null && onClose()}
      onClick={(event) => {
        if (event.target === dialog.current) onClose();
      }}
    >
      <div class="dialog-body">{children}</div>
    </dialog>
  );
}
