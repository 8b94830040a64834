import { type FileSystem, unless } from "../file/file-system.js";
import { type OpenFile, openFile } from "../file/open-file.js";
import { Turns } from "../file/turns.js";
import { Damages, damageOf } from "./damages.js";
import { judge } from "./judge.js";
import { type Damage, faultOf, type Line, runKey, scan, toBuffer } from "./line.js";
import { type LogFolder, newline } from "./log-folder.js";
import { RunView } from "./view.js";

/*
 * One log for all runs and all processes. A file of it is only ever appended to, with one call for
 * each batch of lines, and the system puts such calls one after the other: so there is one order, and
 * everybody who reads sees the same. There is no lock, so none can be left behind.
 *
 * A file ends by a line that seals it. What comes after the seal does not count; its writer sees the
 * seal, because the file is longer than it expected, and writes again into the next file. That is
 * created once the seal is there for good. Files go, once compacted, in the order of their numbers,
 * and never before the next is there. So when a file still has its name after the next one was opened,
 * that is the one that comes after it; and when it has lost its name, this process has missed
 * something and reads all anew. A stale process can create a file of an old number again, but never
 * writes to it, and whoever reads the log finds it empty.
 */

interface Active {
  readonly number: number;
  readonly reader: number;
  writer: number | undefined;
  /** How far its lines are known; how long it was then. */
  scanned: number;
  size: number;
  sealed: boolean;
}

/** How often to look again at files that come and go. */
const ATTEMPTS = 100;

/** The log, as this process knows it. */
export class Log {
  readonly views = new Map<string, RunView>();
  readonly damages = new Damages();
  readonly #folder: LogFolder;
  readonly #fs: FileSystem;
  readonly #flush: { readonly durable: boolean; readonly each: boolean };
  #files: number[] = [];
  #active: Active | undefined;
  #closings = 0;
  readonly #turns = new Turns();

  /** @param flush - whether its files outlive a power cut, and each append does when it resolves. */
  constructor(fs: FileSystem, folder: LogFolder, flush: { durable: boolean; each: boolean }) {
    this.#fs = fs;
    this.#folder = folder;
    this.#flush = flush;
  }

  /** The number of the file that is written to; 0 before the first. */
  get number(): number {
    return this.#active?.number ?? 0;
  }

  /** How often it was closed: what was found out before has to be found out again. */
  get closings(): number {
    return this.#closings;
  }

  /** How long that file is. */
  get size(): number {
    return this.#active?.size ?? 0;
  }

  /** The files that are sealed, oldest first. */
  get sealed(): readonly number[] {
    return this.#files.filter((number) => number < this.number);
  }

  /** The folder of the log. */
  get folder(): string {
    return this.#folder.path;
  }

  /** The path of a file of the log. */
  path(number: number): string {
    return this.#folder.file(number);
  }

  /** What is known of a run. */
  view(runId: string): RunView {
    return this.#view(runKey(runId));
  }

  #view(key: string): RunView {
    const view = this.views.get(key) ?? new RunView(key);
    this.views.set(key, view);
    return view;
  }

  /** Does one thing at a time with the log. */
  inTurn<T>(action: () => Promise<T>): Promise<T> {
    return this.#turns.take(action);
  }

  /** Takes in what others have written. Only in turn. */
  async follow(): Promise<void> {
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const active = this.#active;
      if (active === undefined) {
        if (!(await this.#open())) return;
        continue;
      }
      const { size, named } = await this.#fs.stat(active.reader);
      // One that has become shorter was cut by somebody else: what was known of it does not hold.
      if (!named || size < active.size) {
        await this.#close();
        continue;
      }
      if (size > active.size || active.scanned < active.size) await this.#scanTo(active, size);
      if (!active.sealed) return;
      await this.#advance(active);
    }
    throw new Error(`${this.folder} changed ${ATTEMPTS} times while it was read`);
  }

  /** Looks which files are still there, and forgets what was in the others. Only in turn. */
  async refresh(): Promise<void> {
    const numbers = await this.#folder.numbers();
    this.#forget(this.#files.filter((number) => !numbers.includes(number)));
    await this.follow();
  }

  /** Whether the file that is written to is open. */
  get isReady(): boolean {
    return this.#active?.writer !== undefined;
  }

  /** Makes ready to append: the file is there for good, and open. Only in turn. */
  async ready(): Promise<void> {
    const fs = this.#fs;
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      if (this.#active === undefined) {
        if ((await this.#folder.numbers()).length === 0) await this.#folder.create(1);
        await this.follow();
      }
      const active = this.#active;
      if (active === undefined) continue;
      if (active.writer !== undefined) return;
      const { durable, each } = this.#flush;
      if (durable) await this.#folder.settle();
      const opening = fs.openToAppend(this.path(active.number), each);
      const writer = await unless(["ENOENT"], opening, undefined);
      if (writer !== undefined) {
        const [here, there] = [await fs.stat(active.reader), await fs.stat(writer)];
        active.writer = writer;
        if (here.id === there.id) return;
      }
      await this.#close();
    }
    throw new Error(`${this.folder} changed ${ATTEMPTS} times while it was written to`);
  }

  /**
   * Appends a batch of lines and makes them durable. Only in turn, and after `ready`.
   *
   * @returns where each line is. When others wrote too, their lines and these were taken in: `mixed`; or
   *   these came after the file was sealed, or removed, and don't count: `late`.
   */
  async append(lines: readonly Buffer[]): Promise<number[] | "mixed" | "late"> {
    const active = this.#active;
    if (active?.writer === undefined) throw new Error("the log is not open");
    const { writer } = active;
    // A line that somebody left unfinished must not swallow the first of these.
    const bytes = Buffer.concat([newline, ...lines]);
    const expected = active.size + bytes.length;
    await this.#fs.append(writer, bytes);
    const info = await this.#fs.stat(writer);
    if (info.size < expected) {
      // Somebody else has cut it; whether these lines count is for what is left of it to say.
      await this.#close();
      await this.follow();
      return "mixed";
    }
    // Without a name nobody will ever find it: `follow` looks what has taken its place.
    if (!info.named || info.size !== expected || active.scanned !== active.size) {
      const isIn = await this.#scanTo(active, info.size, lines[0]);
      const counts = isIn && (info.named || active.sealed);
      await this.follow();
      return counts ? "mixed" : "late";
    }
    let at = active.size + newline.length;
    active.size = expected;
    active.scanned = expected;
    return lines.map(({ length }) => {
      at += length;
      return at - length;
    });
  }

  /** Takes in a line that this process has appended. */
  note(view: RunView, line: Line): void {
    view.lines.push(line);
    view.version++;
  }

  /** Flushes what was appended without. Only in turn. */
  async flush(): Promise<void> {
    if (this.#active?.writer !== undefined) await this.#fs.syncData(this.#active.writer);
  }

  /** Ends the file that is written to and goes on with the next. Only in turn. */
  async seal(): Promise<void> {
    await this.ready();
    const active = this.#active;
    if (active?.writer === undefined) return;
    await this.#folder.seal(active.number, active.writer);
    await this.follow();
  }

  /** Notes that a line is not what was written. What was known of other runs has to be looked at again. */
  spoil(line: Line): void {
    if (!this.damages.add(damageOf(line))) return;
    for (const view of this.views.values()) if (view.key !== line.run) view.known = undefined;
  }

  /** Verifies every line; `true` when there are some that are not what was written, and it was not known. Only in turn. */
  async verify(): Promise<boolean> {
    let isNew = false;
    for (const number of this.#files) {
      isNew = (await this.damages.verify(this.#fs, this.path(number), number)) || isNew;
    }
    if (isNew) for (const view of this.views.values()) view.known = undefined;
    return isNew;
  }

  /** Forgets files that were compacted. Only in turn. */
  forget(numbers: readonly number[]): void {
    this.#forget(numbers);
  }

  /** Closes the files; all is read again when it is used again. Only in turn. */
  async close(): Promise<void> {
    await this.#close();
  }

  #forget(numbers: readonly number[]): void {
    if (numbers.length === 0) return;
    const gone = new Set(numbers);
    this.#files = this.#files.filter((number) => !gone.has(number));
    this.damages.forget(gone);
    for (const [key, view] of this.views) {
      const lines = view.lines.filter(({ log }) => !gone.has(log));
      if (lines.length < view.lines.length) {
        view.lines = lines;
        view.known = undefined;
        view.version++;
      }
      if (lines.length === 0 && view.pins === 0 && view.unsure.size === 0) this.views.delete(key);
    }
  }

  async #close(): Promise<void> {
    const active = this.#active;
    this.#active = undefined;
    this.#closings++;
    this.#forget(this.#files);
    this.#files = [];
    for (const view of this.views.values()) view.known = undefined;
    for (const file of [active?.reader, active?.writer]) {
      if (file !== undefined) await this.#fs.close(file).catch(() => {});
    }
  }

  /** Reads the whole log; `false` when there is none. */
  async #open(): Promise<boolean> {
    const numbers = await this.#folder.numbers();
    if (numbers.length === 0) return false;
    // What was known may be from before files that have come and gone.
    for (const view of this.views.values()) {
      view.known = undefined;
      view.version++;
    }
    try {
      await this.#take(numbers);
    } catch (error) {
      // Half of it is not to be taken for all of it.
      await this.#close();
      throw error;
    }
    return true;
  }

  /** Goes on with the file that comes after one that is sealed; if that can't be told, all is read anew. */
  async #advance(active: Active): Promise<void> {
    const fs = this.#fs;
    const number = active.number + 1;
    if (!(await this.#folder.hasName(active.number, active.reader))) return this.#close();
    await this.#folder.create(number);
    const next = await openFile(fs, this.path(number));
    if (next === undefined) return this.#close();
    if (!(await this.#folder.hasName(active.number, active.reader))) {
      await fs.close(next.file).catch(() => {});
      return this.#close();
    }
    this.#active = await this.#read(number, next);
    for (const file of [active.reader, active.writer]) {
      if (file !== undefined) await fs.close(file).catch(() => {});
    }
  }

  /** Takes in what is in a file; closes it if that fails. */
  async #read(number: number, { file: reader, info }: OpenFile): Promise<Active> {
    const rest = { writer: undefined, scanned: 0, size: 0, sealed: false };
    const active: Active = { number, reader, ...rest };
    try {
      await this.#scanTo(active, info.size);
    } catch (error) {
      await this.#fs.close(reader).catch(() => {});
      throw error;
    }
    if (!this.#files.includes(number)) this.#files.push(number);
    return active;
  }

  /** Reads files one after the other. All but the last must be sealed; the last is the one to write to. */
  async #take(numbers: readonly number[]): Promise<void> {
    const fs = this.#fs;
    for (const number of numbers) {
      const opened = await openFile(fs, this.path(number));
      if (opened === undefined) return this.#close();
      const active = await this.#read(number, opened);
      if (number === numbers.at(-1)) {
        this.#active = active;
        return;
      }
      try {
        if (active.sealed) continue;
        await this.#folder.seal(number);
        await this.#scanTo(active, (await fs.stat(active.reader)).size);
        if (!active.sealed) throw new Error(`${this.path(number)} could not be sealed`);
      } finally {
        await fs.close(active.reader).catch(() => {});
      }
    }
  }

  /** Reads on; says whether this line is among those that count. */
  async #scanTo(active: Active, size: number, sought?: Buffer): Promise<boolean> {
    const from = active.scanned;
    const bytes = toBuffer(await this.#fs.read(active.reader, size - from, from));
    let isFound = false;
    const done = scan(bytes, active.number, from, (line) => {
      if (active.sealed) return;
      const start = line.offset - from;
      const text = bytes.subarray(start, start + line.length);
      isFound ||= sought?.equals(text) === true;
      this.#visit(line, active, text);
    });
    active.scanned = from + done;
    active.size = from + bytes.length;
    return isFound;
  }

  #visit(line: Line | Damage, active: Active, text: Buffer): void {
    if (line.kind === "damage") {
      this.#damaged(line);
      return;
    }
    if (line.kind === "seal") {
      if (faultOf(text) === undefined) active.sealed = true;
      return;
    }
    // A name that was not seen before may be another one that is broken.
    const isNew = (this.views.get(line.run)?.lines.length ?? 0) === 0;
    if (isNew && faultOf(text) !== undefined) {
      const damage = damageOf(line);
      this.#damaged(damage);
      if (damage.run === undefined) return;
    }
    const view = this.#view(line.run);
    this.note(view, line);
    // What was moved out of the log has taken in all that was in it up to there.
    if (view.known === undefined || active.number <= view.known.movedUpTo) return;
    try {
      const problem = judge(view.known, view.runId, line, text);
      if (problem === "corrupt") this.#damaged(damageOf(line));
      // Whoever asks for this run looks what is missing.
      if (problem === "gap") view.known = undefined;
    } catch {
      // Whoever asks for this run will be told; others need not care.
      view.known = undefined;
    }
  }

  /** Notes damage at the end of what was read. */
  #damaged(damage: Damage): void {
    this.damages.add(damage);
    for (const { known } of this.views.values()) if (known !== undefined) known.damaged = true;
  }
}
