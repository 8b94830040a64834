import type { StateJSON } from "../../state/json.js";
import { toJson } from "./text.js";

/** A pause, as a State's JSON has it. */
interface Pause {
  readonly name: string;
  readonly reason: string;
  readonly ask?: unknown;
}

/** What a paused run waits for, as text. */
export function waitsFor({ pauses = [] }: StateJSON): readonly string[] {
  return (pauses as readonly Pause[]).map(({ name, reason, ask }) => {
    const asked = ask === undefined ? "" : `: ${toJson(ask)}`;
    return `${name}${name === "" ? "" : ", "}${reason}${asked}`;
  });
}
