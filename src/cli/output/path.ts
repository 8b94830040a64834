import { missing } from "../exit.js";

/**
 * The value at a path of keys and indexes: `data.pages.0`, `data.pages[0]`.
 *
 * @throws CommandError that says how much of the path exists.
 */
export function valueAt(tree: unknown, path: string): unknown {
  const keys = path.replace(/\[(\d+)\]/g, ".$1").split(".");
  let value = tree;
  for (const [depth, key] of keys.entries()) {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, key)) {
      const known = typeof value === "object" && value !== null ? Object.keys(value) : [];
      const at = keys.slice(0, depth).join(".") || "the state";
      const has = known.length === 0 ? "nothing" : known.slice(0, 20).join(", ");
      throw missing(`there is no ${keys.slice(0, depth + 1).join(".")}`, `${at} has ${has}`);
    }
    value = Reflect.get(value, key);
  }
  return value;
}
