import { filterRuns } from "../../checkpoint/arguments.js";
import {
  type After,
  type Chain,
  claimLost,
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
  unreadableRun,
} from "../../checkpoint/records/backend.js";
import { parseHeader } from "../../checkpoint/records/header.js";
import type { Claim, ClaimHolder, RunFilter } from "../../checkpoint/store.js";
import { moment } from "../../clock.js";
import { mapLimit } from "../../concurrency.js";
import { show } from "../../errors.js";
import { hasEnded } from "../../state/fields.js";
import { type RunStatus, statuses } from "../../state/record.js";
import { holderOf, type LeaseKeeper, Leases } from "../leases.js";
import { fromColumn, toColumn } from "../sql/text.js";
import type { Connection } from "./connection.js";
import { scripts } from "./scripts.js";

/** How many runs to read or remove at a time. */
const PAGE = 500;

/** For how many runs to remember the first checkpoint. */
const KNOWN_RUNS = 10_000;

const SHA256 = 64;

/** Keeps records in hashes of Redis; see `scripts.ts` for its keys. */
export class RedisBackend implements RecordBackend, LeaseKeeper {
  readonly place: string;
  readonly #connection: Connection;
  readonly #ttl: string;
  readonly #leases = new Leases(this);
  /**
   * The first checkpoint of runs saved by this store, which distinguishes a run from a later one with the
   * same id.
   */
  readonly #born = new Map<string, string>();

  /** @param finishedTtl - after how many milliseconds a finished run expires; `undefined` for never. */
  constructor(connection: Connection, prefix: string, finishedTtl: number | undefined) {
    this.place = `Redis prefix ${show(prefix)}`;
    this.#connection = connection;
    this.#ttl = finishedTtl === undefined ? "" : String(finishedTtl);
  }

  async append(runId: string, after: After, encode: Encode): Promise<Head | undefined> {
    const encoding = encode();
    const record = encoding instanceof Promise ? await encoding : encoding;
    const { sequence, header, content, sha256, base, bytes } = record;
    const { checkpointId, graph, status, savedAt } = record.fields;
    const lease = this.#leases.held(runId);
    const id = JSON.stringify(checkpointId);
    const sentAt = moment();
    const reply = await this.#connection.save(await this.#connection.tagOf(runId), [
      runId,
      String(after.sequence),
      after.checkpointId === undefined ? "" : JSON.stringify(after.checkpointId),
      lease === undefined ? "" : String(lease.epoch),
      lease === undefined ? "" : String(lease.ttl),
      String(sequence),
      id,
      `${status}:${toColumn(graph)}`,
      String(scoreOf(savedAt)),
      `${base} ${bytes} ${id}\n${header}`,
      sha256 + content,
      hasEnded(record.fields) ? this.#ttl : "",
    ]);
    if (!Array.isArray(reply)) {
      lease?.renewed(sentAt);
      if (this.#born.size >= KNOWN_RUNS) this.#born.clear();
      this.#born.set(runId, String(reply));
      return undefined;
    }
    const [newest, newestId, epoch, owner] = texts(reply);
    const head = headOf(newest, newestId);
    if (lease === undefined || String(lease.epoch) === epoch) return head;
    return { ...head, claimedBy: holderOf(owner ?? "") };
  }

  async chain(runId: string, at: RecordAt): Promise<Chain | undefined> {
    const [bound, isExact] = "below" in at ? [at.below, "0"] : [at.sequence, "1"];
    const most = String(Math.min(bound, Number.MAX_SAFE_INTEGER));
    const reply = await this.#read("chain", runId, most, isExact);
    if (reply === null) return undefined;
    const [sequence, id, ...records] = texts(reply);
    return { head: headOf(sequence, id), records: recordsOf(records) };
  }

  async headers(runId: string): Promise<HeaderEntry[]> {
    const most = Number.MAX_SAFE_INTEGER;
    const found = texts(await this.#read("records", runId, String(-most), String(most), "0"));
    const entries = groups(found).map(([field = "", entry = ""]) => {
      const { bytes, header } = partsOf(entry);
      const sequence = Math.abs(Number(field));
      return { sequence, bytes, header: parseHeader(header), setAside: field.startsWith("-") };
    });
    return entries.sort((a, b) => b.sequence - a.sequence);
  }

  async records(runId: string, from: number, to: number): Promise<StoredRecord[]> {
    const first = Math.max(from, 1);
    const found = texts(await this.#read("records", runId, String(first), String(to), "1"));
    return recordsOf(found).sort((a, b) => a.sequence - b.sequence);
  }

  async setAside(
    runId: string,
    sequence: number,
    isBad: () => Promise<boolean>,
  ): Promise<string | undefined> {
    // Looked up first, so that a run that starts over in the meantime is left alone.
    const run = await this.#look(runId);
    if (run === undefined || !(await isBad())) return undefined;
    const done = await this.#write("setAside", runId, run.born, String(sequence));
    return Number(done) === 1 ? `${this.place}, run ${show(runId)}, entry -${sequence}` : undefined;
  }

  async discard(runId: string, sequences: readonly number[]): Promise<void> {
    const born = this.#born.get(runId) ?? (await this.#look(runId))?.born;
    if (born === undefined) return;
    for (let from = 0; from < sequences.length; from += PAGE) {
      const some = sequences.slice(from, from + PAGE).map(String);
      await this.#write("discard", runId, born, ...some);
    }
  }

  async runs(filter: RunFilter): Promise<RunEntry[]> {
    const { limit = Number.POSITIVE_INFINITY, ...rest } = filter;
    const { runId, status = statuses, graph, before, metadata = {} } = rest;
    if (runId !== undefined) {
      return filterRuns(runsOf(await this.#read("run", runId)), filter);
    }
    const indexes = [graph === undefined ? "" : `=${toColumn(graph)}`, ...[status].flat()];
    const end = before === undefined ? "+inf" : `(${Date.parse(before)}`;
    const found = new Map<string, RunEntry>();
    let { cursor } = filter;
    while (found.size < limit) {
      // If the filter needs nothing but an index, the index's result is final.
      const isExact = Object.keys(metadata).length === 0;
      const most = Math.min(PAGE, isExact ? limit - found.size : PAGE);
      const page = await this.#page(most, end, cursor, indexes);
      for (const run of filterRuns(page, rest)) found.set(run.runId, run);
      cursor = page.at(-1);
      if (page.length < most) break;
    }
    return [...found.values()].slice(0, limit);
  }

  /** The next runs after a cursor, merged from all tags; each tag returns a full page. */
  async #page(
    most: number,
    end: string,
    cursor: RunFilter["cursor"],
    indexes: readonly string[],
  ): Promise<RunEntry[]> {
    const last = cursor && scoreOf(cursor.savedAt);
    const isNarrower = last !== undefined && !(last >= Number(end.slice(1)));
    const place = [isNarrower ? String(last) : end, String(last ?? ""), cursor?.runId ?? ""];
    const pages = await this.#eachTag("runs", String(most), ...place, ...indexes);
    return filterRuns(pages.flatMap(runsOf), { limit: most });
  }

  async list(): Promise<string[]> {
    const found = new Set<string>();
    const scan = async (tag: string): Promise<void> => {
      let cursor = "0";
      do {
        const reply = await this.#connection.call(scripts.list, tag, cursor);
        const [next = "0", ...runIds] = texts(reply);
        for (const runId of runIds) found.add(runId);
        cursor = next;
      } while (cursor !== "0");
    };
    await Promise.all((await this.#connection.tags()).map(scan));
    return [...found];
  }

  async find(checkpointId: string): Promise<string | undefined> {
    const found = await this.#eachTag("find", JSON.stringify(checkpointId));
    const runId = found.find((reply) => reply !== null);
    return runId === undefined ? undefined : String(runId);
  }

  async saveGraph(fingerprint: string, text: string): Promise<void> {
    await this.#write("saveGraph", fingerprint, text);
  }

  async graph(fingerprint: string): Promise<string | undefined> {
    const reply = await this.#read("graph", fingerprint);
    return reply === null ? undefined : String(reply);
  }

  /**
   * @throws CheckpointConflictError if this store had claimed one of them and another process has claimed it
   * since.
   */
  async remove(runs: readonly Removal[], options: RemoveOptions): Promise<string[]> {
    const { unclaimed, dryRun } = options;
    const removed = await mapLimit(runs, PAGE, async ({ runId, sequence }) => {
      const run = await this.#look(runId);
      if (run === undefined || (sequence ?? run.sequence) !== run.sequence) return [];
      if (unclaimed && run.owner !== "") return [];
      if (dryRun) return [runId];
      const epoch = this.#leases.held(runId)?.epoch ?? "";
      const at = String(sequence ?? "");
      const flag = unclaimed ? "1" : "0";
      const reply = await this.#write("remove", runId, run.born, at, flag, String(epoch));
      if (typeof reply === "string") {
        throw claimLost(runId, run.sequence, run.sequence, holderOf(reply), "remove it");
      }
      // If the response was lost, the retry finds nothing although the run was there.
      this.#born.delete(runId);
      return [runId];
    });
    return removed.flat();
  }

  claim(runId: string, ttl: number | undefined): Promise<Claim | undefined> {
    return this.#leases.claim(runId, ttl);
  }

  async acquire(runId: string, owner: string, ttl: number): Promise<number | undefined> {
    const reply = await this.#write("claim", runId, owner, String(ttl));
    return reply === null ? undefined : Number(reply);
  }

  async renew(runId: string, epoch: number, ttl: number): Promise<boolean> {
    return Number(await this.#write("renew", runId, String(epoch), String(ttl))) === 1;
  }

  async release(runId: string, epoch: number): Promise<void> {
    await this.#write("release", runId, String(epoch));
  }

  async owner(runId: string): Promise<string | undefined> {
    const [, , owner] = texts(await this.#read("look", runId));
    return owner || undefined;
  }

  async evict(runId: string, owner: string): Promise<void> {
    await this.#write("evict", runId, owner);
  }

  holder(runId: string): Promise<ClaimHolder | undefined> {
    return this.#leases.holder(runId);
  }

  async close(): Promise<void> {
    await this.#leases.close();
    await this.#connection.close();
  }

  /** A run's first checkpoint, which distinguishes it from a later run with the same id, its sequence and claim. */
  async #look(
    runId: string,
  ): Promise<{ born: string; sequence: number; owner: string } | undefined> {
    const [born = "", sequence, owner = ""] = texts(await this.#read("look", runId));
    return born === "" ? undefined : { born, sequence: Number(sequence), owner };
  }

  async #read(name: keyof typeof scripts, about: string, ...args: string[]): Promise<unknown> {
    const tag = await this.#connection.tagOf(about);
    return this.#connection.call(scripts[name], tag, about, ...args);
  }

  async #write(name: keyof typeof scripts, about: string, ...args: string[]): Promise<unknown> {
    this.#connection.checkWritable();
    return this.#read(name, about, ...args);
  }

  async #eachTag(name: keyof typeof scripts, ...args: string[]): Promise<unknown[]> {
    const tags = await this.#connection.tags();
    return Promise.all(tags.map((tag) => this.#connection.call(scripts[name], tag, ...args)));
  }
}

/** The time of a save as a score of a sorted set. */
function scoreOf(savedAt: string): number {
  return Date.parse(savedAt) || 0;
}

function texts(reply: unknown): string[] {
  return Array.isArray(reply) ? reply.map(String) : [];
}

/** The sequence, the entry and the content of each record in a reply. */
function groups(values: readonly string[]): string[][] {
  return Array.from({ length: values.length / 3 }, (_, at) => values.slice(3 * at, 3 * at + 3));
}

function headOf(sequence: unknown, id: unknown): Head {
  return { sequence: Number(sequence), checkpointId: String(JSON.parse(String(id))) };
}

/** The size and header in an entry; neither if the entry was tampered with. */
function partsOf(entry: string): { readonly bytes: number; readonly header: string } {
  const end = entry.indexOf("\n");
  return { bytes: Number(entry.split(" ", 2)[1] ?? 0) || 0, header: entry.slice(end + 1) };
}

function recordsOf(values: readonly string[]): StoredRecord[] {
  return groups(values).map(([sequence, entry = "", stored = ""]) => ({
    sequence: Number(sequence),
    header: partsOf(entry).header,
    sha256: stored.slice(0, SHA256),
    content: stored.slice(SHA256),
  }));
}

/** Parses a listing. A run whose header can't be read is listed from the index. */
function runsOf(reply: unknown): RunEntry[] {
  return (Array.isArray(reply) ? reply : []).map((one: unknown) => {
    const [runId = "", score, at, index = "", entry = ""] = texts(one);
    const sequence = Number(at);
    const header = parseHeader(partsOf(entry).header);
    if (header !== undefined) return { ...runEntryOf(header, sequence), runId };
    const savedAt = new Date(Number(score)).toISOString();
    const [status] = index.split(":", 1) as [RunStatus];
    const graph = fromColumn(index.slice(status.length + 1));
    return unreadableRun({ runId, sequence, graph, status, savedAt });
  });
}
