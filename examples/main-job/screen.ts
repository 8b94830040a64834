import type { AnyEvent } from "waymark";
import { type ProgressBar, progressBar } from "waymark/observers/progress-bar";

/** What the screen shows: lines, and under them, on a terminal, how far the run is. */
export class Screen {
  readonly #hasColour = process.stdout.isTTY === true && !process.env.NO_COLOR;
  /** Draws on stderr, and only if that is a terminal. */
  readonly #bar: ProgressBar;

  constructor(total: number) {
    this.#bar = progressBar({ total });
  }

  /** Prints a line in the place of the bar, which comes back below it. */
  say(text = ""): void {
    this.#bar.clear();
    console.log(text);
  }

  /** Shows an event of the run that another process works on. */
  show(event: AnyEvent): void {
    this.#bar.onEvent(event);
  }

  readonly green = (text: string): string => this.#paint(32, text);
  readonly red = (text: string): string => this.#paint(31, text);
  readonly grey = (text: string): string => this.#paint(90, text);
  readonly bold = (text: string): string => this.#paint(1, text);

  #paint(code: number, text: string): string {
    return this.#hasColour ? `\u001b[${code}m${text}\u001b[0m` : text;
  }
}
