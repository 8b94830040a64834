import { Fragment, type JSX } from "preact";
import { useState } from "preact/hooks";
import { Icon } from "./icon.js";

/** A button that copies a text. */
export function Copy({
  text,
  label,
  icon = "copy",
  children,
}: {
  readonly text: string;
  /** What a screen reader says. */
  readonly label: string;
  readonly icon?: "copy" | "link";
  readonly children?: string;
}): JSX.Element {
  const [done, setDone] = useState(false);
  const copy = async (): Promise<void> => {
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      copyBySelection(text);
    }
    setDone(true);
    setTimeout(() => setDone(false), 1500);
  };
  return (
    <button
      type="button"
      class={children === undefined ? "plain square" : "plain"}
      aria-label={done ? "Copied" : label}
      title={label}
      onClick={copy}
    >
      <Icon name={done ? "check" : icon} />
      {children !== undefined && (done ? "Copied" : children)}
    </button>
  );
}

/** The command that does the same, to be copied. */
export function Command({ command }: { readonly command: string }): JSX.Element {
  return (
    <div class="command">
      <code class="mono">
        {command.split(" ").map((word, index) => (
          <Fragment key={index}>
            {index > 0 && " "}
            <span>{word}</span>
          </Fragment>
        ))}
      </code>
      <Copy text={command} label="Copy the command" />
    </div>
  );
}

/** Where the page is not trusted with the clipboard, on plain HTTP beyond loopback. */
function copyBySelection(text: string): void {
  const area = document.createElement("textarea");
  area.value = text;
  area.className = "unseen";
  document.body.append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
}
