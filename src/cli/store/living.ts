import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { folderName } from "../../stores/file/layout.js";
import { isLiving } from "../../stores/file/process.js";
import type { OpenStore } from "./open.js";

/** Tells whether a living process works on a run; `undefined` where that can't be seen from here. */
export type Living = (runId: string) => boolean | undefined;

/** Looks at the claims of a store once. Nothing is changed, also not what the dead have left. */
export async function livingIn({ address, database }: OpenStore): Promise<Living> {
  if (database !== undefined) {
    const claimed = await database.claimed();
    return (runId) => claimed.has(runId);
  }
  if (address === undefined || !("root" in address)) return () => undefined;
  const names = await readdir(join(address.root, ".claims")).catch(() => []);
  const claims = new Map<string, boolean | undefined>();
  for (const name of names) {
    const [, folder, owner] = /^([^@]+)@(\d+-\d+-[\da-f]{8}-[\da-f]{8})\.\d+$/.exec(name) ?? [];
    if (folder === undefined || owner === undefined) continue;
    if (claims.get(folder) !== true) claims.set(folder, isLiving(owner));
  }
  return (runId) => {
    const folder = folderName(runId);
    return claims.has(folder) ? claims.get(folder) : false;
  };
}
