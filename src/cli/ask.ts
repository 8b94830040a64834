import { createInterface } from "node:readline";
import type { Io } from "./io.js";
import { plain } from "./output/text.js";

/** Asks a yes-or-no question; anything but yes counts as no. */
export function ask({ stdin, stderr }: Io, question: string): Promise<boolean> {
  stderr.write(`${plain(question)} [y/N] `);
  const lines = createInterface({ input: stdin });
  return new Promise((resolve) => {
    const answer = (text: string): void => {
      lines.off("close", none);
      lines.close();
      resolve(/^y(es)?$/i.test(text.trim()));
    };
    const none = (): void => resolve(false);
    lines.once("line", answer);
    lines.once("close", none);
  });
}
