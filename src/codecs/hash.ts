import * as crypto from "node:crypto";

// One call, in Node 20.12 and newer; faster for small inputs.
const hashOnce: typeof crypto.hash | undefined = crypto.hash;

/** The SHA-256 of bytes, or of text as UTF-8, in hex. */
export function sha256(data: Uint8Array | string): string {
  return hashOnce?.("sha256", data) ?? crypto.createHash("sha256").update(data).digest("hex");
}
