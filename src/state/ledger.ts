import { type Check, check, checkOptions, text } from "../options.js";
import { freezeCopy } from "./freeze-copy.js";
import { jsonOf, treeOf } from "./kinds.js";
import {
  blank,
  bounded,
  type Contents,
  changed,
  contents,
  type LedgerDropped,
  type LedgerJSON,
  type LedgerLimits,
  limitChecks,
  put,
  sizeOf,
} from "./ledger/contents.js";
import {
  type Agent,
  agentKind,
  type Decision,
  decisionKind,
  mergedAgent,
  type Output,
  outputKind,
  updatedAgent,
} from "./ledger/entries.js";
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
import { defined, mapped, ownOf, sameFields } from "./shape.js";

export type * from "./ledger/entries.js";
export type * from "./ledger/usage.js";
export { tally, usageOf } from "./ledger/usage.js";
export { contents, type LedgerDropped, type LedgerJSON, type LedgerLimits };

// Not a static field: the compiler would emit `new _a()` before `_a` is assigned.
let shared: Ledger | undefined;

/**
 * What a run used, decided and produced. It is immutable: each method returns a new one that shares whatever
 * did not change. Sums are exact to 12 decimal places, in any order.
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
    this.#usage ??= totalsOf(Object.values(this.#contents.usage).reduce(plus, new Map()));
    return this.#usage;
  }

  /** What each node used. */
  get nodes(): Readonly<Record<string, UsageTotals>> {
    this.#nodes ??= mapped(this.#contents.usage, totalsOf);
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

  /** The outputs of the run, by name. */
  get outputs(): Readonly<Record<string, Output>> {
    return this.#contents.outputs;
  }

  /** How many entries were dropped because of the limits. */
  get dropped(): LedgerDropped {
    return this.#contents.dropped;
  }

  /**
   * The run's confidence: the lowest of its agents' and of the newest decision that has one; `undefined` if
   * there is none.
   */
  get confidence(): number | undefined {
    const newest = this.decisions.findLast((decision) => decision.confidence !== undefined);
    const said = [...Object.values(this.agents), newest].flatMap((one) => one?.confidence ?? []);
    return said.length === 0 ? undefined : said.reduce((a, b) => Math.min(a, b));
  }

  /** Whether nothing was recorded in it. */
  get isEmpty(): boolean {
    const { usage, decisions, agents, outputs, dropped } = this.#contents;
    const kept = sizeOf(usage) + decisions.length + sizeOf(agents) + sizeOf(outputs);
    return kept === 0 && sameFields(dropped, blank.dropped);
  }

  /**
   * Adds what a node used.
   *
   * @throws ConfigError, naming the counter, if one is unknown or not a finite number ≥ 0.
   */
  addUsage(node: string, usage: UsageCall): Ledger {
    text("node", node);
    return this.#plus(node, tallyOf("usage", usage));
  }

  /**
   * Adds a decision. The oldest is dropped if there are too many. If it names a known agent, it becomes that
   * agent's last decision.
   *
   * @throws ConfigError that names the field.
   */
  addDecision(decision: Decision): Ledger {
    const made = decisionKind.make("decision", decision);
    const decisions = [...this.decisions, made];
    const { agent: id = "", description: lastDecision } = made;
    const agent = ownOf(this.agents, id);
    if (agent === undefined) return this.#with({ decisions });
    const next = freezeCopy({ ...agent, lastDecision });
    return this.#with({ decisions, agents: put(this.agents, id, next) });
  }

  /**
   * Records what is known about an agent. Omitted fields keep their value; a confidence is added to its
   * history.
   *
   * @throws ConfigError that names the field.
   * @throws SerializationError when its `state` can't be saved.
   */
  setAgent(id: string, agent: Agent): Ledger {
    text("id", id);
    const next = updatedAgent(ownOf(this.agents, id), agentKind.make("agent", agent));
    return this.#with({ agents: put(this.agents, id, next) });
  }

  /**
   * Records where an output of the run is. One with the same name is replaced.
   *
   * @throws ConfigError that names the field.
   * @throws SerializationError when its `ref` can't be saved.
   */
  setOutput(name: string, output: Output): Ledger {
    text("name", name);
    return this.#with({ outputs: put(this.outputs, name, outputKind.make("output", output)) });
  }

  /**
   * Adds to this ledger what `other` gained since `base`, as when the branches of a parallel node are combined.
   * Usage is the same in any order. Decisions follow in the order of the merges; if two branches set an agent
   * or an output, the one merged last wins, and an agent keeps the confidences of both.
   *
   * @throws ConfigError if it is not given ledgers.
   */
  merge(base: Ledger, other: Ledger): Ledger {
    isLedger("base", base);
    isLedger("other", other);
    if (other === base) return this;
    if (this === base) return other;
    let merged: Ledger = this;
    for (const [node, tally] of Object.entries(other.#contents.usage)) {
      merged = merged.#plus(node, minus(tally, ownOf(base.#contents.usage, node)));
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
   * What was used since `base`, without counters that are 0; `undefined` if nothing was. It includes a peak if
   * a node has exceeded the previous one.
   */
  usageSince(base: Ledger): Usage | undefined {
    if (this.#contents.usage === base.#contents.usage) return undefined;
    let rest: Tally = new Map();
    for (const [node, tally] of Object.entries(this.#contents.usage)) {
      const before = ownOf(base.#contents.usage, node);
      if (tally !== before) rest = plus(rest, minus(tally, before));
    }
    return rest.size === 0 ? undefined : usageOf(rest);
  }

  /**
   * The same ledger with these limits; excess entries are dropped immediately.
   *
   * @throws ConfigError that names the limit.
   */
  withLimits(limits: LedgerLimits): Ledger {
    checkLedgerLimits("limits", limits);
    const next = Object.freeze({ ...blank.limits, ...defined(limits) });
    return sameFields(next, this.#contents.limits) ? this : this.#with({ limits: next });
  }

  /**
   * The ledger as plain JSON; {@link Ledger.fromJSON} reverses it.
   *
   * @throws SerializationError that names the path of what can't be saved.
   */
  toJSON(): LedgerJSON {
    return jsonOf(contents, this.#contents);
  }

  /**
   * Restores a ledger from the result of {@link Ledger.toJSON}, exactly.
   *
   * @throws SerializationError that names the path of what is wrong.
   */
  static fromJSON(json: unknown): Ledger {
    return Ledger.fromTree(treeOf("ledger", () => JSON.stringify(json)));
  }

  /** @internal The same for a tree that nobody else holds; mutates it. */
  static fromTree(tree: unknown): Ledger {
    const ledger = new Ledger(contents.read(tree, "", ""));
    return ledger.isEmpty && sameFields(ledger.#contents.limits, blank.limits)
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
    const { usage } = this.#contents;
    const before = ownOf(usage, node);
    const sum = before === undefined ? tally : plus(before, tally);
    return new Ledger({ ...this.#contents, usage: put(usage, node, sum) });
  }

  #with(changes: Partial<Contents>): Ledger {
    return new Ledger(bounded({ ...this.#contents, ...changes }));
  }
}

/** Throws if the value is not valid {@link LedgerLimits}. */
export const checkLedgerLimits: Check = (name, value, refuse) =>
  checkOptions(name, value, limitChecks, refuse);

const isLedger = check("a Ledger", (value) => value instanceof Ledger);
