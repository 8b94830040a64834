import { basename, dirname, join } from "node:path";
import type { Claim, ClaimHolder } from "../../checkpoint/store.js";
import { inBackground, moment, steadySleep } from "../../clock.js";
import { CoalescedRead, Mutex } from "../../concurrency.js";
import { systemCode } from "../../errors.js";
import { holderOf, type LastRenewal, Lease, newOwner } from "../leases.js";
import { OWNER, pidOf } from "../process.js";
import { type FileSystem, ignoring, namesIn, Root, unsynced, writeFile } from "./file-system.js";
import { folderName } from "./layout.js";
import { NodeFileSystem } from "./node-file-system.js";

/*
 * {root}/.claims/{run}@{owner}.{n}   a claim, valid while its owner lives: {"host","pid","since","id"}
 * {root}/.claims/{owner}.alive       grows while its owner has claims
 *
 * No file is shared, so none has to be taken over from a dead process. A claimant creates its own file
 * beside those of the others and then lists the folder: if no other living process has a claim on the
 * run, the claimant has it. Of two claimants, the second one to create its file sees the first, so they
 * never both have it. If each sees the other, the one with the larger name gives up, and the other
 * waits for that.
 */

const FOLDER = ".claims";
const ALIVE = ".alive";
const NAME = new RegExp(`^(?:([^@]+)@)?(${OWNER})\\.(?:\\d+|alive)$`);
/** The interval of heartbeats, in milliseconds. */
const BEAT = 1000;
/** How long to watch for a heartbeat. */
const WATCH = 3 * BEAT;
/** For how long a process that was seen alive counts as alive. */
const BELIEVED = 10 * BEAT;
/** How often to check whether a rival has given up, and how long to wait before each check, in milliseconds. */
const LOOKS = 20;
const PAUSE = 5;
const MARK = Buffer.from(".");
/** Enough bytes for the contents of a claim. */
const HEAD = 1024;

/** A claim on a run, by a living or a dead process. */
export interface FoundClaim {
  /** The name of its file. */
  readonly name: string;
  /** The name of the run's folder; `""` for a heartbeat file. */
  readonly run: string;
  /** The process that made it. */
  readonly owner: string;
  /** Whether that process is alive; `undefined` if that can't be determined here. */
  readonly lives: boolean | undefined;
}

/** What watching a process has shown. */
interface Watched {
  readonly lives: boolean;
  /** Identifies its last heartbeat; `""` if there was none. */
  readonly sign: string;
}

/** The claims under a root. Changes nothing, not even what dead processes left behind. */
export async function claimsUnder(fs: FileSystem, root: string): Promise<FoundClaim[]> {
  const lives = new Map<string, boolean | undefined>();
  return ((await namesIn(fs, join(root, FOLDER))) ?? []).flatMap((name) => {
    const [, run = "", owner] = NAME.exec(name) ?? [];
    if (owner === undefined) return [];
    if (!lives.has(owner)) lives.set(owner, fs.processes.isLiving(owner));
    return [{ name, run, owner, lives: lives.get(owner) }];
  });
}

/** One store's claims under a root, and its view of other processes' claims. */
export class Claims {
  readonly #fs: FileSystem;
  readonly #root: Root;
  readonly #folder: string;
  readonly #looks = new CoalescedRead(() => this.#look());
  /** What watching has shown about processes whose liveness can't be queried. */
  readonly #watched = new Map<string, Promise<Watched>>();
  /** The names of this store's claims, each with its lease; `undefined` until the claim is won. */
  readonly #held = new Map<string, Lease | undefined>();
  #claims = 0;
  #heart: Heartbeat | undefined;

  constructor(fs: FileSystem, root: Root) {
    this.#fs = fs;
    this.#root = root;
    this.#folder = join(root.path, FOLDER);
  }

  /** The living process that has claimed a run. */
  async holder(runId: string): Promise<ClaimHolder | undefined> {
    const [rival] = await this.#rivals(folderName(runId), "");
    if (rival === undefined) return undefined;
    const [head] = await this.#fs.heads([join(this.#folder, rival.name)], HEAD);
    // The file may still be empty.
    return holderOf(Buffer.from(head?.bytes ?? []).toString(), pidOf(rival.owner));
  }

  /** Claims a run; `undefined` if a living process has it. */
  async claim(runId: string): Promise<Claim | undefined> {
    const run = folderName(runId);
    if ((await this.#rivals(run, "")).length > 0) return undefined;
    const { owner: id } = this.#fs;
    const owner = newOwner(this.#fs.processes, id);
    const epoch = ++this.#claims;
    const name = `${run}@${id}.${epoch}`;
    let isMine = false;
    this.#held.set(name, undefined);
    this.#heart ??= new Heartbeat(this.#fs, this.#aliveFile(id), () => this.#findLost());
    const heart = this.#heart;
    try {
      await this.#create(name, owner);
      isMine = await this.#isFirst(run, name);
    } finally {
      if (!isMine) await this.#release(name);
    }
    if (!isMine) return undefined;
    // After this time without a heartbeat, others may remove the claim.
    const lease = new Lease(epoch, owner, WATCH, heart, () => heart.beat());
    this.#held.set(name, lease);
    return lease.claim(() => this.#release(name));
  }

  async #isFirst(run: string, name: string): Promise<boolean> {
    for (let looks = 0; looks < LOOKS; looks++) {
      const rivals = await this.#rivals(run, name);
      // Others may have taken this process for dead and removed its claim.
      if (rivals.length === 0) return (await this.#fs.idOf(join(this.#folder, name))) !== undefined;
      if (rivals.some((rival) => rival.name < name)) return false;
      await steadySleep(PAUSE);
    }
    return false;
  }

  /**
   * The claims of other living processes on this run. The claims of silent processes are removed, but only if
   * `own` already exists, so that no third process can take the run in between.
   */
  async #rivals(run: string, own: string): Promise<FoundClaim[]> {
    const rivals: FoundClaim[] = [];
    for (const claim of (await this.#looks.get()).get(run) ?? []) {
      if (claim.name === own) continue;
      if (claim.lives ?? (await this.#beats(claim.owner))) rivals.push(claim);
      else if (own !== "") await this.#evict(claim);
    }
    return rivals;
  }

  /**
   * Removes the claim of a process without a heartbeat. If that process is just waking up, it learns only
   * with its next heartbeat that its claim is gone, so this waits long enough for one.
   */
  async #evict({ name, owner }: FoundClaim): Promise<void> {
    const { sign = "" } = (await this.#watched.get(owner)) ?? {};
    await this.#unlink(name);
    if (sign === "" || (await this.#signOf(owner)) !== sign) {
      this.#watched.delete(owner);
      await steadySleep(WATCH);
    }
    const left = (await namesIn(this.#fs, this.#folder)) ?? [];
    if (left.some((one) => one.includes(`@${owner}.`))) return;
    await this.#unlink(owner + ALIVE).catch(() => {});
  }

  /** The existing claims by run. Those of dead processes are removed. */
  async #look(): Promise<ReadonlyMap<string, readonly FoundClaim[]>> {
    const found = new Map<string, FoundClaim[]>();
    for (const claim of await claimsUnder(this.#fs, this.#root.path)) {
      const { name, run } = claim;
      const lives = claim.owner === this.#fs.owner || claim.lives;
      if (lives === false) await this.#unlink(name).catch(() => {});
      else found.set(run, [...(found.get(run) ?? []), { ...claim, lives }]);
    }
    return found;
  }

  /** Whether a process on another machine or in another container has a heartbeat. */
  async #beats(owner: string): Promise<boolean> {
    const known = this.#watched.get(owner);
    if (known !== undefined) {
      const { lives, sign } = await known;
      // A process that was silent then may have woken up since.
      if (lives || sign === (await this.#signOf(owner))) return lives;
    }
    const watching = this.#watch(owner);
    this.#watched.set(owner, watching);
    watching.catch(() => this.#watched.delete(owner));
    return (await watching).lives;
  }

  async #watch(owner: string): Promise<Watched> {
    const before = await this.#signOf(owner);
    await steadySleep(WATCH);
    const sign = await this.#signOf(owner);
    const lives = sign !== before && sign !== "";
    if (lives) inBackground(BELIEVED, () => this.#watched.delete(owner));
    return { lives, sign };
  }

  /** Identifies the last heartbeat of a process. */
  async #signOf(owner: string): Promise<string> {
    const found = await ignoring(this.#fs.lstat(this.#aliveFile(owner)));
    return found === undefined ? "" : `${found.id} ${found.size} ${found.modified}`;
  }

  #aliveFile(owner: string): string {
    return join(this.#folder, owner + ALIVE);
  }

  /**
   * Finds the claims that others have removed because this process had no heartbeat for too long.
   *
   * @returns the names in the folder.
   */
  async #findLost(): Promise<ReadonlySet<string>> {
    const held = [...this.#held];
    const names = new Set((await namesIn(this.#fs, this.#folder)) ?? []);
    for (const [name, lease] of held) {
      if (!names.has(name) && this.#held.get(name) === lease)
        lease?.lose("another process has removed it");
    }
    return names;
  }

  async #release(name: string): Promise<void> {
    this.#held.get(name)?.stop();
    this.#held.delete(name);
    const isLast = this.#held.size === 0;
    const heart = this.#heart;
    if (isLast) this.#heart = undefined;
    await this.#unlink(name);
    if (!isLast) return;
    await heart?.stop();
    await ignoring(this.#fs.rmdir(this.#folder), ["ENOENT", "ENOTEMPTY", "EEXIST"]);
  }

  /** Creates the file of a claim. The last process to release one may remove the folder at any time. */
  async #create(name: string, owner: string): Promise<void> {
    const path = join(this.#folder, name);
    for (let tries = 1; ; tries++) {
      try {
        await writeFile(this.#fs, path, owner);
        return;
      } catch (error) {
        if (systemCode(error) !== "ENOENT" || tries === LOOKS) throw error;
      }
      await this.#root.makeFolder(this.#folder, false);
    }
  }

  async #unlink(name: string): Promise<void> {
    await ignoring(this.#fs.unlink(join(this.#folder, name)));
  }
}

/**
 * The heartbeat of this process: a file that grows. It is created by the first beat, so a shorter claim costs
 * nothing.
 */
class Heartbeat implements LastRenewal {
  readonly #fs: FileSystem;
  readonly #path: string;
  readonly #onBeat: () => Promise<ReadonlySet<string>>;
  /** When the last beat began after which this process's heartbeat file was seen to be still there. */
  at = moment();
  #file: number | undefined;
  readonly #beats = new Mutex();
  #cancel = this.#schedule();

  /** @param onBeat - checks for removed claims; resolves to the names in the folder. */
  constructor(fs: FileSystem, path: string, onBeat: () => Promise<ReadonlySet<string>>) {
    this.#fs = fs;
    this.#path = path;
    this.#onBeat = onBeat;
  }

  #schedule(): () => void {
    return inBackground(BEAT, () => {
      this.beat().catch(() => {});
      this.#cancel = this.#schedule();
    });
  }

  async stop(): Promise<void> {
    this.#cancel();
    await this.#beats.run(async () => {
      if (this.#file === undefined) return;
      await this.#close();
      await ignoring(this.#fs.unlink(this.#path));
    });
  }

  /** Beats now, then checks for removed claims; `undefined` if the beat could not be shown. */
  beat(): Promise<true | undefined> {
    return this.#beats.run(() => this.#beat());
  }

  async #beat(): Promise<true | undefined> {
    for (let tries = 0; tries < 2; tries++) {
      const at = moment();
      const [shown] = await Promise.allSettled([this.#show()]);
      const names = await this.#onBeat();
      // On a full disk there is no heartbeat, but removed claims can still be seen.
      if (shown.status === "rejected") return undefined;
      if (names.has(basename(this.#path))) {
        this.at = at;
        return true;
      }
      // Others took this process for dead and removed its file: nobody sees what is written to it.
      await this.#close();
    }
    throw new Error("other processes keep removing its heartbeat");
  }

  async #show(): Promise<void> {
    this.#file ??= await this.#fs.create(this.#path);
    await this.#fs.write(this.#file, MARK);
  }

  async #close(): Promise<void> {
    const file = this.#file;
    this.#file = undefined;
    if (file !== undefined) await this.#fs.close(file);
  }
}

/** Claims a folder that only one process and one store may use; `undefined` if it is in use. */
export function claimFolder(path: string, kind: string): Promise<Claim | undefined> {
  const fs = unsynced(new NodeFileSystem());
  return new Claims(fs, new Root(fs, dirname(path))).claim(`${kind} ${basename(path)}`);
}
