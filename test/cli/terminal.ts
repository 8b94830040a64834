/** A terminal with a shell in it. */
export interface Terminal {
  /** Sends what keys send. */
  send(keys: string): void;
  /** What is on it, with lines that are too long in one piece; with `colours` as the codes that make them. */
  text(colours: boolean): string;
  close(): void;
}
