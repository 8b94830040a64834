import { join } from "node:path";
import type {
  After,
  Chain,
  Encode,
  Head,
  HeaderEntry,
  NewRecord,
  RecordAt,
  RecordBackend,
  Removal,
  RemoveOptions,
  RunEntry,
  StoredRecord,
} from "../../checkpoint/records/backend.js";
import { fromDocument } from "../../checkpoint/records/document.js";
import { parseHeader } from "../../checkpoint/records/header.js";
import { filterRuns } from "../../checkpoint/retention.js";
import type { Claim, ClaimHolder, Finding, RunFilter } from "../../checkpoint/store.js";
import { now } from "../../clock.js";
import { mapLimit, Semaphore, TaskSet } from "../../concurrency.js";
import { CheckpointCorruptionError, SerializationError } from "../../errors.js";
import { Claims, claimsUnder } from "./claims.js";
import { type FileSystem, ignoring } from "./file-system.js";
import { headersOf, isOf, readFile } from "./files.js";
import { type Listing, list, Root } from "./folders.js";
import {
  checkpointName,
  folderName,
  GRAPHS,
  graphName,
  ownerOf,
  quarantinedSequence,
  runOf,
} from "./layout.js";
import { quarantine } from "./quarantine.js";
import { leftovers, removeRun, sweep } from "./removal.js";
import { RunWriter } from "./run-writer.js";
import { findRuns, SCANNED_AT_ONCE, summarizeRuns } from "./runs.js";

/** For how many runs to remember, with two open files each, what was saved last; the others are looked up again. */
const REMEMBERED_RUNS = 64;
/** How many saves may have files open at a time, up to three each; the others wait. So may reads. */
const AT_ONCE = 64;
/** How often to look again at a folder in which files come and go. */
const ATTEMPTS = 100;

/** Keeps each record as a file of its own, in a folder for each run. */
export class FileBackend implements RecordBackend {
  readonly place: string;
  readonly #fs: FileSystem;
  readonly #durable: boolean;
  readonly #root: Root;
  readonly #claims: Claims;
  readonly #writers = new Map<string, RunWriter>();
  readonly #writes = new Semaphore(AT_ONCE);
  readonly #reads = new Semaphore(AT_ONCE);
  readonly #tasks = new TaskSet();
  /** All runs, as they were found for a page of them, by its last one. */
  readonly #scans = new WeakMap<object, readonly RunEntry[]>();

  constructor(fs: FileSystem, root: string, durable: boolean) {
    this.place = root;
    this.#fs = fs;
    this.#durable = durable;
    this.#root = new Root(fs, root, durable);
    this.#claims = new Claims(fs, this.#root);
  }

  async append(runId: string, after: After, encode: Encode): Promise<Head | undefined> {
    const writer = this.#writer(runId);
    let ends = false;
    const elsewhere = await writer.inTurn(() =>
      this.#writes.run(async () => {
        const head = await writer.append(after, () => {
          const encoding = encode();
          const note = (record: NewRecord): NewRecord => {
            ends = record.fields.status === "completed" || record.fields.status === "failed";
            return record;
          };
          return encoding instanceof Promise ? encoding.then(note) : note(encoding);
        });
        // A writer that waits for its turn can't be dropped, so its files must not be open while it does.
        if (this.#writers.size > REMEMBERED_RUNS) await writer.forget();
        return head;
      }),
    );
    // Nothing more is to come, so its files need not stay open.
    if (ends) this.#letGo(writer);
    this.#makeRoom(writer);
    return elsewhere;
  }

  async chain(runId: string, at: RecordAt): Promise<Chain | undefined> {
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const listing = await this.#list(runId);
      if (listing === undefined) return undefined;
      const { checkpoints, highest } = listing;
      if (highest === 0) return undefined;
      const sequence =
        "sequence" in at
          ? checkpoints.find((one) => one === at.sequence)
          : checkpoints.findLast((one) => one < at.below);
      const record = sequence === undefined ? undefined : await this.#read(runId, sequence);
      // It was removed since: another may be the newest now.
      if (sequence !== undefined && record === undefined) continue;
      const head = await this.#head(runId, listing, record);
      return { head, records: record === undefined ? [] : [record] };
    }
    throw new Error(`${this.#folder(runId)} changed ${ATTEMPTS} times while it was read`);
  }

  async headers(runId: string): Promise<readonly HeaderEntry[]> {
    const folder = this.#folder(runId);
    const { checkpoints = [], quarantined = [] } = (await this.#list(runId)) ?? {};
    const found = await headersOf(this.#fs, folder, runId, checkpoints);
    const entries = found.flatMap((headed, index): HeaderEntry[] => {
      const sequence = checkpoints[index];
      if (headed === undefined || sequence === undefined) return [];
      return [{ sequence, ...headed, setAside: false }];
    });
    const aside = new Set(quarantined.flatMap((name) => quarantinedSequence(name) ?? []));
    for (const sequence of aside) {
      entries.push({ sequence, bytes: 0, header: undefined, setAside: true });
    }
    return entries.sort((a, b) => b.sequence - a.sequence);
  }

  async records(runId: string, from: number, to: number): Promise<readonly StoredRecord[]> {
    const { checkpoints = [] } = (await list(this.#fs, this.#folder(runId))) ?? {};
    const records: StoredRecord[] = [];
    for (const sequence of checkpoints.filter((one) => one >= from && one <= to)) {
      const record = await this.#read(runId, sequence).catch((fault: unknown) => {
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
    return quarantine(this.#fs, this.#folder(runId), sequence, this.#durable, isBad);
  }

  async discard(runId: string, sequences: readonly number[]): Promise<void> {
    await this.#writer(runId).discard(sequences);
  }

  async runs(filter: RunFilter): Promise<RunEntry[]> {
    const known = filter.cursor && this.#scans.get(filter.cursor);
    const scanned = known ? [] : await summarizeRuns(this.#fs, this.place, filter.runId);
    const runs = known ?? scanned.flatMap(({ entry }) => entry ?? []);
    const page = filterRuns(runs, filter);
    const last = page.at(-1);
    if (last !== undefined) this.#scans.set(last, runs);
    return page;
  }

  async unreadable(): Promise<string[]> {
    const runs = await summarizeRuns(this.#fs, this.place);
    return runs.flatMap(({ runId, entry }) => (entry === undefined ? (runId ?? []) : []));
  }

  async list(): Promise<string[]> {
    return (await findRuns(this.#fs, this.place)).flatMap(({ runId }) => runId ?? []);
  }

  async find(checkpointId: string): Promise<string | undefined> {
    let found: string | undefined;
    await mapLimit(
      await findRuns(this.#fs, this.place),
      SCANNED_AT_ONCE,
      async ({ folder, runId, checkpoints }) => {
        if (found !== undefined) return;
        const headers = await headersOf(this.#fs, folder, runId, checkpoints);
        const own = headers.find((one) => one?.header?.checkpointId === checkpointId);
        found ??= own?.header?.runId;
      },
    );
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

  claim(runId: string): Promise<Claim | undefined> {
    return this.#claims.claim(runId);
  }

  holder(runId: string): Promise<ClaimHolder | undefined> {
    return this.#claims.holder(runId);
  }

  /** What dead processes left. The next to use a run removes it. */
  async *verify(): AsyncGenerator<Finding> {
    const leftover = { sequence: 0, problem: "leftover", expected: "nothing" } as const;
    for (const { name, run, lives } of await claimsUnder(this.#fs, this.place)) {
      const known = runOf(run);
      const runId = typeof known === "object" ? known.runId : "";
      if (lives === false) yield { runId, ...leftover, actual: `the claim ${name}` };
    }
    for (const { runId = "", folder } of await findRuns(this.#fs, this.place)) {
      const names = await ignoring(this.#fs.readdir(folder), ["ENOENT"], []);
      const temporaries = names.filter((name) => ownerOf(name) !== undefined);
      for (const name of leftovers(this.#fs, temporaries)) {
        yield { runId, ...leftover, actual: join(folder, name) };
      }
    }
  }

  async close(): Promise<void> {
    await this.#tasks.settled();
    const writers = [...this.#writers];
    await Promise.all(writers.map(([, writer]) => writer.inTurn(() => writer.forget())));
    // What could not be discarded is tried again.
    for (const [runId, writer] of writers) if (writer.idle) this.#writers.delete(runId);
  }

  #folder(runId: string): string {
    return join(this.place, folderName(runId));
  }

  /** What is in a run's folder; what the dead have left there is swept. */
  async #list(runId: string): Promise<Listing | undefined> {
    const folder = this.#folder(runId);
    const listing = await list(this.#fs, folder);
    if (listing !== undefined) this.#sweep(folder, listing);
    return listing;
  }

  /**
   * The record in a file; `undefined` if it is gone.
   *
   * @throws CheckpointCorruptionError if something that is no file is in its place.
   */
  async #read(runId: string, sequence: number): Promise<StoredRecord | undefined> {
    const path = join(this.#folder(runId), checkpointName(sequence));
    const bytes = await this.#reads.run(() => readFile(this.#fs, path));
    if (bytes === undefined) return undefined;
    try {
      return fromDocument(bytes, path, sequence);
    } catch (fault) {
      const isKnown =
        fault instanceof CheckpointCorruptionError || fault instanceof SerializationError;
      if (isKnown) return faulty(sequence, fault);
      throw fault;
    }
  }

  /** The newest checkpoint of a run; `record` was read already. */
  async #head(
    runId: string,
    { checkpoints, highest: sequence }: Listing,
    record: StoredRecord | undefined,
  ): Promise<Head> {
    if (checkpoints.at(-1) !== sequence) return { sequence, checkpointId: "" };
    if (record?.sequence === sequence) {
      const header = parseHeader(record.header);
      return { sequence, checkpointId: isOf(header, runId, sequence) ? header.checkpointId : "" };
    }
    const [headed] = await headersOf(this.#fs, this.#folder(runId), runId, [sequence]);
    return { sequence, checkpointId: headed?.header?.checkpointId ?? "" };
  }

  /** The one writer of a run. */
  #writer(runId: string): RunWriter {
    const writer = this.#writers.get(runId) ?? this.#newWriter(runId);
    this.#writers.delete(runId);
    this.#writers.set(runId, writer);
    this.#makeRoom(writer);
    return writer;
  }

  #newWriter(runId: string): RunWriter {
    const folder = this.#folder(runId);
    return new RunWriter(folder, runId, {
      fs: this.#fs,
      durable: this.#durable,
      root: this.#root,
      onListing: (listing) => this.#sweep(folder, listing),
    });
  }

  /** Drops the writers that were not used for longest. Those that are busy may be too many for a while. */
  #makeRoom(writer: RunWriter): void {
    if (this.#writers.size <= REMEMBERED_RUNS) return;
    for (const [runId, one] of this.#writers) {
      if (one === writer || !one.idle) continue;
      this.#writers.delete(runId);
      this.#letGo(one);
      if (this.#writers.size <= REMEMBERED_RUNS) return;
    }
  }

  /** Closes the files of a writer, in its turn. */
  #letGo(writer: RunWriter): void {
    this.#tasks.start(() => writer.inTurn(() => writer.forget()), ignore);
  }

  #sweep(folder: string, { temporaries }: Listing): void {
    if (temporaries.every((name) => ownerOf(name) === this.#fs.owner)) return;
    this.#tasks.start(() => sweep(this.#fs, folder, temporaries, now()), ignore);
  }

  #remove({ runId, sequence }: Removal): Promise<boolean> {
    const writer = this.#writer(runId);
    return writer.inTurn(async () => {
      await writer.forget();
      return removeRun(this.#fs, this.#folder(runId), runId, this.#durable, sequence);
    });
  }

  async saveGraph(fingerprint: string, text: string): Promise<void> {
    const folder = join(this.place, GRAPHS);
    const path = join(folder, graphName(fingerprint));
    if ((await ignoring(this.#fs.lstat(path))) !== undefined) return;
    await this.#root.makeFolder(folder, false);
    const temporary = `${path}.${this.#fs.owner}.tmp`;
    const file = await this.#fs.create(temporary);
    try {
      await this.#fs.write(file, Buffer.from(text));
    } finally {
      await this.#fs.close(file);
    }
    await this.#fs.rename(temporary, path);
  }

  async graph(fingerprint: string): Promise<string | undefined> {
    const path = join(this.place, GRAPHS, graphName(fingerprint));
    const bytes = await readFile(this.#fs, path);
    return bytes && Buffer.from(bytes).toString();
  }
}

function faulty(sequence: number, fault: Error): StoredRecord {
  return { sequence, header: "", content: "", sha256: "", fault };
}

/** What nobody waits for and fails is tried again by the next to come. */
function ignore(): void {}
