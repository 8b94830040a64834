import type { EventMap } from "./event-map.js";

const printed = new Set<string>();

/** Prints a warning that nobody listens for to stderr, the first of its kind in this process; not in a browser. */
export function printWarning(
  runId: string,
  { kind, message }: EventMap["checkpoint.warning"],
): void {
  if (printed.has(kind)) return;
  printed.add(kind);
  const { process } = globalThis as Host;
  process?.stderr?.write(
    `waymark: run ${JSON.stringify(runId)}: ${message.replace(/\s+/g, " ")}\n`,
  );
}

/** Lets each kind be printed once more. */
export function resetWarnings(): void {
  printed.clear();
}

interface Host {
  readonly process?: { readonly stderr?: { write(text: string): unknown } };
}
