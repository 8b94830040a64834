import * as crypto from "node:crypto";

// Node 20.12 and newer hash in one call, which is faster where there is little to hash.
const hashOnce: typeof crypto.hash | undefined = crypto.hash;

/** The SHA-256 of bytes, in hex. */
export function sha256(bytes: Uint8Array): string {
  return hashOnce?.("sha256", bytes) ?? crypto.createHash("sha256").update(bytes).digest("hex");
}
