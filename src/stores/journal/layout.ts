import { digits } from "../file/layout.js";

/*
 * {root}/.log/log_NNNN.jsonl               the log of all runs; the highest number is written to
 * {root}/.log/anchors_NNNN.jsonl           what is left to know of the files that are gone
 * {root}/.log/compacting                   says who moves records out of the log
 * {root}/{run}/records_NNNN.jsonl          one run's records out of the log, up to its file NNNN
 * {root}/{run}/.records_NNNN.{owner}.{n}.tmp   one that is being written
 * {root}/{run}/quarantine/record_….json    a record that is not what was written
 *
 * No run's folder begins with a dot. Any other name belongs to somebody else and is left alone.
 */

/** The folder of the log. */
export const LOG = ".log";

/** The file that says who compacts. */
export const COMPACTING = "compacting";

/** A file of the log. */
export function logName(number: number): string {
  return `log_${digits(number)}.jsonl`;
}

/** The number of a file of the log; `undefined` for any other name. */
export function logNumber(name: string): number | undefined {
  return numberIn(name, /^log_(\d{4,16})\.jsonl$/, logName);
}

/** The file that says which record was each run's newest when the log was compacted. */
export function anchorsName(number: number): string {
  return `anchors_${digits(number)}.jsonl`;
}

/** The number in such a name; `undefined` for any other name. */
export function anchorsNumber(name: string): number | undefined {
  return numberIn(name, /^anchors_(\d{4,16})\.jsonl$/, anchorsName);
}

/** The file of one run's records up to a file of the log. */
export function recordsName(number: number): string {
  return `records_${digits(number)}.jsonl`;
}

/** The number in such a name; `undefined` for any other name. */
export function recordsNumber(name: string): number | undefined {
  return numberIn(name, /^records_(\d{4,16})\.jsonl$/, recordsName);
}

let temporaries = 0;

/** A name for it while it is written, which nobody else uses. */
export function temporaryRecordsName(number: number, owner: string): string {
  return `.records_${digits(number)}.${owner}.${++temporaries}.tmp`;
}

/** Who writes, or wrote, such a file; `undefined` for any other name. */
export function recordsOwnerOf(name: string): string | undefined {
  return /^\.records_\d{4,16}\.([\w-]+)\.\d+\.tmp$/.exec(name)?.[1];
}

function numberIn(
  name: string,
  pattern: RegExp,
  nameOf: (number: number) => string,
): number | undefined {
  const number = Number(pattern.exec(name)?.[1]);
  return number > 0 && nameOf(number) === name ? number : undefined;
}
