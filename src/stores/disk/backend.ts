import { join } from "node:path";
import { filterRuns } from "../../checkpoint/arguments.js";
import {
  type After,
  type Chain,
  type Encode,
  type Head,
  type HeaderEntry,
  type RecordAt,
  type RecordBackend,
  type Removal,
  type RemoveOptions,
  type RunEntry,
  runEntryOf,
  type StoredRecord,
} from "../../checkpoint/records/backend.js";
import { parseHeader } from "../../checkpoint/records/header.js";
import type { Claim, ClaimHolder, Finding, RunFilter } from "../../checkpoint/store.js";
import { now } from "../../clock.js";
import { mapLimit, Semaphore, TaskSet } from "../../concurrency.js";
import { Claims, claimsUnder } from "./claims.js";
import {
  type FileSystem,
  failing,
  ignoring,
  namesInRoot,
  Root,
  readFile,
  writeFile,
} from "./file-system.js";
import { folderName, GRAPHS, graphName, ownerOf, runOf } from "./layout.js";
import { faulty, type Listing, RunFolder, sequencesIn } from "./run-folder.js";
import { RunWriter } from "./run-writer.js";

/** For how many runs to keep the last save in memory, with two open files each; other runs are listed again. */
const REMEMBERED_RUNS = 64;
/**
 * How many saves may have files open at once, up to three each; the others wait. The same limit applies to reads.
 */
const AT_ONCE = 64;
/** How often to list a folder again that changes while it is read. */
const ATTEMPTS = 100;
/** How many folders to read at once. */
const SCANNED_AT_ONCE = 16;

/** A run's folder that has checkpoints: the sequences that have a file, oldest first. */
interface FoundRun {
  readonly folder: RunFolder;
  readonly checkpoints: readonly number[];
}

/** Keeps each record as a file of its own, in a folder for each run. */
export class FileBackend implements RecordBackend {
  readonly place: string;
  readonly #fs: FileSystem;
  readonly #root: Root;
  readonly #claims: Claims;
  readonly #writers = new Map<string, RunWriter>();
  readonly #writes = new Semaphore(AT_ONCE);
  readonly #reads = new Semaphore(AT_ONCE);
  readonly #tasks = new TaskSet();
  /** The scan behind each page of a listing, by the page's last entry. */
  readonly #scans = new WeakMap<object, readonly RunEntry[]>();

  constructor(fs: FileSystem, root: string) {
    this.place = root;
    this.#fs = fs;
    this.#root = new Root(fs, root);
    this.#claims = new Claims(fs, this.#root);
  }

  async append(runId: string, after: After, encode: Encode): Promise<Head | undefined> {
    const writer = this.#writer(runId);
    const elsewhere = await writer.inTurn(() =>
      this.#writes.run(async () => {
        const head = await writer.append(after, encode);
        // A writer that waits for its turn can't be dropped, so it must not keep files open while it waits.
        if (this.#writers.size > REMEMBERED_RUNS) await writer.forget();
        return head;
      }),
    );
    this.#makeRoom(writer);
    return elsewhere;
  }

  async chain(runId: string, at: RecordAt): Promise<Chain | undefined> {
    const folder = this.#folder(runId);
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const listing = await this.#list(folder);
      if (listing === undefined || listing.highest === 0) return undefined;
      const { checkpoints } = listing;
      const sequence =
        "sequence" in at
          ? checkpoints.find((one) => one === at.sequence)
          : checkpoints.findLast((one) => one < at.below);
      const record = sequence === undefined ? undefined : await this.#read(folder, sequence);
      // It was removed in the meantime; another file may be the newest now.
      if (sequence !== undefined && record === undefined) continue;
      const head = await headIn(folder, listing, record);
      return { head, records: record === undefined ? [] : [record] };
    }
    throw new Error(`${folder.path} changed ${ATTEMPTS} times while it was read`);
  }

  async headers(runId: string): Promise<readonly HeaderEntry[]> {
    const folder = this.#folder(runId);
    const { checkpoints = [], quarantined = [] } = (await this.#list(folder)) ?? {};
    const entries: HeaderEntry[] = [];
    for (const [sequence, headed] of await folder.headers(checkpoints)) {
      entries.push({ sequence, ...headed, setAside: false });
    }
    for (const sequence of new Set(quarantined)) {
      entries.push({ sequence, bytes: 0, header: undefined, setAside: true });
    }
    return entries.sort((a, b) => b.sequence - a.sequence);
  }

  async records(runId: string, from: number, to: number): Promise<readonly StoredRecord[]> {
    const folder = this.#folder(runId);
    const { checkpoints = [] } = (await folder.list()) ?? {};
    const records: StoredRecord[] = [];
    for (const sequence of checkpoints.filter((one) => one >= from && one <= to)) {
      const record = await this.#read(folder, sequence).catch((fault: unknown) => {
        if (fault instanceof Error) return faulty(sequence, fault);
        throw fault;
      });
      if (record !== undefined) records.push(record);
    }
    return records;
  }

  setAside(
    runId: string,
    sequence: number,
    isBad: () => Promise<boolean>,
  ): Promise<string | undefined> {
    return this.#folder(runId).quarantine(sequence, isBad);
  }

  async discard(runId: string, sequences: readonly number[]): Promise<void> {
    await this.#writer(runId).discard(sequences);
  }

  async runs(filter: RunFilter): Promise<RunEntry[]> {
    const known = filter.cursor && this.#scans.get(filter.cursor);
    const runs = known ?? (await this.#summarize(filter.runId)).flatMap(({ entry }) => entry ?? []);
    const page = filterRuns(runs, filter);
    const last = page.at(-1);
    if (last !== undefined) this.#scans.set(last, runs);
    return page;
  }

  async unreadable(): Promise<string[]> {
    const runs = await this.#summarize();
    return runs.flatMap(({ runId, entry }) => (entry === undefined ? (runId ?? []) : []));
  }

  async list(): Promise<string[]> {
    return (await this.#findRuns()).flatMap(({ folder }) => folder.runId ?? []);
  }

  async find(checkpointId: string): Promise<string | undefined> {
    let found: string | undefined;
    await mapLimit(await this.#findRuns(), SCANNED_AT_ONCE, async ({ folder, checkpoints }) => {
      if (found !== undefined) return;
      const headers = await folder.headers(checkpoints);
      const own = [...headers.values()].find((one) => one.header?.checkpointId === checkpointId);
      found ??= own?.header?.runId;
    });
    return found;
  }

  async remove(runs: readonly Removal[], { unclaimed, dryRun }: RemoveOptions): Promise<string[]> {
    const removed = await mapLimit(runs, SCANNED_AT_ONCE, async (run) => {
      const { runId } = run;
      if (dryRun) return !unclaimed || (await this.#claims.holder(runId)) === undefined;
      if (!unclaimed) return this.#remove(run);
      const claim = await this.#claims.claim(runId);
      if (claim === undefined) return false;
      return this.#remove(run).finally(() => claim.release());
    });
    return runs.flatMap(({ runId }, index) => (removed[index] === true ? [runId] : []));
  }

  async claim(runId: string): Promise<Claim | undefined> {
    const claim = await this.#claims.claim(runId);
    return claim && { ...claim, release: () => claim.release().catch(failing(this.place)) };
  }

  holder(runId: string): Promise<ClaimHolder | undefined> {
    return this.#claims.holder(runId);
  }

  /** What dead processes left behind. The next process to use the run removes it. */
  async *verify(): AsyncGenerator<Finding> {
    const leftover = { sequence: 0, problem: "leftover", expected: "nothing" } as const;
    for (const { name, run, lives } of await claimsUnder(this.#fs, this.place)) {
      const known = runOf(run);
      const runId = typeof known === "object" ? known.runId : "";
      if (lives === false) yield { runId, ...leftover, actual: `the claim ${name}` };
    }
    for (const { folder } of await this.#findRuns()) {
      const names = await ignoring(this.#fs.readdir(folder.path), ["ENOENT"], []);
      const temporaries = names.filter((name) => ownerOf(name) !== undefined);
      for (const name of folder.leftovers(temporaries)) {
        yield { runId: folder.runId ?? "", ...leftover, actual: folder.at(name) };
      }
    }
  }

  async close(): Promise<void> {
    await this.#tasks.settled();
    const writers = [...this.#writers];
    await Promise.all(writers.map(([, writer]) => writer.inTurn(() => writer.forget())));
    // A writer that still has files to discard is kept, so that it can retry.
    for (const [runId, writer] of writers) if (writer.idle) this.#writers.delete(runId);
  }

  #folder(runId: string): RunFolder {
    return new RunFolder(this.#fs, join(this.place, folderName(runId)), runId);
  }

  /** The runs that have a checkpoint: all of them, or one. */
  async #findRuns(runId?: string): Promise<FoundRun[]> {
    const names = (await namesInRoot(this.#fs, this.place)) ?? [];
    const only = runId === undefined ? undefined : folderName(runId);
    const isOne = (name: string): boolean => name === (only ?? name) && runOf(name) !== undefined;
    const folders = names.filter(isOne).sort();
    const found = await mapLimit(folders, SCANNED_AT_ONCE, (name) => this.#findRun(name));
    return found.filter((run) => run !== undefined);
  }

  async #findRun(name: string): Promise<FoundRun | undefined> {
    const path = join(this.place, name);
    const found = await ignoring(this.#fs.lstat(path));
    // A file or a symbolic link is not a run.
    if (found?.kind !== "folder") return undefined;
    // Reads only the names: a damaged run must not hide the others.
    const checkpoints = sequencesIn(await ignoring(this.#fs.readdir(path), ["ENOENT"], []));
    if (checkpoints.length === 0) return undefined;
    const run = runOf(name);
    if (typeof run === "object") return { folder: this.#folder(run.runId), checkpoints };
    const cut = new RunFolder(this.#fs, path, undefined);
    const header = await cut.newestHeader(checkpoints);
    return { folder: header === undefined ? cut : this.#folder(header.runId), checkpoints };
  }

  /** Summarizes all runs, or one, from the newest readable header; `entry` is `undefined` if there is none. */
  async #summarize(
    only?: string,
  ): Promise<{ readonly runId: string | undefined; readonly entry: RunEntry | undefined }[]> {
    return mapLimit(await this.#findRuns(only), SCANNED_AT_ONCE, async (run) => {
      const { folder, checkpoints } = run;
      const header = await folder.newestHeader(checkpoints);
      const entry = header && runEntryOf(header, checkpoints.at(-1) ?? 0);
      return { runId: folder.runId, entry };
    });
  }

  /** Lists a run's folder and removes what dead processes left in it. */
  async #list(folder: RunFolder): Promise<Listing | undefined> {
    const listing = await folder.list();
    if (listing !== undefined) this.#sweep(folder, listing);
    return listing;
  }

  #read(folder: RunFolder, sequence: number): Promise<StoredRecord | undefined> {
    return this.#reads.run(() => folder.read(sequence));
  }

  /** The one writer of a run. */
  #writer(runId: string): RunWriter {
    let writer = this.#writers.get(runId);
    if (writer === undefined) {
      const folder = this.#folder(runId);
      writer = new RunWriter(folder, this.#root, (listing) => this.#sweep(folder, listing));
    }
    this.#writers.delete(runId);
    this.#writers.set(runId, writer);
    this.#makeRoom(writer);
    return writer;
  }

  /** Drops the least recently used writers. Busy ones stay, so the limit may be exceeded for a while. */
  #makeRoom(writer: RunWriter): void {
    if (this.#writers.size <= REMEMBERED_RUNS) return;
    for (const [runId, one] of this.#writers) {
      if (one === writer || !one.idle) continue;
      this.#writers.delete(runId);
      this.#tasks.start(() => one.inTurn(() => one.forget()), ignore);
      if (this.#writers.size <= REMEMBERED_RUNS) return;
    }
  }

  #sweep(folder: RunFolder, { temporaries }: Listing): void {
    if (temporaries.every((name) => ownerOf(name) === this.#fs.owner)) return;
    this.#tasks.start(() => folder.sweep(temporaries, now()), ignore);
  }

  #remove({ runId, sequence }: Removal): Promise<boolean> {
    const writer = this.#writer(runId);
    return writer.inTurn(async () => {
      await writer.forget();
      return this.#folder(runId).remove(sequence);
    });
  }

  async saveGraph(fingerprint: string, text: string): Promise<void> {
    const folder = join(this.place, GRAPHS);
    const path = join(folder, graphName(fingerprint));
    if ((await ignoring(this.#fs.lstat(path))) !== undefined) return;
    await this.#root.makeFolder(folder, false);
    const temporary = `${path}.${this.#fs.owner}.tmp`;
    await writeFile(this.#fs, temporary, text);
    await this.#fs.rename(temporary, path);
  }

  async graph(fingerprint: string): Promise<string | undefined> {
    const path = join(this.place, GRAPHS, graphName(fingerprint));
    const bytes = await readFile(this.#fs, path);
    return bytes && Buffer.from(bytes).toString();
  }
}

/** The same backend, but what the file system throws outside a save is a `BackendError`. */
export function explaining(backend: FileBackend): RecordBackend {
  const fail = failing(backend.place);
  async function* each(answers: AsyncIterable<unknown>): AsyncGenerator {
    try {
      yield* answers;
    } catch (error) {
      fail(error);
    }
  }
  return new Proxy(backend, {
    get: (_, name) => {
      const method: unknown = Reflect.get(backend, name);
      if (typeof method !== "function") return method;
      return (...args: readonly unknown[]): unknown => {
        const answer: unknown = method.apply(backend, args);
        if (name === "append") return answer;
        return answer instanceof Promise
          ? answer.catch(fail)
          : each(answer as AsyncIterable<unknown>);
      };
    },
  });
}

/** The newest checkpoint of a run; `record` was read already. */
async function headIn(
  folder: RunFolder,
  { checkpoints, highest: sequence }: Listing,
  record: StoredRecord | undefined,
): Promise<Head> {
  if (checkpoints.at(-1) !== sequence) return { sequence, checkpointId: "" };
  if (record?.sequence === sequence) {
    const header = parseHeader(record.header);
    return { sequence, checkpointId: folder.owns(header, sequence) ? header.checkpointId : "" };
  }
  return { sequence, checkpointId: (await folder.header(sequence))?.checkpointId ?? "" };
}

/** For background work: if it fails, the next call retries it. */
function ignore(): void {}
