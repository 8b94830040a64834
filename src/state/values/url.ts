import { OPAQUE, remember } from "../json-traits.js";
import { attempt, type Kind, malformed } from "./kind.js";

export const urlKind: Kind<URL> = {
  tag: "$url",
  prototype: URL.prototype,
  opaque: true,
  symbols: true,
  copy: (url) => remember(new URL(url.href), OPAQUE),
  encode: (url) => ({ $url: url.href }),
  decode: (content) => (typeof content === "string" ? attempt(() => new URL(content)) : malformed),
};
