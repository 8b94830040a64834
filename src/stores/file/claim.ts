import { join } from "node:path";
import type { Claim } from "../../checkpoint/store.js";
import { codeOf, type FileSystem, unless } from "./file-system.js";
import { BEAT, Heartbeat } from "./heartbeat.js";
import { folderName } from "./layout.js";
import { namesIn } from "./listing.js";
import { makeFolder } from "./make-folder.js";
import { isLiving, ownerName } from "./process.js";
import { SharedRead } from "./shared-read.js";

/*
 * {root}/.claims/{run}@{owner}.{n}   a claim, for as long as its owner lives
 * {root}/.claims/{owner}.alive       grows while its owner has claims
 *
 * There is no file that all fight for, so none has to be taken over from the dead. A claimant puts its
 * own file beside those of the others, and then looks: if no living one has another, it has the run. Of
 * two, the one that was there second sees the first, so never both have it. Should both have come at
 * once and see each other, the one with the larger name gives up and the other waits for that.
 */

const FOLDER = ".claims";
const ALIVE = ".alive";
const OWNER = /^([^@]+@)?(\d+-\d+-[\da-f]{8}-[\da-f]{8})\.(?:\d+|alive)$/;
/** How long to watch for a sign of life, in milliseconds. */
const WATCH = 3 * BEAT;
/** How often to look whether the other has given up, and how long to wait before each time, in milliseconds. */
const LOOKS = 20;
const PAUSE = 5;

/** How long to believe that one lives who was seen to, in milliseconds. */
const BELIEVED = 10 * BEAT;

/** A file in the folder of the claims. */
interface Found {
  readonly name: string;
  readonly owner: string;
}

let claims = 0;

/** The claims of a root, as one store of this process has them and sees them. */
export class Claims {
  readonly #fs: FileSystem;
  readonly #folder: string;
  readonly #looks = new SharedRead(() => this.#look());
  #name: string | undefined;
  /** What was found of those who can't be asked, by watching them. */
  readonly #watched = new Map<string, Promise<boolean>>();
  #held = 0;
  #heart: Heartbeat | undefined;

  constructor(fs: FileSystem, root: string) {
    this.#fs = fs;
    this.#folder = join(root, FOLDER);
  }

  /** Names this store among those that claim runs. */
  get #owner(): string {
    this.#name ??= ownerName();
    return this.#name;
  }

  /** Whether a living process has a run. */
  async isClaimed(runId: string): Promise<boolean> {
    return (await this.#rivals(`${folderName(runId)}@`, "")).length > 0;
  }

  /** Claims a run; `undefined` when a living process has it. */
  async claim(runId: string): Promise<Claim | undefined> {
    const run = `${folderName(runId)}@`;
    if ((await this.#rivals(run, "")).length > 0) return undefined;
    const name = `${run}${this.#owner}.${++claims}`;
    let isMine = false;
    this.#held++;
    this.#heart ??= new Heartbeat(this.#fs, join(this.#folder, this.#owner + ALIVE));
    try {
      await this.#fs.close(await this.#create(name));
      isMine = await this.#isFirst(run, name);
    } finally {
      if (!isMine) await this.#release(name);
    }
    if (!isMine) return undefined;
    let released: Promise<void> | undefined;
    return {
      release: () => {
        released ??= this.#release(name);
        return released;
      },
    };
  }

  async #isFirst(run: string, name: string): Promise<boolean> {
    for (let looks = 0; looks < LOOKS; looks++) {
      const rivals = await this.#rivals(run, name);
      if (rivals.length === 0) return true;
      if (rivals.some((rival) => rival < name)) return false;
      await new Promise((resolve) => setTimeout(resolve, PAUSE));
    }
    return false;
  }

  /** The claims of others on this run who live. What the dead have left is removed. */
  async #rivals(run: string, own: string): Promise<string[]> {
    const rivals: string[] = [];
    for (const { name, owner } of (await this.#looks.get()).get(run) ?? []) {
      if (name === own) continue;
      const lives = owner === this.#owner || (isLiving(owner) ?? (await this.#beats(owner)));
      if (lives) rivals.push(name);
      // If it can't be removed, it does not count all the same.
      else await this.#unlink(name).catch(() => {});
    }
    return rivals;
  }

  /** The claims that are there, by the beginning of their names. What the dead have left is removed. */
  async #look(): Promise<ReadonlyMap<string, readonly Found[]>> {
    const names = (await namesIn(this.#fs, this.#folder)) ?? [];
    const found = new Map<string, Found[]>();
    const known = new Map<string, boolean | undefined>([[this.#owner, true]]);
    for (const name of names) {
      const [, run = "", owner] = OWNER.exec(name) ?? [];
      if (owner === undefined) continue;
      const lives = known.has(owner) ? known.get(owner) : isLiving(owner);
      known.set(owner, lives);
      if (lives === false) await this.#unlink(name).catch(() => {});
      else found.set(run, [...(found.get(run) ?? []), { name, owner }]);
    }
    return found;
  }

  /** Whether one on another machine, or in another container, shows that it lives. */
  #beats(owner: string): Promise<boolean> {
    const watched = this.#watched.get(owner) ?? this.#watch(owner);
    this.#watched.set(owner, watched);
    return watched;
  }

  async #watch(owner: string): Promise<boolean> {
    const path = join(this.#folder, owner + ALIVE);
    const size = async (): Promise<number> =>
      (await unless(["ENOENT"], this.#fs.lstat(path), undefined))?.size ?? 0;
    const before = await size();
    await new Promise((resolve) => setTimeout(resolve, WATCH));
    const lives = (await size()) > before;
    // The dead stay dead.
    if (lives) setTimeout(() => this.#watched.delete(owner), BELIEVED).unref();
    else await this.#unlink(owner + ALIVE).catch(() => {});
    return lives;
  }

  async #release(name: string): Promise<void> {
    const isLast = --this.#held === 0;
    const heart = this.#heart;
    if (isLast) this.#heart = undefined;
    await this.#unlink(name);
    if (!isLast) return;
    await heart?.stop();
    await unless(["ENOENT", "ENOTEMPTY", "EEXIST"], this.#fs.rmdir(this.#folder), undefined);
  }

  /** A new file. The last one to leave may take the folder away at any time. */
  async #create(name: string): Promise<number> {
    for (let tries = 1; ; tries++) {
      try {
        return await this.#fs.create(join(this.#folder, name));
      } catch (error) {
        if (codeOf(error) !== "ENOENT" || tries === LOOKS) throw error;
      }
      await makeFolder(this.#fs, this.#folder, false);
    }
  }

  async #unlink(name: string): Promise<void> {
    await unless(["ENOENT"], this.#fs.unlink(join(this.#folder, name)), undefined);
  }
}
