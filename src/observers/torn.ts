import { closeSync, fstatSync, futimesSync, openSync, writeSync } from "node:fs";

/**
 * The size of a file whose end is torn: incomplete, and no process is writing it. `undefined` for any other.
 *
 * The size may be read while another process is in the middle of a write. Setting the file's time waits for that
 * write; if the file has not grown by then, its end is final.
 */
export function tornSize(file: number, isWhole: (size: number) => boolean): number | undefined {
  for (let { size } = fstatSync(file); !isWhole(size); ) {
    const now = new Date();
    futimesSync(file, now, now);
    const later = fstatSync(file).size;
    if (later === size) return size;
    size = later;
  }
  return undefined;
}

/** Overwrites a part of a file that no process writes to any more. */
export function overwrite(path: string, bytes: Uint8Array, at: number): void {
  // A file that is open for appending can only be written at its end.
  const file = openSync(path, "r+");
  try {
    writeSync(file, bytes, 0, bytes.length, at);
  } finally {
    closeSync(file);
  }
}
