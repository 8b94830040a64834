import { isoNow } from "../clock.js";
import { ConfigError } from "../errors.js";
import type { EventMap } from "../event-map.js";
import type { EventType } from "../events.js";
import type { LedgerWriter } from "../graph/node.js";
import type { Ledger } from "../state/ledger.js";
import type { State } from "../state/state.js";
import type { Settings } from "./config.js";
import type { Saver } from "./saver.js";
import { Work } from "./work.js";

/** The node that is running, as its contexts see it. A run has one, and turns it to each node. */
export class Visit<D extends object> {
  readonly runId: string;
  readonly #settings: Settings;
  readonly #saver: Saver<D> | undefined;
  readonly #lost: (error: unknown) => void;
  #state: State<D>;
  #node = "";
  #work: Work<D> | undefined;
  #ledger: Ledger;

  /** @param lost - is told when another writer has taken the run. */
  constructor(
    settings: Settings,
    saver: Saver<D> | undefined,
    state: State<D>,
    lost: (error: unknown) => void,
  ) {
    this.runId = state.runId;
    this.#settings = settings;
    this.#saver = saver;
    this.#lost = lost;
    this.#state = state;
    this.#ledger = state.ledger;
  }

  /** The run's ledger, with what the running node has written. */
  get ledger(): Ledger {
    return this.#ledger;
  }

  begin(node: string, state: State<D>): void {
    this.#state = state;
    this.#node = node;
    this.#work = undefined;
  }

  /** The node is done: the State that its result goes on from. */
  end(state: State<D>): State<D> | Promise<State<D>> {
    return this.#work === undefined ? state : this.#work.end();
  }

  /** The node is not done: what it leaves to its next attempt, in this process or another. */
  async soFar(): Promise<State<D>> {
    return this.#work === undefined ? this.#state : this.#work.left();
  }

  /** What ended the visit's saves, if anything did. */
  get failure(): unknown {
    return this.#work?.failure;
  }

  /** What the running node must not lose. */
  work(step: number): Work<D> {
    this.#check(step);
    const ledger = (): Ledger => this.#ledger;
    this.#work ??= new Work<D>(this.#node, this.#state, this.#saver, ledger, this.#lost);
    return this.#work;
  }

  ledgerWriter(step: number): LedgerWriter {
    this.#check(step);
    const node = this.#node;
    const origin = { node, step };
    const write = (next: Ledger): void => {
      this.#check(step);
      this.#ledger = next;
    };
    return {
      usage: (usage) => write(this.#ledger.addUsage(node, usage)),
      decision: (decision) => {
        write(this.#ledger.addDecision({ ...decision, ...origin, timestamp: isoNow() }));
        const { description, rationale, confidence, alternatives } = decision;
        this.emit("decision", {
          ...origin,
          description,
          ...(rationale !== undefined && { rationale }),
          ...(confidence !== undefined && { confidence }),
          ...(alternatives !== undefined && { alternatives }),
        });
      },
      agent: (id, agent) =>
        write(this.#ledger.setAgent(id, { ...agent, ...origin, timestamp: isoNow() })),
      output: (name, ref) =>
        write(this.#ledger.setOutput(name, { ref, ...origin, timestamp: isoNow() })),
    };
  }

  emit<T extends EventType>(type: T, data: EventMap[T]): void {
    this.#settings.bus.emit(type, this.#settings.name, this.runId, data);
  }

  /** A node that has ended must not write into the next one's work. */
  #check(step: number): void {
    if (step === this.#state.step) return;
    throw new ConfigError(
      "context",
      `belongs to step ${step}, which has ended: await all you start in a node`,
    );
  }
}
