/** One message of a stream of Server-Sent Events. */
export interface Message {
  readonly id: string;
  readonly event: string;
  readonly data: string;
}

/** Parses Server-Sent Events from chunks of text, wherever they are split. */
export class MessageReader {
  #rest = "";
  #id = "";

  /** The messages that this chunk completes. */
  add(piece: string): Message[] {
    const blocks = (this.#rest + piece).replaceAll("\r\n", "\n").split("\n\n");
    this.#rest = blocks.pop() ?? "";
    return blocks.flatMap((block) => this.#message(block));
  }

  #message(block: string): Message[] {
    let event = "message";
    const data: string[] = [];
    for (const line of block.split("\n")) {
      const colon = line.indexOf(":");
      if (colon === 0) continue;
      const field = colon < 0 ? line : line.slice(0, colon);
      const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
      if (field === "id") this.#id = value;
      if (field === "event") event = value;
      if (field === "data") data.push(value);
    }
    return data.length === 0 ? [] : [{ id: this.#id, event, data: data.join("\n") }];
  }
}
