import { remember, TAGGED } from "../json-traits.js";
import { Guard } from "./guard.js";
import { type Kind, malformed } from "./kind.js";

const setters = Object.getOwnPropertyNames(Date.prototype).filter((name) => name.startsWith("set"));
const guard = new Guard<Date>("setTime", ...setters);

export const dateKind: Kind<Date> = {
  tag: "$date",
  prototype: Date.prototype,
  copy: (date) => remember(guard.has(date) ? date : guard.freeze(new Date(date)), TAGGED),
  encode: (date) => ({ $date: Number.isNaN(date.getTime()) ? null : date.toISOString() }),
  decode: (content) => {
    const date = new Date(typeof content === "string" ? content : Number.NaN);
    return content === null || !Number.isNaN(date.getTime()) ? guard.freeze(date) : malformed;
  },
};
