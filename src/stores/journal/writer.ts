import { v7 } from "uuid";
import { CheckpointConflictError, CheckpointCorruptionError } from "../../errors.js";
import type { Saved } from "../../state/record.js";
import { State } from "../../state/state.js";
import type { Committer } from "./committer.js";
import type { Compactor } from "./compactor.js";
import { deletionLine } from "./deletion.js";
import type { LineFiles } from "./line-files.js";
import type { Log } from "./log.js";
import type { JournalReader } from "./reader.js";
import type { Base, Place, RecordCodec } from "./record.js";
import type { Resolver } from "./resolver.js";
import type { Known, RunView } from "./view.js";

/** How often to try again when a run turned out to be elsewhere and yet where it is thought to be. */
const ATTEMPTS = 20;

/** What a writer needs of its store. */
export interface WriterSettings {
  readonly log: Log;
  readonly codec: RecordCodec;
  readonly files: LineFiles;
  readonly resolver: Resolver;
  readonly committer: Committer;
  readonly compactor: Compactor;
  readonly reader: JournalReader;
  /** Refuses a record that is too large. */
  readonly checkSize: (state: State<object>, bytes: number) => void;
}

/** Where a State comes from. */
interface Origin {
  /** The newest record of its run when it was saved or loaded. */
  readonly head: string;
  /** What was written of it; unknown of one that was loaded. */
  readonly base: Base | undefined;
}

/** Writes the records of runs. */
export class JournalWriter {
  readonly #settings: WriterSettings;
  /** What is known of a State that was saved or loaded, for as long as somebody builds on it. */
  readonly #origins = new WeakMap<Saved, Origin>();
  /** Makes the ids of this store's checkpoints different from any other's. */
  #id: string | undefined;
  #saves = 0;

  constructor(settings: WriterSettings) {
    this.#settings = settings;
  }

  /** Remembers which record was the newest of its run when a State was loaded. */
  loaded<D extends object>(state: State<D>, head: string): void {
    this.#origins.set(State.recordOf(state), { head, base: undefined });
  }

  /**
   * Saves a State as the next of its run.
   *
   * @throws CheckpointConflictError when the run is not where the State thinks.
   */
  save<D extends object>(state: State<D>, keep: number): Promise<State<D>> {
    return this.#settings.resolver.with(state.runId, (view) =>
      view.inTurn(async () => {
        const { log } = this.#settings;
        if (log.number === 0) await log.inTurn(() => log.follow());
        const record = State.recordOf(state);
        for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
          const known = this.#isAt(view, record) ? view.known : await this.#where(view, record);
          const place = {
            checkpointId: this.#newId(),
            sequence: known.sequence + 1,
            previous: known.head?.id ?? "",
            parentId: state.checkpointId,
            keep,
          };
          const saved = await this.#append(view, state, place);
          if (saved !== undefined) return saved;
        }
        throw this.#restless();
      }),
    );
  }

  /**
   * Writes a State as the record that it carries, after the one that was restored before it.
   *
   * @param after - that one; `undefined` for the first, whose run must not be there yet.
   * @throws CheckpointConflictError when the run is there, or has changed since that.
   */
  restore<D extends object>(
    state: State<D>,
    parentId: string,
    after: Saved | undefined,
  ): Promise<State<D>> {
    return this.#settings.resolver.with(state.runId, (view) =>
      view.inTurn(async () => {
        const { log, resolver } = this.#settings;
        const { checkpointId, sequence } = state;
        const keep = Number.POSITIVE_INFINITY;
        for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
          await log.inTurn(() => log.follow());
          const known = await resolver.known(view);
          const previous = known.head?.id ?? "";
          // What is there already is another run, or somebody has gone on with what was restored.
          if (previous !== (after?.checkpointId ?? "") || known.sequence >= sequence) {
            throw new CheckpointConflictError(view.runId, after?.sequence ?? 0, known.sequence);
          }
          const place = { checkpointId, sequence, previous, parentId, keep };
          const saved = await this.#append(view, state, place, after);
          if (saved !== undefined) return saved;
        }
        throw this.#restless();
      }),
    );
  }

  /** Ends a run; only if `head` is still its newest record, where that is given. Says whether it has ended. */
  async delete(runId: string, head?: string): Promise<boolean> {
    const { log, files, resolver, committer, compactor } = this.#settings;
    await log.inTurn(() => log.follow());
    return resolver.with(runId, (view) =>
      view.inTurn(async () => {
        for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
          const known = await resolver.known(view);
          if (known.isEmpty) {
            // What was moved out of the log before the run's end; the rest goes with the log.
            const end = view.lines.findLast(({ kind }) => kind === "delete")?.log ?? 0;
            await compactor.remove(files.folder(runId), end - 1);
            return true;
          }
          if (head !== undefined && known.head?.id !== head) return false;
          const line = deletionLine(runId, known.sequence, head);
          await committer.append(view, { kind: "delete", line, place: undefined, builtOn: 0 });
        }
        throw this.#restless();
      }),
    );
  }

  /** Appends a State to its run; `undefined` when the run is not any more where it was thought to be. */
  async #append<D extends object>(
    view: RunView,
    state: State<D>,
    place: Place,
    after = State.recordOf(state),
  ): Promise<State<D> | undefined> {
    const { codec, committer, resolver, checkSize } = this.#settings;
    const encoding = codec.encode(state, place, this.#origins.get(after)?.base);
    const { kind, line, base } = encoding instanceof Promise ? await encoding : encoding;
    const bytes = line.length;
    checkSize(state as unknown as State<object>, bytes);
    const builtOn = state.sequence;
    const appending = committer.append(view, { kind, line, place, builtOn });
    // While that is under way.
    const { checkpointId, sequence } = place;
    const saved: Saved = { checkpointId, sequence, bytes };
    this.#origins.set(saved, { head: checkpointId, base });
    const result = state.savedAs(saved);
    const outcome = await appending;
    if (outcome === "stale") return undefined;
    if (outcome === "lost") {
      const known = await resolver.known(view);
      throw new CheckpointConflictError(view.runId, builtOn, known.sequence);
    }
    view.unsure.clear();
    return result;
  }

  #newId(): string {
    this.#id ??= v7();
    return `${this.#id}.${++this.#saves}`;
  }

  /** Whether a run is known to be where a State thinks. */
  #isAt(view: RunView, record: Saved): view is RunView & { known: Known } {
    const { known, unsure } = view;
    if (known === undefined) return false;
    const newest = known.head?.id ?? "";
    // Where the newest record is known that it was built on, a run that was deleted and has come to
    // the same sequence again is seen to be another.
    const head = this.#origins.get(record)?.head ?? newest;
    const same = known.sequence === record.sequence && newest === head;
    return same || unsure.get(newest) === record.sequence;
  }

  /** What is known of a run, once all was read; it must be where a State thinks. */
  async #where(view: RunView, record: Saved): Promise<Known> {
    const { log, resolver } = this.#settings;
    await resolver.known(view);
    if (this.#isAt(view, record)) return view.known;
    await log.inTurn(() => log.follow());
    const known = await resolver.known(view);
    if (this.#isAt(view, record)) return view.known;
    if (record.sequence === 0 && (await this.#isLost(view))) return resolver.known(view);
    throw new CheckpointConflictError(view.runId, record.sequence, known.sequence);
  }

  /** Whether a run has records and nothing can be made of them, so that it may start afresh. */
  async #isLost(view: RunView): Promise<boolean> {
    try {
      await this.#settings.reader.load(view, {}, undefined);
    } catch (error) {
      return error instanceof CheckpointCorruptionError;
    }
    return false;
  }

  #restless(): Error {
    const { folder } = this.#settings.log;
    return new Error(`${folder} changed ${ATTEMPTS} times while it was written to`);
  }
}
