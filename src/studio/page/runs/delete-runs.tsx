import type { JSX } from "preact";
import { shellWord } from "../../../report/shell.js";
import { remove, runPath } from "../client/http.js";
import { Confirm } from "../parts/confirm.js";
import { useStudio } from "../studio.js";

/** Asks once, then deletes runs with all their checkpoints. */
export function DeleteRuns({
  runIds,
  onClose,
  onDone,
}: {
  readonly runIds: readonly string[];
  readonly onClose: () => void;
  readonly onDone: () => void;
}): JSX.Element {
  const { announce, session } = useStudio();
  const what = runIds.length === 1 ? "this run" : `${runIds.length} runs`;
  return (
    <Confirm
      title={`Delete ${what}?`}
      confirm={`Delete ${what}`}
      danger
      command={`waymark delete ${runIds.map(shellWord).join(" ")} --store ${shellWord(session.store)}`}
      onClose={onClose}
      act={async () => {
        for (const runId of runIds) await remove(runPath(runId));
        announce(
          runIds.length === 1 ? "The run was deleted." : `${runIds.length} runs were deleted.`,
        );
        onDone();
      }}
    >
      <p>All their checkpoints go with them. This can't be undone.</p>
      <ul class="names mono">
        {runIds.slice(0, 8).map((runId) => (
          <li key={runId} class="cut">
            {runId}
          </li>
        ))}
        {runIds.length > 8 && <li class="muted">and {runIds.length - 8} more</li>}
      </ul>
    </Confirm>
  );
}
