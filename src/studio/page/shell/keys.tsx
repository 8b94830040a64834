import type { JSX } from "preact";
import { Dialog } from "../parts/dialog.js";

const keys: readonly (readonly [key: string, what: string])[] = [
  ["⌘ K or Ctrl K", "search runs and commands"],
  ["/", "search on this screen"],
  ["g r, g i, g f", "runs, inbox, figures"],
  ["j, k", "next and previous run, or checkpoint"],
  ["x", "select the run for comparing and deleting"],
  ["Enter", "open"],
  ["Esc", "close"],
  ["?", "these keys"],
];

/** The keys that work. */
export function Keys({ onClose }: { readonly onClose: () => void }): JSX.Element {
  return (
    <Dialog title="Keys" onClose={onClose}>
      <dl class="pairs">
        {keys.map(([key, what]) => (
          <>
            <dt key={key}>
              <kbd>{key}</kbd>
            </dt>
            <dd>{what}</dd>
          </>
        ))}
      </dl>
    </Dialog>
  );
}
