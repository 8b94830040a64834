import type { NodeContext } from "../graph/node.js";
import type { UsageCall } from "../state/ledger.js";
import { copyOf } from "./copy.js";
import type { Digest } from "./digest.js";

/** The context members that durable calls use. Every node, `parallel` item and `chain` step has them. */
export type CallContext = Pick<
  NodeContext,
  "node" | "step" | "signal" | "recall" | "remember" | "pause" | "ledger" | "emit"
>;

/** A completed call, as a checkpoint stores it. */
interface CallRecord {
  /** How many calls were recorded before it. */
  readonly number: number;
  /** The hash of its input. */
  readonly hash: string;
  /** How many calls with the same input came before it. */
  readonly nth: number;
  /** How many model calls began before it; `-1` for a tool call. */
  readonly position: number;
  /** What it returned. */
  readonly value: unknown;
}

/** One call: either answered from the checkpoint, or to be made and recorded. */
export interface Call {
  /** A copy of the recorded result; `undefined` if the call has to be made. */
  readonly recorded: { readonly value: unknown } | undefined;
  /** Saves the result and adds its usage to the ledger. */
  keep(value: unknown, usage?: UsageCall): Promise<void>;
  /** The call had no result: the next one with the same input takes its slot. */
  release(): void;
}

/** The name of the slots that number the model calls. */
const MODEL = "model";

const known = new WeakMap<CallContext, Calls>();

/** The calls of one attempt of a node, in the order in which they begin. */
export class Calls {
  readonly context: CallContext;
  /** The recorded calls, by key. */
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

  /** The calls of a context: everything that is made durable in one attempt shares them. */
  static of(context: CallContext): Calls {
    let calls = known.get(context);
    if (calls === undefined) {
      calls = new Calls(context);
      known.set(context, calls);
    }
    return calls;
  }

  /**
   * Begins a model call. After a pause it throws: the SDK treats the pause as a tool error and asks the model again.
   */
  model(digest: Digest, keepCalls: number): Call {
    if (this.#stop !== undefined) throw this.#stop.error;
    const position = this.slotsOf(MODEL).take();
    return this.#begin(digest, position, keepCalls);
  }

  /** Begins a tool call. */
  tool(digest: Digest, keepCalls: number): Call {
    return this.#begin(digest, -1, keepCalls);
  }

  /** Makes every later model call throw: what an SDK makes of this error must not reach the model. */
  stop(error: unknown): void {
    this.#stop ??= { error };
  }

  /** The slots under a name; they number calls that are otherwise the same. */
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
      // Both synchronously, so that one save has both: a recorded call is counted exactly once.
      await Promise.all([this.context.remember(key, record), this.#count(usage)]);
    } catch (error) {
      this.stop(error);
      throw error;
    }
  }

  async #count(usage: UsageCall | undefined): Promise<void> {
    if (usage !== undefined) this.context.ledger.usage(usage);
  }

  /** The key of the call that an earlier attempt made at this position with a different input. */
  #replaced({ hash, position }: Omit<CallRecord, "number">, digest: Digest): string | undefined {
    const old = this.#before.get(position);
    // A node that resumes from a milestone is past that call.
    if (old === undefined || old.hash === hash || digest.prefixes.has(old.hash)) return undefined;
    this.#before.delete(position);
    // Once per conversation: the calls that continue a changed one have changed too.
    if (![...digest.prefixes].some((prefix) => this.#changed.has(prefix))) {
      const { node, step } = this.context;
      const message = `model call ${position + 1} differs from the recorded one, so it was made again`;
      this.context.emit("ai.warning", { node, step, kind: "changed-call", message });
    }
    this.#changed.add(hash);
    return this.#drop(this.#keys.find((key) => this.#records.get(key) === old));
  }

  /** The key of the oldest record, if the limit is reached. */
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

/** Numbers slots from 0; a released one is reused first. */
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
