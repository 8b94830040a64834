import { closeSync, fstatSync, futimesSync, openSync, writeSync } from "node:fs";

/**
 * The size of a file whose end is torn: not whole, and nobody is writing it. `undefined` for any other.
 *
 * A size can be seen while somebody is half-way through a write. Setting a time waits until they are
 * done; if the file has not grown by then, its end stays as it is for ever.
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

/** Writes over a part of a file that nobody will write to any more; the file does not get shorter. */
export function overwrite(path: string, bytes: Uint8Array, at: number): void {
  // A file that is open to append writes nowhere but at its end.
  const file = openSync(path, "r+");
  try {
    writeSync(file, bytes, 0, bytes.length, at);
  } finally {
    closeSync(file);
  }
}
