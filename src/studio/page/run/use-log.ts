import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import type { RunLog } from "../../api.js";
import { get, runPath } from "../client/http.js";

/** A line of a log. */
export type LogLine = RunLog["lines"][number];

/** At most so many lines are kept, the newest. */
const MOST = 2000;

/** The lines of a run's log; what is new since the last look is added. `turn` changes when there may be more. */
export function useLog(
  runId: string,
  turn: unknown,
  hasLog: boolean,
): { lines: readonly LogLine[]; hasLog: boolean } {
  const [lines, setLines] = useState<readonly LogLine[]>([]);
  const [isThere, setThere] = useState(hasLog);
  const after = useRef(0);
  const busy = useRef(false);
  const look = useCallback(async () => {
    if (busy.current) return;
    busy.current = true;
    try {
      for (;;) {
        const page = await get<RunLog>(runPath(runId, `log?after=${after.current}&limit=1000`));
        setThere(page.next !== undefined);
        if (page.lines.length > 0) setLines((before) => [...before, ...page.lines].slice(-MOST));
        if (page.next === undefined || page.lines.length === 0) break;
        after.current = page.next;
      }
    } catch {
      // What is shown stays; the shell says that the connection is lost.
    } finally {
      busy.current = false;
    }
  }, [runId]);
  // A new turn looks again.
  useEffect(() => {
    if (hasLog) void look();
  }, [look, turn, hasLog]);
  return { lines, hasLog: isThere };
}
