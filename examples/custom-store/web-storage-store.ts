import type { Claim, RunFilter } from "waymark";
import {
  type After,
  type Chain,
  type Encode,
  filterRuns,
  type Head,
  type HeaderEntry,
  type LeaseKeeper,
  Leases,
  parseHeader,
  type RecordAt,
  type RecordBackend,
  RecordStore,
  type RecordStoreOptions,
  type Removal,
  type RemoveOptions,
  type RunEntry,
  runEntryOf,
  type StoredRecord,
} from "waymark/stores";

/** What the store needs of `localStorage` or `sessionStorage`. */
export interface WebStorage {
  readonly length: number;
  key(index: number): string | null;
  getItem(key: string): string | null;
  setItem(key: string, value: string): void;
  removeItem(key: string): void;
}

/** A record, the sequence of the snapshot that it builds on, and whether it was set aside. */
interface Row extends StoredRecord {
  readonly base: number;
  readonly bytes: number;
  readonly setAside?: true;
}

/** All records of a run, oldest first, and its newest checkpoint. */
interface Run {
  readonly head: Head;
  readonly rows: readonly Row[];
}

/** Who may write to a run, and until when. */
interface StoredLease {
  readonly epoch: number;
  readonly owner: string;
  readonly until: number;
}

const RUN = "waymark/run/";
const LEASE = "waymark/lease/";
const GRAPH = "waymark/graph/";

/**
 * Keeps the records of each run in one item of a Web Storage: an item is written in one piece or not at all, and
 * between reading and writing it nobody else gets a turn.
 */
class WebStorageBackend implements RecordBackend, LeaseKeeper {
  readonly place = "the web storage";
  readonly #storage: WebStorage;
  readonly #leases = new Leases(this);

  constructor(storage: WebStorage) {
    this.#storage = storage;
  }

  async append(runId: string, after: After, encode: Encode): Promise<Head | undefined> {
    const record = await encode();
    const { head, rows } = this.#run(runId);
    const { checkpointId = head.checkpointId } = after;
    if (head.sequence !== after.sequence || head.checkpointId !== checkpointId) return head;
    const held = this.#leases.held(runId);
    if (held !== undefined && this.#lease(runId)?.epoch !== held.epoch) {
      const claimedBy = await this.holder(runId);
      return claimedBy === undefined ? head : { ...head, claimedBy };
    }
    const { sequence, header, content, sha256, base, bytes, fields } = record;
    const row: Row = { sequence, header, content, sha256, base, bytes };
    const newest = { sequence, checkpointId: fields.checkpointId };
    this.#write(RUN + runId, { head: newest, rows: [...rows, row] });
    return undefined;
  }

  async chain(runId: string, at: RecordAt): Promise<Chain | undefined> {
    const { head, rows } = this.#run(runId);
    if (head.sequence === 0) return undefined;
    const isIt = ({ sequence }: Row): boolean =>
      "below" in at ? sequence < at.below : sequence === at.sequence;
    const intact = rows.filter(({ setAside }) => !setAside);
    const last = intact.findLast(isIt);
    const records = intact.filter(
      ({ sequence }) => last && sequence >= last.base && sequence <= last.sequence,
    );
    return { head, records };
  }

  async headers(runId: string): Promise<readonly HeaderEntry[]> {
    return this.#run(runId)
      .rows.toReversed()
      .map((row) => ({
        sequence: row.sequence,
        bytes: row.bytes,
        header: parseHeader(row.header),
        setAside: row.setAside === true,
      }));
  }

  async records(runId: string, from: number, to: number): Promise<readonly StoredRecord[]> {
    return this.#run(runId).rows.filter(
      ({ sequence, setAside }) => sequence >= from && sequence <= to && !setAside,
    );
  }

  async setAside(
    runId: string,
    sequence: number,
    isBad: () => Promise<boolean>,
  ): Promise<string | undefined> {
    if (!(await isBad())) return undefined;
    const { head, rows } = this.#run(runId);
    const aside = (row: Row): Row => (row.sequence === sequence ? { ...row, setAside: true } : row);
    this.#write(RUN + runId, { head, rows: rows.map(aside) });
    return `${RUN}${runId}, record ${sequence}`;
  }

  async discard(runId: string, sequences: readonly number[]): Promise<void> {
    const { head, rows } = this.#run(runId);
    if (head.sequence === 0) return;
    const stays = rows.filter(({ sequence }) => !sequences.includes(sequence));
    this.#write(RUN + runId, { head, rows: stays });
  }

  async runs(filter: RunFilter): Promise<RunEntry[]> {
    const all = (await this.list()).flatMap((runId) => {
      for (const { sequence, header, setAside } of this.#run(runId).rows.toReversed()) {
        const fields = setAside ? undefined : parseHeader(header);
        if (fields !== undefined) return [runEntryOf(fields, sequence)];
      }
      return [];
    });
    return filterRuns(all, filter);
  }

  async list(): Promise<string[]> {
    const { length } = this.#storage;
    const keys = Array.from({ length }, (_, at) => this.#storage.key(at) ?? "");
    return keys.filter((key) => key.startsWith(RUN)).map((key) => key.slice(RUN.length));
  }

  async find(checkpointId: string): Promise<string | undefined> {
    const has = ({ header, setAside }: Row): boolean =>
      !setAside && parseHeader(header)?.checkpointId === checkpointId;
    return (await this.list()).find((runId) => this.#run(runId).rows.some(has));
  }

  async remove(runs: readonly Removal[], options: RemoveOptions): Promise<string[]> {
    const removable = runs.filter(({ runId, sequence }) => {
      const { head } = this.#run(runId);
      if (head.sequence === 0 || (sequence ?? head.sequence) !== head.sequence) return false;
      return !options.unclaimed || this.#lease(runId) === undefined;
    });
    for (const { runId } of options.dryRun ? [] : removable) this.#storage.removeItem(RUN + runId);
    return removable.map(({ runId }) => runId);
  }

  async saveGraph(fingerprint: string, text: string): Promise<void> {
    this.#storage.setItem(GRAPH + fingerprint, text);
  }

  async graph(fingerprint: string): Promise<string | undefined> {
    return this.#storage.getItem(GRAPH + fingerprint) ?? undefined;
  }

  claim(runId: string, ttl: number | undefined): Promise<Claim | undefined> {
    return this.#leases.claim(runId, ttl);
  }

  holder(runId: string): ReturnType<RecordBackend["holder"]> {
    return this.#leases.holder(runId);
  }

  close(): Promise<void> {
    return this.#leases.close();
  }

  async acquire(runId: string, owner: string, ttl: number): Promise<number | undefined> {
    const held = this.#lease(runId);
    if (held !== undefined && held.owner !== owner) return undefined;
    const epoch = (this.#lease(runId, true)?.epoch ?? 0) + 1;
    this.#write(LEASE + runId, { epoch, owner, until: Date.now() + ttl });
    return epoch;
  }

  async renew(runId: string, epoch: number, ttl: number): Promise<boolean> {
    const lease = this.#lease(runId, true);
    if (lease?.epoch !== epoch || lease.until === 0) return false;
    this.#write(LEASE + runId, { ...lease, until: Date.now() + ttl });
    return true;
  }

  async release(runId: string, epoch: number): Promise<void> {
    const lease = this.#lease(runId, true);
    // The item stays, so that the next lease gets a higher epoch.
    if (lease?.epoch === epoch) this.#write(LEASE + runId, { ...lease, until: 0 });
  }

  async owner(runId: string): Promise<string | undefined> {
    return this.#lease(runId)?.owner;
  }

  /** The lease of a run, unless it has expired. */
  #lease(runId: string, isAny = false): StoredLease | undefined {
    const lease = this.#read<StoredLease>(LEASE + runId);
    return lease !== undefined && (isAny || lease.until > Date.now()) ? lease : undefined;
  }

  #run(runId: string): Run {
    return this.#read(RUN + runId) ?? { head: { sequence: 0, checkpointId: "" }, rows: [] };
  }

  #read<T>(key: string): T | undefined {
    return JSON.parse(this.#storage.getItem(key) ?? "null") ?? undefined;
  }

  #write(key: string, value: Run | StoredLease): void {
    this.#storage.setItem(key, JSON.stringify(value));
  }
}

/** Keeps checkpoints in a Web Storage, such as `localStorage` of Deno or of Node 22.4 and later. */
export class WebStorageStore extends RecordStore {
  constructor(storage: WebStorage, options: RecordStoreOptions = {}) {
    super(new WebStorageBackend(storage), { ...options, snapshotEvery: 16 });
  }
}
