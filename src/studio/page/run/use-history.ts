import { useMemo, useState } from "preact/hooks";
import type { RunHistory } from "../../api.js";
import { type Loaded, useGet } from "../client/hooks.js";
import { runPath } from "../client/http.js";

/** How many checkpoints are loaded at first, and added each time more are wanted. */
const PART = 1000;

/** The newest checkpoints of a run, and after them those that the address names, however old. */
export function useHistory(
  runId: string,
  query: URLSearchParams,
): Loaded<RunHistory> & { readonly more: () => void } {
  const [limit, setLimit] = useState(PART);
  const newest = useGet<RunHistory>(runPath(runId, `history?limit=${limit}`));
  const selected = useGet<RunHistory>(olderPath(runId, query.get("at"), newest.data));
  const compared = useGet<RunHistory>(olderPath(runId, query.get("with"), newest.data));
  const data = useMemo(() => {
    if (newest.data === undefined) return undefined;
    const all = [newest, selected, compared].flatMap((one) => one.data?.checkpoints ?? []);
    const bySequence = new Map(all.map((one) => [one.sequence, one]));
    const checkpoints = [...bySequence.values()].sort((a, b) => b.sequence - a.sequence);
    return { ...newest.data, checkpoints };
  }, [newest.data, selected.data, compared.data]);
  return { ...newest, data, more: () => setLimit(limit + PART) };
}

/** Where to find a checkpoint that is older than those that are loaded, and the one before it. */
function olderPath(
  runId: string,
  named: string | null,
  newest: RunHistory | undefined,
): string | undefined {
  const sequence = Number(named);
  const oldest = newest?.checkpoints.at(-1)?.sequence ?? 0;
  if (!Number.isSafeInteger(sequence) || sequence < 1 || sequence >= oldest) return undefined;
  return runPath(runId, `history?before=${sequence + 1}&limit=2`);
}
