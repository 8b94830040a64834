import { isWaymarkError, messageOf, show } from "../../errors.js";
import type { Redaction } from "../../report/redaction.js";

/** What an error says, without what must not be shown of its cause. */
export function errorText(error: unknown, redaction: Redaction): string {
  const message = messageOf(error);
  const cause = error instanceof Error ? error.cause : undefined;
  if (!(cause instanceof Error)) return redaction.message(message);
  const shown = redaction.message(cause.message);
  if (shown === cause.message) return message;
  if (isWaymarkError(error, "NODE_FAILED")) return `node ${show(error.nodeName)} failed: ${shown}`;
  return isWaymarkError(error) ? `${error.code}: ${shown}` : shown;
}
