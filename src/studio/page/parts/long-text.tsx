import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { count } from "../format.js";

/** The beginning of a text, and all of it when a person asks for it. */
export function LongText({
  text,
  most = 600,
  whole = text,
}: {
  readonly text: string;
  /** So many characters are the beginning. */
  readonly most?: number;
  /** What all of it is, if that is written otherwise. */
  readonly whole?: string;
}): JSX.Element {
  const [all, setAll] = useState(false);
  if (text.length <= most) return <>{text}</>;
  return (
    <>
      {all ? whole : `${text.slice(0, most)}…`}{" "}
      <button type="button" class="plain more" onClick={() => setAll(!all)}>
        {all ? "less" : `all ${count(whole.length)} characters`}
      </button>
    </>
  );
}
