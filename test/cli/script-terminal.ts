import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { StringDecoder } from "node:string_decoder";
import type { Terminal } from "./terminal.js";

/** Where something stands on the screen, and the code of its colour. */
interface Cell {
  readonly character: string;
  readonly look: string;
}

/** A piece of what a terminal is sent: a code that it obeys, or a character. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what a terminal obeys
const PIECE = /\u001b\[(?<parameters>[?\d;]*)(?<code>[A-Za-z])|\u001b[()][A-Z0-9]|[\s\S]/gu;

/**
 * A pseudo-terminal made by `script` of util-linux, which is on nearly every Linux, and of what is sent
 * to it as much of a screen as this command and a shell need. Lines are as long as they are.
 */
export class ScriptTerminal implements Terminal {
  readonly #child: ChildProcess;
  #lines: Cell[][] = [[]];
  #column = 0;
  #look = "";
  #rest = "";

  constructor(cwd: string, width: number, shell: string) {
    const command = `stty cols ${width} rows 40; ${shell}`;
    const env = { ...process.env, TERM: "xterm", SHELL: "/bin/bash" };
    const child = spawn("script", ["-qfec", command, "/dev/null"], { cwd, env });
    const decoder = new StringDecoder("utf8");
    child.stdout.on("data", (bytes: Buffer) => this.#show(decoder.write(bytes)));
    // A shell that has ended takes no more keys.
    child.stdin.on("error", () => {});
    this.#child = child;
  }

  static isHere(): boolean {
    return /util-linux/.test(spawnSync("script", ["--version"], { encoding: "utf8" }).stdout ?? "");
  }

  send(keys: string): void {
    this.#child.stdin?.write(keys);
  }

  text(colours: boolean): string {
    const lines = this.#lines.map((line) => {
      let look = "";
      return Array.from(line, (cell) => {
        const change = colours && cell.look !== look ? cell.look || "\u001b[0m" : "";
        look = cell.look;
        return `${change}${cell.character}`;
      }).join("");
    });
    return lines.join("\n");
  }

  close(): void {
    this.#child.kill("SIGKILL");
  }

  #show(text: string): void {
    const all = this.#rest + text;
    // What has begun with an escape may not be there as a whole.
    // biome-ignore lint/suspicious/noControlCharactersInRegex: this is where a code begins
    const cut = /\u001b(\[[?\d;]*)?$/.exec(all)?.index ?? all.length;
    this.#rest = all.slice(cut);
    for (const { 0: piece, groups = {} } of all.slice(0, cut).matchAll(PIECE)) {
      if (piece.startsWith("\u001b")) this.#obey(groups.code ?? "", groups.parameters ?? "", piece);
      else this.#put(piece);
    }
  }

  #obey(code: string, parameters: string, piece: string): void {
    if (code === "m") this.#look = /^0?$/.test(parameters) ? "" : piece;
    if (code === "J") {
      this.#lines = [[]];
      this.#column = 0;
    }
    if (code === "K") this.#line.splice(parameters === "2" ? 0 : this.#column);
  }

  get #line(): Cell[] {
    return this.#lines.at(-1) ?? [];
  }

  #put(character: string): void {
    if (character === "\n") this.#lines.push([]);
    if (character === "\n" || character === "\r") this.#column = 0;
    if (character < " ") return;
    const line = this.#line;
    while (line.length < this.#column) line.push({ character: " ", look: "" });
    line[this.#column++] = { character, look: this.#look };
  }
}
