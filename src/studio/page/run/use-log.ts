import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import type { RunLog } from "../../api.js";
import { get, runPath } from "../client/http.js";

/** A line of a log. */
export type LogLine = RunLog["lines"][number];

/** How many lines are kept, the newest. */
const MOST = 2000;
/** How many lines are requested at once. */
const PAGE = 1000;

/** The newest lines of a run's log; new ones are added whenever `turn` changes. */
export function useLog(
  runId: string,
  turn: unknown,
  hasLog: boolean,
): { lines: readonly LogLine[]; hasLog: boolean } {
  const [lines, setLines] = useState<readonly LogLine[]>([]);
  const [isThere, setThere] = useState(hasLog);
  const after = useRef<string | undefined>(undefined);
  const busy = useRef(false);
  // A request that outlived the screen would keep all of it in memory.
  const ending = useRef(new AbortController());
  useEffect(() => () => ending.current.abort(), []);
  const look = useCallback(async () => {
    if (busy.current) return;
    busy.current = true;
    try {
      for (;;) {
        const query = after.current === undefined ? "newest=true" : `after=${after.current}`;
        const path = runPath(runId, `log?${query}&limit=${PAGE}`);
        const page = await get<RunLog>(path, ending.current.signal);
        setThere(page.next !== undefined);
        if (page.lines.length > 0) setLines((before) => [...before, ...page.lines].slice(-MOST));
        after.current = page.next ?? after.current;
        if (page.lines.length === 0) break;
      }
    } catch {
      // The lines stay; the shell shows that the connection is lost.
    } finally {
      busy.current = false;
    }
  }, [runId]);
  useEffect(() => {
    if (hasLog) void look();
  }, [look, turn, hasLog]);
  return { lines, hasLog: isThere };
}
