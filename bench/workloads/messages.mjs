/** A state of about the size given: a counter and a list of message-like objects. */
export function conversation(kilobytes) {
  const messages = [];
  for (
    let bytes = 0;
    bytes < kilobytes * 1024;
    bytes += JSON.stringify(messages.at(-1)).length + 1
  ) {
    messages.push(message(messages.length));
  }
  return { n: 0, messages };
}

/** What a step changes in it: the counter and one message, in turn. */
export function replaceOne({ n, messages }) {
  const next = n + 1;
  const list = [...messages];
  list[next % list.length] = message(next);
  return { n: next, messages: list };
}

export function message(n) {
  return {
    id: `message-${n}`,
    role: n % 2 === 0 ? "user" : "assistant",
    content:
      "Cairns mark the way where the path itself can not be seen, each one in sight of the last.",
    tokens: n % 500,
    tags: ["draft", "walk"],
  };
}
