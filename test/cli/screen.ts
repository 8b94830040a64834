import { setTimeout as wait } from "node:timers/promises";
import { ScriptTerminal } from "./script-terminal.js";
import type { Terminal } from "./terminal.js";
import { TmuxTerminal } from "./tmux-terminal.js";

/** What can make a terminal here, in the order of what is asked for first. */
export type Kind = "tmux" | "script";

const kinds = { tmux: TmuxTerminal, script: ScriptTerminal };

/** How long to wait for something to be on the screen, in milliseconds. */
const PATIENCE = 60_000;

/** A terminal as a person uses it: by the eyes and the keys. */
export class Screen {
  readonly #terminal: Terminal;

  /**
   * @param rc - a file that the shell reads first.
   * @throws where nothing can make a terminal: that is no reason to pass.
   */
  constructor(order: readonly Kind[], cwd: string, width: number, rc: string) {
    const kind = order.find((one) => kinds[one].isHere());
    if (kind === undefined) {
      throw new Error("to test in a terminal, tmux or the script of util-linux is needed");
    }
    const shell = `exec bash --noprofile --noediting --rcfile '${rc}' -i`;
    this.#terminal = new kinds[kind](cwd, width, shell);
  }

  /** Types, as a person does. `Enter` and `C-c` are keys. */
  type(...keys: string[]): void {
    const codes: Readonly<Record<string, string>> = { Enter: "\r", "C-c": "\u0003" };
    for (const key of keys) this.#terminal.send(codes[key] ?? key);
  }

  /** What is on the screen; with `colours` as the codes that make them. */
  text(colours = false): string {
    const lines = this.#terminal.text(colours).split("\n");
    return lines
      .map((line) => line.trimEnd())
      .join("\n")
      .trimEnd();
  }

  /** What is on the screen once this is on it. */
  async until(shown: RegExp): Promise<string> {
    for (const started = performance.now(); performance.now() - started < PATIENCE; ) {
      const text = this.text();
      if (shown.test(text)) return text;
      await wait(30);
    }
    throw new Error(`${shown} is not on the screen:\n${this.text()}`);
  }

  /** Runs a command; gives what is on the screen when the next prompt is. */
  async run(command: string): Promise<string> {
    this.type("clear", "Enter");
    await this.until(/^\$$/);
    this.type(command, "Enter");
    const text = await this.until(/\n\$$/);
    return text.replace(/^\$ .*\n/, "").replace(/\n\$$/, "");
  }

  close(): void {
    this.#terminal.close();
  }
}
