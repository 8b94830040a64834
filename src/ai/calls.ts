import type { NodeContext } from "../graph/node.js";
import type { UsageCall } from "../state/ledger/usage.js";
import { copyOf } from "./copy.js";
import type { Digest } from "./digest.js";

/** What is needed of a node's context: that of a node, of an item of `parallel`, or of a step of `chain`. */
export type CallContext = Pick<
  NodeContext,
  "node" | "step" | "signal" | "recall" | "remember" | "pause" | "ledger" | "emit"
>;

/** A call that was made, as a checkpoint holds it. */
interface CallRecord {
  /** How many calls were recorded before it. */
  readonly number: number;
  /** The hash of its input. */
  readonly hash: string;
  /** How many calls with the same input came before it. */
  readonly nth: number;
  /** How many model calls began before it; `-1` for a tool call. */
  readonly position: number;
  /** What it gave. */
  readonly value: unknown;
}

/** One call: answered by the checkpoint, or to be made and kept. */
export interface Call {
  /** What it gave before, as a copy; `undefined` if it is to be made. */
  readonly recorded: { readonly value: unknown } | undefined;
  /** Saves what it gave and counts what it used. */
  keep(value: unknown, usage?: UsageCall): Promise<void>;
  /** It gave nothing: the next call with the same input takes its place. */
  release(): void;
}

/** What the positions of model calls are counted under. */
const MODEL = "model";

const known = new WeakMap<CallContext, Calls>();

/** The calls of one attempt of a node, in the order in which they begin. */
export class Calls {
  readonly context: CallContext;
  /** Those that were recorded, by the key they have. */
  readonly #records = new Map<string, CallRecord>();
  /** The keys, oldest record first. */
  readonly #keys: string[];
  readonly #byInput = new Map<string, CallRecord>();
  /** The model calls that an earlier attempt or process made, by position. */
  readonly #before = new Map<number, CallRecord>();
  readonly #slots = new Map<string, Slots>();
  /** The hashes of calls that replaced a recorded one, and of those that continue them. */
  readonly #changed = new Set<string>();
  #number = 0;
  #stop: { readonly error: unknown } | undefined;

  private constructor(context: CallContext) {
    this.context = context;
    for (let slot = 0; ; slot++) {
      const key = keyOf(slot);
      const record = context.recall(key) as CallRecord | undefined;
      if (record === undefined) break;
      this.#records.set(key, record);
    }
    const found = [...this.#records].sort(([, a], [, b]) => a.number - b.number);
    this.#keys = found.map(([key]) => key);
    for (const [, record] of found) {
      this.#number = record.number + 1;
      this.#byInput.set(inputOf(record), record);
      if (record.position >= 0) this.#before.set(record.position, record);
    }
  }

  /** The calls of a context: all that are made durable in one attempt share one record. */
  static of(context: CallContext): Calls {
    let calls = known.get(context);
    if (calls === undefined) {
      calls = new Calls(context);
      known.set(context, calls);
    }
    return calls;
  }

  /** Begins a call of a model. After a pause none begins: the SDK took the pause for an error of the tool. */
  model(digest: Digest, keepCalls: number): Call {
    if (this.#stop !== undefined) throw this.#stop.error;
    const position = this.slotsOf(MODEL).take();
    return this.#begin(digest, position, keepCalls);
  }

  /** Begins a call of a tool. */
  tool(digest: Digest, keepCalls: number): Call {
    return this.#begin(digest, -1, keepCalls);
  }

  /** Begins no further model call: what an SDK makes of this error must not reach the model. */
  stop(error: unknown): void {
    this.#stop ??= { error };
  }

  /** Counts those that are otherwise the same. */
  slotsOf(name: string): Slots {
    const slots = this.#slots.get(name) ?? new Slots();
    this.#slots.set(name, slots);
    return slots;
  }

  #begin(digest: Digest, position: number, keepCalls: number): Call {
    const { hash } = digest;
    const same = this.slotsOf(hash);
    const nth = same.take();
    const release = (): void => {
      same.release(nth);
      if (position >= 0) this.slotsOf(MODEL).release(position);
    };
    const found = this.#byInput.get(inputOf({ hash, nth }));
    if (found !== undefined && this.#before.get(found.position) === found) {
      this.#before.delete(found.position);
    }
    return {
      recorded: found === undefined ? undefined : { value: copyOf(found.value) },
      keep: (value, usage) => this.#keep({ hash, nth, position, value }, digest, keepCalls, usage),
      release,
    };
  }

  async #keep(
    call: Omit<CallRecord, "number">,
    digest: Digest,
    keepCalls: number,
    usage: UsageCall | undefined,
  ): Promise<void> {
    const key = this.#replaced(call, digest) ?? this.#keyToReuse(keepCalls) ?? this.#freeKey();
    const record: CallRecord = { number: this.#number++, ...call };
    this.#keys.push(key);
    this.#records.set(key, record);
    this.#byInput.set(inputOf(record), record);
    try {
      // Both in this turn, so that one save has them: what was recorded is counted, and only once.
      await Promise.all([this.context.remember(key, record), this.#count(usage)]);
    } catch (error) {
      this.stop(error);
      throw error;
    }
  }

  async #count(usage: UsageCall | undefined): Promise<void> {
    if (usage !== undefined) this.context.ledger.usage(usage);
  }

  /** The key of the call that an earlier attempt made in this one's place, with another input. */
  #replaced({ hash, position }: Omit<CallRecord, "number">, digest: Digest): string | undefined {
    const old = this.#before.get(position);
    // A node that resumes from a milestone is past that call.
    if (old === undefined || old.hash === hash || digest.prefixes.has(old.hash)) return undefined;
    this.#before.delete(position);
    // Once for each conversation: the calls that continue a changed one are changed too.
    if (![...digest.prefixes].some((prefix) => this.#changed.has(prefix))) {
      const { node, step } = this.context;
      const message = `model call ${position + 1} differs from the recorded one, so it was made again`;
      this.context.emit("ai.warning", { node, step, kind: "changed-call", message });
    }
    this.#changed.add(hash);
    return this.#drop(this.#keys.find((key) => this.#records.get(key) === old));
  }

  /** The key of the oldest record, where there are as many as there may be. */
  #keyToReuse(keepCalls: number): string | undefined {
    return this.#keys.length < keepCalls ? undefined : this.#drop(this.#keys[0]);
  }

  #drop(key: string | undefined): string | undefined {
    if (key === undefined) return undefined;
    const record = this.#records.get(key);
    if (record !== undefined) this.#byInput.delete(inputOf(record));
    this.#records.delete(key);
    this.#keys.splice(this.#keys.indexOf(key), 1);
    return key;
  }

  #freeKey(): string {
    let slot = this.#keys.length;
    while (this.context.recall(keyOf(slot)) !== undefined) slot++;
    return keyOf(slot);
  }
}

/** Numbers slots from 0; a released one is taken again first. */
class Slots {
  #next = 0;
  readonly #free: number[] = [];

  take(): number {
    return this.#free.pop() ?? this.#next++;
  }

  release(slot: number): void {
    this.#free.push(slot);
  }
}

function keyOf(slot: number): string {
  return `ai: ${slot}`;
}

function inputOf({ hash, nth }: Pick<CallRecord, "hash" | "nth">): string {
  return `${hash} ${nth}`;
}
