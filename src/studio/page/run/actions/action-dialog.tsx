import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { shellWord } from "../../../../report/shell.js";
import type { ActionResult, RunHistory, RunView, StudioAction } from "../../../api.js";
import { go, runHref } from "../../address.js";
import { post, remove, runPath } from "../../client/http.js";
import type { Draft } from "../../forms/schema.js";
import { JsonField } from "../../forms/single-fields.js";
import { Confirm } from "../../parts/confirm.js";
import { useStudio } from "../../studio.js";
import type { Selection } from "../selection.js";

interface Wording {
  readonly title: string;
  readonly confirm: string;
  readonly text: string;
  /** What is said when it has happened. */
  readonly done: string;
}

const wordings: Readonly<Record<StudioAction, Wording>> = {
  resume: {
    title: "Resume this run?",
    confirm: "Resume",
    text: "It continues after its last saved step, in this studio's process or on a worker.",
    done: "The run continues.",
  },
  retry: {
    title: "Retry the failed node?",
    confirm: "Retry",
    text: "The node that failed runs again. What it did with once is not done twice.",
    done: "The node runs again.",
  },
  answer: {
    title: "Answer",
    confirm: "Send the answer",
    text: "",
    done: "The answer was sent.",
  },
  cancel: {
    title: "Cancel this run?",
    confirm: "Cancel the run",
    text: "It stops at the next point where it can be resumed. Nothing that was saved is lost.",
    done: "The run is being stopped.",
  },
  fork: {
    title: "Fork this run?",
    confirm: "Fork",
    text: "A new run starts from the checkpoint, with the data below merged into its own. Nothing runs until you resume it; this run stays as it is.",
    done: "This is the fork.",
  },
  replay: {
    title: "Replay from a checkpoint?",
    confirm: "Replay",
    text: "A fork is made at the checkpoint and runs at once. This run stays as it is.",
    done: "This is the replay.",
  },
  rollback: {
    title: "Roll this run back?",
    confirm: "Roll back",
    text: "The run continues from the checkpoint at its next resume. Its history stays.",
    done: "The run was set back.",
  },
  delete: {
    title: "Delete this run?",
    confirm: "Delete the run",
    text: "All its checkpoints and its log go with it. This can't be undone.",
    done: "The run was deleted.",
  },
};

const withCheckpoint: readonly StudioAction[] = ["fork", "replay", "rollback"];

/** Asks once, then does it. */
export function ActionDialog({
  action,
  command,
  view,
  history,
  selection,
  onClose,
  onDone,
}: {
  readonly action: StudioAction;
  readonly command: string;
  readonly view: RunView;
  readonly history: RunHistory | undefined;
  readonly selection: Selection;
  readonly onClose: () => void;
  readonly onDone: () => void;
}): JSX.Element {
  const { announce } = useStudio();
  const checkpoints = history?.checkpoints ?? [];
  const hasCheckpoint = withCheckpoint.includes(action);
  const usual = action === "rollback" && !selection.chosen ? checkpoints[1] : selection.checkpoint;
  const [at, setAt] = useState(usual?.checkpointId ?? view.checkpointId ?? "");
  const [data, setData] = useState<Draft>();
  const { title, confirm, text, done } = wordings[action];
  const { runId } = view.run;
  const act = async (): Promise<void> => {
    if (action === "delete") {
      await remove(runPath(runId));
      announce(done);
      go("#/runs");
      return;
    }
    const body = {
      ...(hasCheckpoint && at !== "" && { at }),
      ...(data !== undefined && { data }),
    };
    const result = await post<ActionResult>(runPath(runId, action), body);
    announce(done);
    onDone();
    if (result.runId !== runId) go(runHref(result.runId));
  };
  return (
    <Confirm
      title={title}
      confirm={confirm}
      danger={action === "delete"}
      command={commandFor(action, command, hasCheckpoint ? at : "", data)}
      act={act}
      onClose={onClose}
    >
      <p>{text}</p>
      {hasCheckpoint && (
        <label class="field">
          <span>Checkpoint</span>
          <select value={at} onChange={(event) => setAt(event.currentTarget.value)}>
            {checkpoints.slice(0, 500).map(({ checkpointId, sequence, step, node, reason }) => (
              <option key={checkpointId} value={checkpointId}>
                {`${sequence}: step ${step}, ${node === "" ? "start" : node}, ${reason}`}
              </option>
            ))}
          </select>
        </label>
      )}
      {(action === "fork" || action === "replay") && (
        <JsonField
          schema={{
            title: "Data to change",
            description: 'Keys to replace, as JSON: { "score": 1 }',
          }}
          name="data"
          path=""
          required={false}
          value={data}
          onChange={setData}
        />
      )}
    </Confirm>
  );
}

/** The command with the choices made here, where it has placeholders for them. */
function commandFor(action: StudioAction, command: string, at: string, data: Draft): string {
  const place = at === "" ? "" : ` --at ${shellWord(at)}`;
  const changes = data === undefined ? "" : ` --data ${shellWord(JSON.stringify(data))}`;
  const pairs = Object.entries(data ?? {}).map(([key, value]) => `${key}=${JSON.stringify(value)}`);
  const whole = command
    .replace(" --at CHECKPOINT", () => place)
    .replace(" --data JSON", () => changes);
  const sets = action === "replay" ? pairs.map((pair) => `--set ${shellWord(pair)}`) : [];
  return [whole, ...sets].join(" ");
}
