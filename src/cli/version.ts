import { readFileSync } from "node:fs";

/** The version of this package. */
export function version(): string {
  const manifest = new URL("../../package.json", import.meta.url);
  return String((JSON.parse(readFileSync(manifest, "utf8")) as { version: unknown }).version);
}
