import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { TaggedValue, ValueView } from "../../api.js";
import type { RequestFailure } from "../client/http.js";
import { count } from "../format.js";
import { Icon } from "../parts/icon.js";
import { LongText } from "../parts/long-text.js";
import {
  cut,
  type Entry,
  type Key,
  preview,
  quoted,
  type Shown,
  shapeOf,
  shownOf,
  textOf,
} from "./tagged.js";

/** Fetches what was too large for the answer. */
export type FetchValue = (path: readonly Key[], from: number) => Promise<ValueView>;

/** How many entries of a container are shown before a person asks for more. */
const PART = 100;
const LONG_TEXT = 240;
const LONG_KEY = 120;

/** A value and all that is inside it. */
export function ValueTree({
  entries,
  path,
  open = 1,
  fetchValue,
  label,
}: {
  readonly entries: readonly Entry[];
  /** What leads to these. */
  readonly path: readonly Key[];
  /** How many levels are open at first. */
  readonly open?: number;
  readonly fetchValue?: FetchValue;
  readonly label: string;
}): JSX.Element {
  return (
    <ul class="tree" aria-label={label}>
      <Entries entries={entries} path={path} open={open} fetchValue={fetchValue} />
    </ul>
  );
}

interface Inside {
  readonly path: readonly Key[];
  readonly open: number;
  readonly fetchValue: FetchValue | undefined;
}

function Entries({
  entries,
  path,
  open,
  fetchValue,
}: Inside & { readonly entries: readonly Entry[] }) {
  const [most, setMost] = useState(PART);
  return (
    <>
      {entries.slice(0, most).map((entry) => (
        <Branch
          key={entry.keys.join("\0")}
          label={entry.label}
          value={entry.value}
          path={[...path, ...entry.keys]}
          open={open}
          fetchValue={fetchValue}
        />
      ))}
      {entries.length > most && (
        <li>
          <button type="button" class="plain more" onClick={() => setMost(most + PART * 5)}>
            {count(entries.length - most)} more
          </button>
        </li>
      )}
    </>
  );
}

function Branch({
  label,
  value,
  path,
  open,
  fetchValue,
}: Inside & { readonly label: string; readonly value: TaggedValue | undefined }): JSX.Element {
  const shown = shownOf(value);
  const [isOpen, setOpen] = useState(open > 0 && shown.entries.length <= PART);
  if (shown.kind === "large") {
    return <Large label={label} shown={shown} path={path} open={open} fetchValue={fetchValue} />;
  }
  if (shown.entries.length === 0) {
    return (
      <li class="leaf">
        <Label text={label} />
        <Leaf shown={shown} />
      </li>
    );
  }
  return (
    <li>
      <button type="button" class="branch" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        <Icon name="right" />
        <Label text={label} />
        <span class={`value ${shown.kind}`}>{isOpen ? shown.text : preview(value)}</span>
      </button>
      {isOpen && (
        <ul>
          <Entries entries={shown.entries} path={path} open={open - 1} fetchValue={fetchValue} />
        </ul>
      )}
    </li>
  );
}

function Label({ text }: { readonly text: string }): JSX.Element {
  return (
    <>
      <span class="key" title={text.length > LONG_KEY ? text : undefined}>
        {cut(text, LONG_KEY)}
      </span>
      <span class="colon">: </span>
    </>
  );
}

/** A value that holds no other. */
function Leaf({ shown }: { readonly shown: Shown }): JSX.Element {
  const { kind, text } = shown;
  if (kind === "redacted") return <span class="value redacted">redacted</span>;
  if (kind === "date") {
    return (
      <time class="value date" dateTime={text} title={`Date ${text}`}>
        {text}
      </time>
    );
  }
  const line = kind === "string" ? quoted(text) : text;
  return (
    <span class={`value ${kind}`}>
      <LongText text={line} most={LONG_TEXT} whole={text} />
    </span>
  );
}

/** A value that was too large for the answer: fetched piece by piece when a person asks for it. */
function Large({
  label,
  shown,
  path,
  open,
  fetchValue,
}: Inside & { readonly label: string; readonly shown: Shown }): JSX.Element {
  const [pieces, setPieces] = useState<readonly ValueView[]>([]);
  const [problem, setProblem] = useState("");
  const last = pieces.at(-1);
  const load = (): void => {
    setProblem("");
    fetchValue?.(path, last?.next ?? 0).then(
      (piece) => setPieces([...pieces, piece]),
      (failure: RequestFailure) => setProblem(failure.message),
    );
  };
  const { large } = shown;
  const texts = pieces.flatMap(({ value }) => textOf(value) ?? []);
  return (
    <li class="leaf">
      <Label text={label} />
      <span class="value large">{large && shapeOf(large)}</span>{" "}
      {texts.length > 0 && <pre class="piece">{texts.join("")}</pre>}
      {texts.length === 0 && last !== undefined && (
        <ul>
          {pieces.map((piece) => (
            <Entries
              key={piece.from}
              entries={moved(shownOf(piece.value).entries, piece.from)}
              path={path}
              open={Math.min(open - 1, 0)}
              fetchValue={fetchValue}
            />
          ))}
        </ul>
      )}
      {fetchValue !== undefined && (last === undefined || last.next !== undefined) && (
        <button type="button" class="plain more" onClick={load}>
          {last === undefined ? "Show" : `More, from ${count(last.next)}`}
        </button>
      )}
      {problem !== "" && <span class="refused">{problem}</span>}
    </li>
  );
}

/** Entries of a piece, with the indexes that they have in the whole. */
function moved(entries: readonly Entry[], from: number): readonly Entry[] {
  if (from === 0) return entries;
  return entries.map((entry) => {
    const at = entry.keys.findIndex((key) => typeof key === "number");
    const keys = entry.keys.map((key, index) => (index === at ? Number(key) + from : key));
    // The entry of a Map is named by its key, that of an array by its index.
    const isIndex = at === keys.length - 1;
    return { ...entry, keys, label: isIndex ? String(keys[at]) : entry.label };
  });
}
