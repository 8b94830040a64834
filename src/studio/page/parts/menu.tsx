import type { ComponentChildren, JSX } from "preact";
import { useEffect, useId, useLayoutEffect, useRef, useState } from "preact/hooks";

/** The space that a panel leaves to the edge of the window, in pixels. */
const EDGE = 8;

/** A button that opens a panel under it; Escape, or a click elsewhere, closes it. */
export function Menu({
  label,
  title,
  kind = "",
  children,
}: {
  /** What the button shows. */
  readonly label: ComponentChildren;
  /** What a screen reader calls it, where the label is no text. */
  readonly title?: string;
  readonly kind?: string;
  readonly children: (close: () => void) => ComponentChildren;
}): JSX.Element {
  const [open, setOpen] = useState(false);
  const root = useRef<HTMLDivElement>(null);
  const button = useRef<HTMLButtonElement>(null);
  const panel = useRef<HTMLDivElement>(null);
  const id = useId();
  const close = (): void => {
    setOpen(false);
    button.current?.focus();
  };
  useEffect(() => {
    if (!open) return;
    const outside = (event: Event): void => {
      if (!root.current?.contains(event.target as Node)) setOpen(false);
    };
    const onKey = (event: KeyboardEvent): void => {
      if (event.key === "Escape") close();
    };
    addEventListener("pointerdown", outside);
    addEventListener("keydown", onKey);
    return () => {
      removeEventListener("pointerdown", outside);
      removeEventListener("keydown", onKey);
    };
  }, [open]);
  // A button near the left edge has its panel to the right.
  useLayoutEffect(() => {
    const { left = 0 } = panel.current?.getBoundingClientRect() ?? {};
    if (left < EDGE && panel.current !== null) panel.current.style.right = `${left - EDGE}px`;
  }, [open]);
  return (
    <div class={`menu ${kind}`} ref={root}>
      <button
        type="button"
        ref={button}
        class={title === undefined ? "" : "square"}
        aria-expanded={open}
        aria-controls={id}
        aria-label={title}
        title={title}
        onClick={() => setOpen(!open)}
      >
        {label}
      </button>
      {open && (
        <div class="menu-panel" id={id} ref={panel}>
          {children(close)}
        </div>
      )}
    </div>
  );
}
