import { spawnSync } from "node:child_process";
import { setTimeout as wait } from "node:timers/promises";

/** Whether there is a tmux to make terminals with. */
export const hasTmux = spawnSync("tmux", ["-V"]).status === 0;

/** How long to wait for something to be on the screen, in milliseconds. */
const PATIENCE = 20_000;

let screens = 0;

/** A terminal with a shell in it, as a person sees it. */
export class Screen {
  readonly #socket = `waymark-${process.pid}-${++screens}`;

  /** @param rc - a file that the shell reads first. */
  constructor(cwd: string, width: number, rc: string) {
    const size = ["-x", String(width), "-y", "40"];
    const shell = `bash --noprofile --rcfile '${rc}'`;
    this.#tmux("-f", "/dev/null", "new-session", "-d", ...size, "-c", cwd, shell);
  }

  /** Types, as a person does. `Enter` and `C-c` are keys. */
  type(...keys: string[]): void {
    for (const key of keys) {
      const isKey = key === "Enter" || key === "C-c";
      this.#tmux("send-keys", ...(isKey ? [key] : ["-l", key]));
    }
  }

  /** What is on the screen, with lines that are too long in one piece; with `colours` as the codes that make them. */
  text(colours = false): string {
    const lines = this.#tmux("capture-pane", "-p", "-J", ...(colours ? ["-e"] : [])).split("\n");
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
    this.#tmux("kill-server");
  }

  #tmux(...args: string[]): string {
    return spawnSync("tmux", ["-L", this.#socket, ...args], { encoding: "utf8" }).stdout;
  }
}
