import type { JSX } from "preact";
import { useEffect, useId, useMemo, useState } from "preact/hooks";
import type { RunsPage } from "../../api.js";
import { go, href, runHref } from "../address.js";
import { useGet, useSettled } from "../client/hooks.js";
import { Modal } from "../parts/dialog.js";
import { statusWord } from "../parts/status.js";
import { markOf } from "../runs/runs-table.js";
import type { Choice } from "../studio.js";

const screens: readonly Choice[] = [
  { title: "Runs", group: "Go to", hint: "g r", choose: () => go("#/runs") },
  { title: "Inbox", group: "Go to", hint: "g i", choose: () => go("#/inbox") },
  { title: "Figures", group: "Go to", hint: "g f", choose: () => go("#/figures") },
  {
    title: "Failed runs",
    group: "Go to",
    choose: () => go(href(["runs"], { status: "failed" })),
  },
];

/** Search over screens, what can be done here, and runs. */
export function Palette({
  choices,
  onClose,
}: {
  readonly choices: () => readonly Choice[];
  readonly onClose: () => void;
}): JSX.Element {
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const id = useId();
  const offered = useMemo(choices, [choices]);
  const query = useSettled(text.trim());
  const { data } = useGet<RunsPage>(
    `runs?limit=8${query === "" ? "" : `&q=${encodeURIComponent(query)}`}`,
  );
  const runs = (data?.runs ?? []).map<Choice>((run) => ({
    title: run.runId,
    group: "Runs",
    hint: [run.graph, statusWord(markOf(run))].filter(Boolean).join(" · "),
    choose: () => go(runHref(run.runId)),
  }));
  const wanted = text.trim().toLowerCase();
  const fits = ({ title, group }: Choice): boolean =>
    `${group} ${title}`.toLowerCase().includes(wanted);
  // Until the server has looked for it, what it last found is narrowed here.
  const isAhead = query !== text.trim();
  const matching = isAhead ? runs.filter(fits) : runs;
  const found = [...[...offered, ...screens].filter(fits), ...matching];
  const current = Math.min(at, Math.max(0, found.length - 1));
  const choose = (choice: Choice | undefined): void => {
    if (choice === undefined) return;
    onClose();
    choice.choose();
  };
  const move = (by: number): void => setAt((current + by + found.length) % found.length);
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.key === "ArrowDown") move(1);
    else if (event.key === "ArrowUp") move(-1);
    else if (event.key === "Enter") choose(found[current]);
    else return;
    event.preventDefault();
  };
  useEffect(() => {
    document.getElementById(`${id}-${current}`)?.scrollIntoView({ block: "nearest" });
  }, [id, current]);
  return (
    <Modal label="Search and commands" kind="palette" onClose={onClose}>
      <input
        type="text"
        role="combobox"
        aria-label="Search runs and commands"
        aria-expanded="true"
        aria-controls={`${id}-list`}
        aria-activedescendant={found.length === 0 ? undefined : `${id}-${current}`}
        placeholder="Search runs and commands"
        autocomplete="off"
        spellcheck={false}
        value={text}
        onInput={(event) => {
          setText(event.currentTarget.value);
          setAt(0);
        }}
        onKeyDown={onKeyDown}
      />
      <div class="palette-list" id={`${id}-list`} role="listbox" aria-label="Results">
        {found.map((choice, index) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: the keys are those of the field above, as a combobox has them.
          // biome-ignore lint/a11y/useFocusableInteractive: so is the focus.
          <div
            key={`${choice.group} ${choice.title}`}
            id={`${id}-${index}`}
            role="option"
            aria-selected={index === current}
            class="option"
            onClick={() => choose(choice)}
            onPointerMove={() => setAt(index)}
          >
            <span class="muted option-group">
              {found[index - 1]?.group === choice.group ? "" : choice.group}
            </span>
            <span class={choice.group === "Runs" ? "mono cut" : "cut"}>{choice.title}</span>
            <span class="muted hint">{choice.hint}</span>
          </div>
        ))}
      </div>
      {found.length === 0 && <p class="muted palette-none">Nothing is called that.</p>}
    </Modal>
  );
}
