import type { JSX } from "preact";
import type { RunHistory, StateDifference, ValueChange } from "../../../api.js";
import { useGet } from "../../client/hooks.js";
import { runPath } from "../../client/http.js";
import { Loading, Problem } from "../../parts/states.js";
import { preview } from "../../values/tagged.js";

type Checkpoint = RunHistory["checkpoints"][number];

/** The difference of two checkpoints of a run, by path. */
export function Difference({
  runId,
  one,
  other,
}: {
  readonly runId: string;
  readonly one: Checkpoint;
  readonly other: Checkpoint | undefined;
}): JSX.Element {
  const [from, to] =
    other !== undefined && other.sequence > one.sequence ? [one, other] : [other, one];
  const query = new URLSearchParams({ from: from?.checkpointId ?? "", to: to.checkpointId });
  const { data, failure } = useGet<StateDifference>(
    from === undefined ? undefined : runPath(runId, `diff?${query}`),
  );
  return (
    <div class="difference">
      <h3>
        {from === undefined ? "The first checkpoint" : `From ${from.sequence} to ${to.sequence}`}
      </h3>
      {from === undefined && <p class="muted">There is no earlier checkpoint to compare with.</p>}
      {failure !== undefined && <Problem failure={failure} />}
      {from !== undefined && data === undefined && failure === undefined && <Loading lines={3} />}
      {data !== undefined && <Changes difference={data} />}
    </div>
  );
}

/** A list of changes. */
export function Changes({ difference }: { readonly difference: StateDifference }): JSX.Element {
  const { more } = difference;
  const isData = ({ path }: ValueChange): number => Number(!path.startsWith("data"));
  const changes = [...difference.changes].sort((a, b) => isData(a) - isData(b));
  if (changes.length === 0) return <p class="muted">No data has changed.</p>;
  return (
    <>
      <ul class="changes" aria-label="Changes">
        {changes.map((change) => (
          <Change key={change.path} change={change} />
        ))}
      </ul>
      {more && <p class="muted">There are more than {changes.length} changes.</p>}
    </>
  );
}

const signs = { add: "+", remove: "−", change: "~" } as const;
const words = { add: "added", remove: "removed", change: "changed" } as const;

function Change({ change }: { readonly change: ValueChange }): JSX.Element {
  const { op, path, before, after } = change;
  return (
    <li class={`change ${op}`}>
      <span class="sign" role="img" aria-label={words[op]}>
        {signs[op]}
      </span>
      <span class="path">{path}</span>
      <span class="sides">
        {op !== "add" && <del>{preview(before, 160)}</del>}
        {op === "change" && <span aria-hidden="true"> → </span>}
        {op !== "remove" && <ins>{preview(after, 160)}</ins>}
      </span>
    </li>
  );
}
