import { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { RunLog } from "../../api.js";
import { get, runPath } from "../client/http.js";
import { type InnerMarks, pathKey } from "./graph/model.js";

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

/** What the log shows of the nodes inside nodes. */
export function useInnerMarks(lines: readonly LogLine[]): InnerMarks {
  return useMemo(() => {
    const marks = new Map<
      string,
      { mark: "completed" | "failed" | "in_progress"; visits: number }
    >();
    for (const { event, path, error } of lines) {
      if (!Array.isArray(path)) continue;
      if (event !== "node.start" && event !== "node.complete") continue;
      const key = pathKey(path.map(String));
      const { visits } = marks.get(key) ?? { visits: 0 };
      const isDone = event === "node.complete" && error === undefined;
      const mark = isDone ? "completed" : event === "node.start" ? "in_progress" : "failed";
      marks.set(key, { mark, visits: visits + Number(isDone) });
    }
    return marks;
  }, [lines]);
}
