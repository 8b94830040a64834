import { SerializationError } from "../errors.js";
import { check, text } from "../options.js";
import {
  blank,
  bounded,
  type Contents,
  changed,
  checkLedgerLimits,
  fullLimits,
  type LedgerDropped,
  type LedgerLimits,
  objectOf,
  ownOf,
  put,
  sameLimits,
  sizeOf,
  sumOf,
} from "./ledger/contents.js";
import {
  type Agent,
  type Decision,
  mergedAgent,
  type Output,
  toAgent,
  toDecision,
  toOutput,
  updatedAgent,
} from "./ledger/entries.js";
import { decodeLedger, encodeLedger, type LedgerJSON } from "./ledger/json.js";
import {
  minus,
  plus,
  type Tally,
  tallyOf,
  totalsOf,
  type Usage,
  type UsageCall,
  type UsageTotals,
  usageOf,
} from "./ledger/usage.js";

export {
  type Agent,
  checkLedgerLimits,
  type Decision,
  type LedgerDropped,
  type LedgerJSON,
  type LedgerLimits,
  type Output,
  type Usage,
  type UsageCall,
  type UsageTotals,
};

// Not a static field: the compiler writes `new _a()` for it, before `_a` is the class.
let shared: Ledger | undefined;

/**
 * What a run used, decided and made. It never changes: each method returns a new one that shares
 * what stayed the same. Sums are exact to 12 decimal places, whatever the order they are made in.
 *
 * @example
 * ```ts
 * import { Ledger } from "waymark";
 *
 * const ledger = Ledger.empty
 *   .addUsage("draft", { inputTokens: 900, costUsd: 0.1 })
 *   .addUsage("review", { inputTokens: 100, costUsd: 0.2 });
 * console.log(ledger.usage.inputTokens, ledger.usage.costUsd); // 1000 0.3
 * console.log(ledger.nodes.draft?.costUsd); // 0.1
 * ```
 */
export class Ledger {
  /** The ledger of a run that has written nothing. */
  static get empty(): Ledger {
    shared ??= new Ledger(blank);
    return shared;
  }

  readonly #contents: Contents;
  #usage: UsageTotals | undefined;
  #nodes: Readonly<Record<string, UsageTotals>> | undefined;

  private constructor(contents: Contents) {
    this.#contents = contents;
    Object.freeze(this);
  }

  /** What the whole run used. */
  get usage(): UsageTotals {
    this.#usage ??= totalsOf(sumOf(this.#contents.tallies));
    return this.#usage;
  }

  /** What each node used. */
  get nodes(): Readonly<Record<string, UsageTotals>> {
    this.#nodes ??= objectOf(this.#contents.tallies, totalsOf);
    return this.#nodes;
  }

  /** What was decided, newest last. */
  get decisions(): readonly Decision[] {
    return this.#contents.decisions;
  }

  /** The agents of the run, by id. */
  get agents(): Readonly<Record<string, Agent>> {
    return this.#contents.agents;
  }

  /** What the run made, by name. */
  get outputs(): Readonly<Record<string, Output>> {
    return this.#contents.outputs;
  }

  /** How many entries the limits have cost. */
  get dropped(): LedgerDropped {
    return this.#contents.dropped;
  }

  /**
   * How sure the run is: the lowest confidence of its agents and of the newest decision that has one;
   * `undefined` when nobody said.
   */
  get confidence(): number | undefined {
    const newest = this.decisions.findLast((decision) => decision.confidence !== undefined);
    const said = [...Object.values(this.agents), newest].flatMap((one) => one?.confidence ?? []);
    return said.length === 0 ? undefined : said.reduce((a, b) => Math.min(a, b));
  }

  /** Whether nothing was written into it. */
  get isEmpty(): boolean {
    const { tallies, decisions, agents, outputs, dropped } = this.#contents;
    const kept = tallies.size + decisions.length + sizeOf(agents) + sizeOf(outputs);
    return kept + dropped.decisions + dropped.agents + dropped.outputs === 0;
  }

  /**
   * Adds what a node used.
   *
   * @throws ConfigError that names the counter that is unknown, negative, not finite or no number.
   */
  addUsage(node: string, usage: UsageCall): Ledger {
    text("node", node);
    return this.#plus(node, tallyOf("usage", usage));
  }

  /**
   * Adds a decision. The oldest goes when there are too many. An agent that is known has it as its last.
   *
   * @throws ConfigError that names the field.
   */
  addDecision(decision: Decision): Ledger {
    const made = toDecision("decision", decision);
    const decisions = [...this.decisions, made];
    const { agent: id = "", description: lastDecision } = made;
    const agent = ownOf(this.agents, id);
    if (agent === undefined) return this.#with({ decisions });
    const next = toAgent("agent", { ...agent, lastDecision });
    return this.#with({ decisions, agents: put(this.agents, id, next) });
  }

  /**
   * Says what is known of an agent. Omitted fields keep their value; a confidence is added to its history.
   *
   * @throws ConfigError that names the field.
   * @throws SerializationError when its `state` can't be saved.
   */
  setAgent(id: string, agent: Agent): Ledger {
    text("id", id);
    const next = updatedAgent(ownOf(this.agents, id), toAgent("agent", agent));
    return this.#with({ agents: put(this.agents, id, next) });
  }

  /**
   * Says where something is that the run made. One of the same name is replaced.
   *
   * @throws ConfigError that names the field.
   * @throws SerializationError when its `ref` can't be saved.
   */
  setOutput(name: string, output: Output): Ledger {
    text("name", name);
    return this.#with({ outputs: put(this.outputs, name, toOutput("output", output)) });
  }

  /**
   * Adds to this ledger what `other` got since it was `base`: how the branches of a parallel node
   * come together. Usage is the same in whatever order they do. Decisions follow in the order of the
   * merges; of an agent or an output that two branches set, the one merged last stays, and an agent keeps the
   * confidences of both.
   *
   * @throws ConfigError if it is not given ledgers.
   */
  merge(base: Ledger, other: Ledger): Ledger {
    isLedger("base", base);
    isLedger("other", other);
    if (other === base) return this;
    if (this === base) return other;
    let merged: Ledger = this;
    for (const [node, tally] of other.#contents.tallies) {
      const before = base.#contents.tallies.get(node);
      merged = merged.#plus(node, before === undefined ? tally : minus(tally, before));
    }
    const count = ({ decisions, dropped }: Ledger): number => decisions.length + dropped.decisions;
    const added = Math.max(0, count(other) - count(base));
    const decisions = other.decisions.slice(Math.max(0, other.decisions.length - added));
    const { dropped } = merged;
    return merged.#with({
      decisions: [...merged.decisions, ...decisions],
      agents: changed(merged.agents, base.agents, other.agents, mergedAgent),
      outputs: changed(merged.outputs, base.outputs, other.outputs),
      dropped: {
        decisions: dropped.decisions + added - decisions.length,
        agents: dropped.agents + Math.max(0, other.dropped.agents - base.dropped.agents),
        outputs: dropped.outputs + Math.max(0, other.dropped.outputs - base.dropped.outputs),
      },
    });
  }

  /**
   * What was used since this ledger was `base`, without counters that are 0; `undefined` when nothing was. A
   * peak is in it if a node has gone higher than before.
   */
  usageSince(base: Ledger): Usage | undefined {
    if (this.#contents.tallies === base.#contents.tallies) return undefined;
    let rest: Tally = new Map();
    for (const [node, tally] of this.#contents.tallies) {
      const before = base.#contents.tallies.get(node);
      if (tally !== before) rest = plus(rest, before === undefined ? tally : minus(tally, before));
    }
    return rest.size === 0 ? undefined : usageOf(rest);
  }

  /**
   * The same ledger with these limits; what it has too much of goes at once.
   *
   * @throws ConfigError that names the limit.
   */
  withLimits(limits: LedgerLimits): Ledger {
    checkLedgerLimits("limits", limits);
    const next = fullLimits(limits);
    return sameLimits(next, this.#contents.limits) ? this : this.#with({ limits: next });
  }

  /**
   * All of it as plain JSON; {@link Ledger.fromJSON} is the way back.
   *
   * @throws SerializationError that names the path of what can't be saved.
   */
  toJSON(): LedgerJSON {
    return encodeLedger(this.#contents);
  }

  /**
   * A ledger out of what {@link Ledger.toJSON} gave; exactly the same one.
   *
   * @throws SerializationError that names the path of what is wrong.
   */
  static fromJSON(json: unknown): Ledger {
    let tree: unknown;
    try {
      tree = JSON.parse(JSON.stringify(json));
    } catch (cause) {
      throw new SerializationError("ledger", `is not JSON: ${String(cause)}`, { cause });
    }
    return Ledger.fromTree(tree);
  }

  /** @internal The same; takes over a tree that nobody else holds. */
  static fromTree(tree: unknown): Ledger {
    const ledger = new Ledger(bounded(decodeLedger(tree)));
    return ledger.isEmpty && sameLimits(ledger.#contents.limits, blank.limits)
      ? Ledger.empty
      : ledger;
  }

  /** What `console.log` shows. */
  [Symbol.for("nodejs.util.inspect.custom")](): object {
    const { usage, nodes, decisions, agents, outputs, dropped } = this;
    return { usage, nodes, decisions, agents, outputs, dropped };
  }

  #plus(node: string, tally: Tally): Ledger {
    if (tally.size === 0) return this;
    const before = this.#contents.tallies.get(node);
    const tallies = new Map(this.#contents.tallies);
    tallies.set(node, before === undefined ? tally : plus(before, tally));
    return new Ledger({ ...this.#contents, tallies });
  }

  #with(changes: Partial<Contents>): Ledger {
    return new Ledger(bounded({ ...this.#contents, ...changes }));
  }
}

const isLedger = check("a Ledger", (value) => value instanceof Ledger);
