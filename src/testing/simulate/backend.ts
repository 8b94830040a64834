import { filterRuns } from "../../checkpoint/arguments.js";
import type {
  After,
  Chain,
  Head,
  HeaderEntry,
  NewRecord,
  RecordBackend,
  Removal,
  RunEntry,
  StoredRecord,
} from "../../checkpoint/records/backend.js";
import { RecordStore } from "../../checkpoint/records/record-store.js";
import type {
  CheckpointAt,
  Claim,
  ClaimHolder,
  RunFilter,
  StoreContext,
} from "../../checkpoint/store.js";
import { moment } from "../../clock.js";
import type { State } from "../../state/state.js";
import { holderOf, type LeaseKeeper, Leases } from "../../stores/leases.js";
import type { Database } from "./database.js";
import type { CallOptions, Network } from "./network.js";
import type { StorageObserver } from "./storage.js";
import type { Process } from "./world.js";

/** Stores the records of one process in the simulated database, as `PostgresBackend` does in a real one. */
export class SimulatedBackend implements RecordBackend, LeaseKeeper {
  readonly place = "the simulated database";
  readonly #process: Process;
  readonly #network: Network;
  readonly #database: Database;
  readonly #observer: Pick<StorageObserver, "saved">;
  readonly #leases: Leases;

  constructor(
    process: Process,
    network: Network,
    database: Database,
    observer: Pick<StorageObserver, "saved">,
  ) {
    this.#process = process;
    this.#network = network;
    this.#database = database;
    this.#observer = observer;
    this.#leases = new Leases(this, process);
  }

  async append(
    runId: string,
    after: After,
    encode: () => NewRecord | Promise<NewRecord>,
  ): Promise<Head | undefined> {
    const record = await encode();
    const lease = this.#leases.held(runId);
    const at = moment();
    const { sequence, fields } = record;
    const { checkpointId, step, node, status } = fields;
    const elsewhere = await this.#call(
      `append ${runId} ${sequence} step ${step} ${node} ${status}`,
      () => this.#database.append(runId, after, record, lease, this.#process),
      { isDurable: true },
    );
    if (elsewhere === undefined || elsewhere.checkpointId === checkpointId) {
      this.#observer.saved(fields);
    }
    if (elsewhere === undefined) lease?.renewed(at);
    return elsewhere;
  }

  #call<T>(what: string, serve: () => T, options?: CallOptions): Promise<T> {
    return this.#network.call(this.#process, what, serve, options);
  }

  chain(
    runId: string,
    at: { readonly sequence: number } | { readonly below: number },
  ): Promise<Chain | undefined> {
    const [from, to] = "below" in at ? [0, at.below - 1] : [at.sequence, at.sequence];
    return this.#call(`load ${runId}`, () => this.#database.chain(runId, from, to));
  }

  headers(runId: string): Promise<readonly HeaderEntry[]> {
    return this.#call(`headers ${runId}`, () => this.#database.headers(runId));
  }

  records(runId: string, from: number, to: number): Promise<readonly StoredRecord[]> {
    return this.#call(`records ${runId}`, () => this.#database.records(runId, from, to));
  }

  async setAside(
    runId: string,
    sequence: number,
    isBad: () => Promise<boolean>,
  ): Promise<string | undefined> {
    if (!(await isBad())) return undefined;
    const what = `set aside ${runId} ${sequence}`;
    const isAside = await this.#call(what, () => this.#database.setAside(runId, sequence));
    return isAside ? what : undefined;
  }

  discard(runId: string, sequences: readonly number[]): Promise<void> {
    return this.#call(`discard ${runId}`, () => this.#database.discard(runId, sequences));
  }

  async runs(filter: RunFilter): Promise<RunEntry[]> {
    return filterRuns(await this.#call("runs", () => this.#database.runs()), filter);
  }

  async list(): Promise<string[]> {
    const runs = await this.#call("list", () => this.#database.runs());
    return runs.map(({ runId }) => runId);
  }

  find(checkpointId: string): Promise<string | undefined> {
    return this.#call("find", () => this.#database.find(checkpointId));
  }

  remove(
    runs: readonly Removal[],
    { unclaimed, dryRun }: { readonly unclaimed: boolean; readonly dryRun: boolean },
  ): Promise<string[]> {
    const remove = () => this.#database.remove(runs, unclaimed, dryRun);
    return this.#call("remove", remove, { isDurable: true });
  }

  claim(runId: string, ttl: number | undefined): Promise<Claim | undefined> {
    return this.#leases.claim(runId, ttl);
  }

  acquire(runId: string, owner: string, ttl: number): Promise<number | undefined> {
    const acquire = () => this.#database.acquire(runId, owner, ttl, this.#process);
    return this.#call(`claim ${runId}`, acquire, { isDurable: true });
  }

  renew(runId: string, epoch: number, ttl: number): Promise<boolean> {
    return this.#call(`renew ${runId}`, () => this.#database.renew(runId, epoch, ttl));
  }

  release(runId: string, epoch: number): Promise<void> {
    return this.#call(`release ${runId}`, () => this.#database.release(runId, epoch));
  }

  async holder(runId: string): Promise<ClaimHolder | undefined> {
    const owner = await this.#call(`holder ${runId}`, () => this.#database.owner(runId));
    return owner === undefined ? undefined : holderOf(owner);
  }

  saveGraph(fingerprint: string, text: string): Promise<void> {
    return this.#call("save graph", () => this.#database.saveGraph(fingerprint, text));
  }

  graph(fingerprint: string): Promise<string | undefined> {
    return this.#call("graph", () => this.#database.graph(fingerprint));
  }

  close(): Promise<void> {
    return this.#leases.close();
  }
}

/** Warnings of a store are part of the simulation and are not printed. */
const unheard: StoreContext = { emit: () => {} };

/** The store of one process. */
export class SimulatedStore extends RecordStore {
  constructor(backend: SimulatedBackend, snapshotEvery: number) {
    super(backend, { snapshotEvery });
  }

  override load<D extends object>(
    runId: string,
    at?: CheckpointAt,
    context: StoreContext = unheard,
  ): Promise<State<D>> {
    return super.load<D>(runId, at, context);
  }
}
