import { BackendError, type RecordBackend } from "../../checkpoint/records/backend.js";
import { isWaymarkError, messageOf, systemCode } from "../../errors.js";

const FULL = "the disk or its quota is full: make room, then try again";
const DENIED = "give this process the right to read and write there";
const TOO_MANY = "too many files are open: raise the limit, or run less at once";

const advice: ReadonlyMap<string, string> = new Map([
  ["ENOSPC", FULL],
  ["EDQUOT", FULL],
  ["EACCES", DENIED],
  ["EPERM", DENIED],
  ["EROFS", "the file system is read-only: choose another root, or set readOnly"],
  ["EIO", "the disk reports an error: check it, and the file system"],
  ["EMFILE", TOO_MANY],
  ["ENFILE", TOO_MANY],
]);

/**
 * The error for a file system that failed.
 *
 * @param path - added to the message if the error has none: that of an open file does not name it.
 * @param unsure - whether a record may have been written nevertheless.
 */
export function failure(cause: unknown, path: string, unsure: boolean): BackendError {
  const message = messageOf(cause);
  const hasPath = Reflect.get(Object(cause), "path") !== undefined || path === "";
  const named = hasPath ? message : `${path}: ${message}`;
  const hint = advice.get(systemCode(cause));
  const text = hint === undefined ? named : `${named} (${hint})`;
  return new BackendError(text, { unsure, cause });
}

/** The same error if it explains itself; otherwise that of a file system that failed at this path. */
export function explained(error: unknown, path: string): Error {
  return isWaymarkError(error) ? error : failure(error, path, false);
}

/** The same backend, but what the file system throws outside a save is a `BackendError`. */
export function explaining(backend: Required<RecordBackend>): RecordBackend {
  const { place } = backend;
  const guard = <T>(action: Promise<T>): Promise<T> =>
    action.catch((error: unknown) => {
      throw explained(error, place);
    });
  return {
    place,
    append: (runId, after, encode) => backend.append(runId, after, encode),
    chain: (runId, at) => guard(backend.chain(runId, at)),
    headers: (runId) => guard(backend.headers(runId)),
    records: (runId, from, to) => guard(backend.records(runId, from, to)),
    setAside: (runId, sequence, isBad) => guard(backend.setAside(runId, sequence, isBad)),
    discard: (runId, sequences) => guard(backend.discard(runId, sequences)),
    runs: (filter) => guard(backend.runs(filter)),
    unreadable: () => guard(backend.unreadable()),
    list: () => guard(backend.list()),
    find: (checkpointId) => guard(backend.find(checkpointId)),
    remove: (runs, options) => guard(backend.remove(runs, options)),
    claim: async (runId, ttl) => {
      const claim = await guard(backend.claim(runId, ttl));
      return claim && { ...claim, release: () => guard(claim.release()) };
    },
    holder: (runId) => guard(backend.holder(runId)),
    saveGraph: (fingerprint, text) => guard(backend.saveGraph(fingerprint, text)),
    graph: (fingerprint) => guard(backend.graph(fingerprint)),
    async *verify() {
      try {
        yield* backend.verify();
      } catch (error) {
        throw explained(error, place);
      }
    },
    close: () => guard(backend.close()),
  };
}
