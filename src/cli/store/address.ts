import { isAbsolute, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { usage } from "../exit.js";

/** Where a store is. */
export type Address =
  | { readonly kind: "file" | "journal"; readonly root: string }
  | { readonly kind: "pglite" | "postgres"; readonly connection: string };

const kinds = "file:DIR, journal:DIR, pglite:DIR or postgres://USER@HOST/DATABASE";

/** An address out of its text; `undefined` when it is none. */
export function parseAddress(text: string, folder: string): Address | undefined {
  if (/^postgres(ql)?:\/\//.test(text)) return { kind: "postgres", connection: text };
  const [, kind, path = ""] = /^(file|journal|pglite):(.*)$/s.exec(text) ?? [];
  if (kind === undefined) return undefined;
  if (path === "") throw usage(`store "${text}" names no folder`, `as in ${kind}:.waymark`);
  const root = toPath(path, folder);
  if (kind === "pglite") return { kind, connection: `pglite:${root}` };
  return { kind: kind === "file" ? "file" : "journal", root };
}

/** The error for what is no store. */
export function noStore(text: string, names: readonly string[]): Error {
  const named = names.length === 0 ? "" : `, or one of the config's: ${names.join(", ")}`;
  return usage(`"${hidePassword(text)}" is no store`, `${kinds}${named}`);
}

/** An address as it may be shown. */
export function showAddress(address: Address): string {
  return "root" in address ? `${address.kind}:${address.root}` : hidePassword(address.connection);
}

/** A text without the password that may be in it. */
export function hidePassword(text: string): string {
  return text
    .replace(/(:\/\/[^/:@]*):[^/]*@/, "$1:***@")
    .replace(/([?&](?:ssl)?password=)[^&]*/g, "$1***");
}

function toPath(path: string, folder: string): string {
  if (path.startsWith("//")) return fileURLToPath(`file:${path}`);
  return isAbsolute(path) ? path : resolve(folder, path);
}
