import { isoNow } from "../../clock.js";
import { progressOf, withProgress } from "../../state/derive.js";
import type { State } from "../../state/state.js";
import { noFailedAttempts, noItems } from "../../state/steps.js";

/** The checkpoint reasons of an unfinished run that was stopped, or created, on purpose. */
const deliberate: ReadonlySet<string> = new Set(["abort", "cancel", "fork", "rollback"]);

/** Whether the process that last saved a State died in the middle of the run. */
export function hasCrashed<D extends object>({ status, reason }: State<D>): boolean {
  // A failed run stays `failed` until it advances, so only the reason shows that it was resumed.
  if (status === "failed") return reason === "resume" || reason === "recovery";
  return status === "in_progress" && !deliberate.has(reason);
}

/** The same State with the crash counted, and with the restart noted for the node that begins again. */
export function withCrash<D extends object>(state: State<D>, entry: string): State<D> {
  const { crashes, begun, unfinished, nextNode, checkpointNode } = progressOf(state);
  const node = unfinished?.node ?? nextNode ?? (checkpointNode === "" ? entry : undefined);
  if (node === undefined) return withProgress(state, { crashes: crashes + 1 });
  const known =
    begun?.node === node
      ? begun
      : {
          ...{ node, startedAt: isoNow(), durationMs: 0, attempts: 0, restarts: 0 },
          failedAttempts: noFailedAttempts,
          usage: undefined,
          items: noItems,
        };
  return withProgress(state, {
    crashes: crashes + 1,
    begun: Object.freeze({ ...known, restarts: known.restarts + 1 }),
  });
}
