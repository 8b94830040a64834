import type { EventMap } from "./event-map.js";

const printed = new Set<string>();

/** Prints a warning without listeners to stderr, once per kind and process; not in a browser. */
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

/** Emits a warning, and prints it if there can be no listener. */
export function warn(
  runId: string,
  data: EventMap["checkpoint.warning"],
  emit: ((type: "checkpoint.warning", data: EventMap["checkpoint.warning"]) => void) | undefined,
): void {
  if (emit === undefined) printWarning(runId, data);
  else emit("checkpoint.warning", data);
}

/** Lets each kind be printed once more. */
export function resetWarnings(): void {
  printed.clear();
}

interface Host {
  readonly process?: { readonly stderr?: { write(text: string): unknown } };
}
