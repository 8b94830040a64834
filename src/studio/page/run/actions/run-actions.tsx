import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { RunHistory, RunView, StudioAction } from "../../../api.js";
import { linkTo, runHref } from "../../address.js";
import { Copy } from "../../parts/command.js";
import { Icon } from "../../parts/icon.js";
import { Menu } from "../../parts/menu.js";
import { useChoices } from "../../studio.js";
import type { Selection } from "../selection.js";
import { ActionDialog } from "./action-dialog.js";

const titles: Readonly<Record<StudioAction, string>> = {
  resume: "Resume",
  retry: "Retry",
  answer: "Answer",
  cancel: "Cancel",
  fork: "Fork",
  replay: "Replay from a checkpoint",
  rollback: "Roll back",
  delete: "Delete",
};

/** Those with a button of their own, the most pressing first; the others are in the menu. */
const prominent: readonly StudioAction[] = ["retry", "resume", "cancel", "fork"];

/** What can be done with a run. */
export function RunActions({
  view,
  history,
  selection,
  onDone,
}: {
  readonly view: RunView;
  readonly history: RunHistory | undefined;
  readonly selection: Selection;
  readonly onDone: () => void;
}): JSX.Element {
  const [asked, setAsked] = useState<StudioAction>();
  const possible = view.actions.filter(({ action }) => action !== "answer");
  const buttons = prominent.filter((name) => possible.some(({ action }) => action === name));
  const others = possible.filter(({ action }) => !buttons.includes(action));
  const current = view.actions.find(({ action }) => action === asked);
  const [first] = buttons;
  useChoices(() =>
    possible.map(({ action }) => ({
      title: titles[action],
      group: "This run",
      choose: () => setAsked(action),
    })),
  );
  return (
    <div class="actions">
      {buttons.map((action) => (
        <button
          key={action}
          type="button"
          class={action === first && action !== "fork" && action !== "cancel" ? "primary" : ""}
          onClick={() => setAsked(action)}
        >
          {titles[action]}
        </button>
      ))}
      <Menu label={<Icon name="more" />} title="More actions" kind="right">
        {(close) => (
          <>
            {others.map(({ action }) => (
              <button
                key={action}
                type="button"
                class={`plain ${action === "delete" ? "danger" : ""}`}
                onClick={() => {
                  close();
                  setAsked(action);
                }}
              >
                {titles[action]}
              </button>
            ))}
            <Copy
              text={linkTo(runHref(view.run.runId))}
              label="Copy a link to this run"
              icon="link"
            >
              Copy a link
            </Copy>
            <Copy text={view.run.runId} label="Copy the run's id">
              Copy the id
            </Copy>
          </>
        )}
      </Menu>
      {asked !== undefined && current !== undefined && (
        <ActionDialog
          action={asked}
          command={current.command}
          view={view}
          history={history}
          selection={selection}
          onClose={() => setAsked(undefined)}
          onDone={() => {
            setAsked(undefined);
            onDone();
          }}
        />
      )}
    </div>
  );
}
