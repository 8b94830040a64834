import { isoNow } from "../clock.js";
import { ConfigError } from "../errors.js";
import type { EventMap } from "../event-map.js";
import type { EventType } from "../events.js";
import type { LedgerWriter } from "../graph/node.js";
import type { Ledger } from "../state/ledger.js";
import { noPauses, type PauseRequest, type VisitCounts } from "../state/record.js";
import { State } from "../state/state.js";
import type { Settings } from "./config.js";
import { DRAINS } from "./failure.js";
import type { Saver } from "./saver.js";
import { ended, Work } from "./work.js";

/** The node that is running, as its contexts see it. A run has one, and turns it to each node. */
export class Visit<D extends object> {
  readonly runId: string;
  readonly #settings: Settings;
  readonly #saver: Saver<D> | undefined;
  readonly #visits: () => VisitCounts;
  readonly #lost: (error: unknown) => void;
  #state: State<D>;
  #node = "";
  #attempt = 1;
  #open = false;
  #work: Work<D> | undefined;
  #ledger: Ledger;
  #drain: AbortController | undefined;
  #drained = false;

  /**
   * @param visits - how often each node has completed, as of now.
   * @param lost - is told when another writer has taken the run.
   */
  constructor(
    settings: Settings,
    saver: Saver<D> | undefined,
    state: State<D>,
    visits: () => VisitCounts,
    lost: (error: unknown) => void,
  ) {
    this.runId = state.runId;
    this.#settings = settings;
    this.#saver = saver;
    this.#visits = visits;
    this.#lost = lost;
    this.#state = state;
    this.#ledger = state.ledger;
  }

  /** How many milliseconds a run may wait in this process; it pauses for longer waits. */
  get longestWait(): number {
    return this.#settings.longestWait;
  }

  /** What the running node remembered before the run was resumed. */
  recalled(key: string): unknown {
    const { unfinished } = this.#state;
    return unfinished?.node === this.#node ? unfinished.results.byKey().get(key) : undefined;
  }

  /** The run's ledger, with what the running node has written. */
  get ledger(): Ledger {
    return this.#ledger;
  }

  /** Aborts when the run drains. Made when it is asked for: few nodes do. */
  get draining(): AbortSignal {
    this.#drain ??= new AbortController();
    if (this.#drained) this.#drain.abort(DRAINS);
    return this.#drain.signal;
  }

  drain(): void {
    this.#drained = true;
    this.#drain?.abort(DRAINS);
  }

  begin(node: string, state: State<D>): void {
    this.#state = state;
    this.#node = node;
    this.#attempt = 1;
    this.#open = true;
    this.#work = undefined;
  }

  /** The node has returned: the State that its result goes on from. Nobody can write through its contexts any more. */
  end(state: State<D>): State<D> | Promise<State<D>> {
    this.#open = false;
    return this.#work === undefined ? state : this.#work.end();
  }

  /** The node has failed: what it leaves to a resume. Nobody can write through its contexts any more. */
  async fail(): Promise<State<D>> {
    this.#open = false;
    return this.#work?.left(true) ?? this.#left();
  }

  /** An attempt has failed: what it leaves to the next one. */
  async soFar(): Promise<State<D>> {
    return this.#work?.left(false) ?? this.#left();
  }

  #left(): State<D> {
    return State.progressed(this.#state, { ledger: this.#ledger });
  }

  /**
   * Only the newest attempt may replace what is remembered, set milestones and pause; one that was given up
   * may still be running.
   */
  attempt(attempt: number): void {
    this.#attempt = attempt;
  }

  /** What ended the visit's saves, if anything did. */
  get failure(): unknown {
    return this.#work?.failure;
  }

  /** The pauses that the node asked for and that nobody has answered. */
  get asked(): readonly PauseRequest[] {
    return this.#work?.asked ?? noPauses;
  }

  /** What the running node must not lose, as one attempt of it sees it. */
  workOf(step: number, attempt: number): Work<D> {
    if (attempt === this.#attempt) return this.work(step);
    throw new ConfigError(
      "context",
      `belongs to attempt ${attempt} of step ${step}, which has ended: stop when its signal aborts`,
    );
  }

  /** What the running node must not lose. */
  work(step: number): Work<D> {
    this.#check(step);
    this.#work ??= this.#newWork();
    return this.#work;
  }

  #newWork(): Work<D> {
    const ledger = (): Ledger => this.#ledger;
    // What is saved in the middle of a node is more than the State of the last interval.
    const state = State.progressed(this.#state, { visits: this.#visits() });
    return new Work<D>(this.#node, state, this.#saver, ledger, this.#lost);
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
      merge: (base, other) =>
        write(this.#ledger.merge(base, other).withLimits(this.#settings.ledger)),
    };
  }

  emit<T extends EventType>(type: T, data: EventMap[T]): void {
    this.#settings.bus.emit(type, this.#settings.name, this.runId, data);
  }

  /** A node that has ended must not write into the next one's work. */
  #check(step: number): void {
    if (!this.#open || step !== this.#state.step) throw ended(step);
  }
}
