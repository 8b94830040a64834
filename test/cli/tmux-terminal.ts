import { spawnSync } from "node:child_process";
import type { Terminal } from "./terminal.js";

let servers = 0;

/** A terminal in a tmux of its own. */
export class TmuxTerminal implements Terminal {
  readonly #socket = `waymark-${process.pid}-${++servers}`;

  constructor(cwd: string, width: number, shell: string) {
    const size = ["-x", String(width), "-y", "40"];
    this.#tmux("-f", "/dev/null", "new-session", "-d", ...size, "-c", cwd, shell);
  }

  static isHere(): boolean {
    return spawnSync("tmux", ["-V"]).status === 0;
  }

  send(keys: string): void {
    const hex = Buffer.from(keys).toString("hex").match(/../g) ?? [];
    this.#tmux("send-keys", "-H", ...hex);
  }

  text(colours: boolean): string {
    return this.#tmux("capture-pane", "-p", "-J", ...(colours ? ["-e"] : []));
  }

  close(): void {
    this.#tmux("kill-server");
  }

  #tmux(...args: string[]): string {
    const { stdout, stderr, status } = spawnSync("tmux", ["-L", this.#socket, ...args], {
      encoding: "utf8",
    });
    if (status !== 0) throw new Error(`tmux ${args.join(" ")}: ${stderr}`);
    return stdout;
  }
}
