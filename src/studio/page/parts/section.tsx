import type { ComponentChildren, JSX } from "preact";
import { useId } from "preact/hooks";

/** A part of a screen under its own heading. */
export function Section({
  title,
  kind = "",
  note,
  tools,
  children,
}: {
  readonly title: string;
  /** The name of its class. */
  readonly kind?: string;
  /** What is said beside the heading. */
  readonly note?: ComponentChildren;
  /** What stands at the end of its line. */
  readonly tools?: ComponentChildren;
  readonly children: ComponentChildren;
}): JSX.Element {
  const id = useId();
  return (
    <section class={`section ${kind}`} aria-labelledby={id}>
      <header class="section-head">
        <h2 id={id} class="cut" title={title}>
          {title}
        </h2>
        <span class="muted cut">{note}</span>
        {tools !== undefined && <div class="section-tools">{tools}</div>}
      </header>
      {children}
    </section>
  );
}
