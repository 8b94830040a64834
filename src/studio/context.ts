import { audited, isStep, namedBy } from "../checkpoint/any-store.js";
import { type CheckpointAt, type CheckpointStore, opened, wrap } from "../checkpoint/store.js";
import { CheckpointNotFoundError } from "../errors.js";
import type { Audit } from "../event-map.js";
import type { Observer } from "../events.js";
import type { GraphTopology } from "../graph/description.js";
import type { LogPlace } from "../observers/run-files.js";
import type { Redaction } from "../report/redaction.js";
import { typed } from "../report/shell.js";
import type { AnyGraph } from "../run/state-graph.js";
import type { GraphIdentity } from "../state/record.js";
import { parseAddress } from "../stores/address.js";
import type { Client } from "../worker/client.js";
import { noHistory } from "./http.js";

/** The options of a studio, validated and with their defaults. */
export interface StudioSettings {
  readonly store: CheckpointStore;
  /** The name of the store, for people. */
  readonly name: string;
  readonly graphs: ReadonlyMap<string, AnyGraph>;
  readonly client: Client | undefined;
  readonly readOnly: boolean;
  readonly log: LogPlace | undefined;
  readonly redaction: Redaction;
  readonly observer: Observer | undefined;
  /** How often to look for changes, in milliseconds. */
  readonly pollMs: number;
}

/** The number of topologies that are cached. */
const TOPOLOGIES = 200;

/** What all routes share. */
export class Studio {
  readonly settings: StudioSettings;
  readonly #topologies = new Map<string, GraphTopology | undefined>();

  constructor(settings: StudioSettings) {
    this.settings = settings;
  }

  /** A studio on a store whose methods tell what it can do. */
  static async open(settings: StudioSettings): Promise<Studio> {
    return new Studio({ ...settings, store: await opened(inspecting(settings.store)) });
  }

  /** The store, with audit events for its use. */
  storeFor(audit: Audit): CheckpointStore {
    const { store, observer } = this.settings;
    return observer === undefined ? store : audited(store, observer, audit);
  }

  /** The checkpoint that a text names; the newest if there is no text. */
  async placeOf(runId: string, at: string | null | undefined): Promise<CheckpointAt> {
    if (at === null || at === undefined || at === "") return {};
    if (isStep(at)) return { step: Number(at) };
    const { store } = this.settings;
    if (store.history === undefined) throw noHistory();
    const checkpointId = namedBy(at, await store.history(runId));
    if (checkpointId !== undefined) return { checkpointId };
    throw new CheckpointNotFoundError(runId, { checkpointId: at });
  }

  /** Whether runs of this graph can be continued here. */
  canRun(graph: string): boolean {
    const { client, graphs, readOnly } = this.settings;
    return !readOnly && graph !== "" && (client !== undefined || graphs.has(graph));
  }

  /** The topology of a graph; `undefined` if neither the store nor its code has it. */
  async topologyOf(graph: GraphIdentity | undefined): Promise<GraphTopology | undefined> {
    if (graph === undefined) return undefined;
    const known = this.#topologies;
    if (known.has(graph.fingerprint)) return known.get(graph.fingerprint);
    const { store, graphs } = this.settings;
    const saved = await store.topology?.(graph.fingerprint);
    const topology = saved ?? graphs.get(graph.name)?.topology;
    if (known.size >= TOPOLOGIES) known.clear();
    if (topology !== undefined) known.set(graph.fingerprint, topology);
    return topology;
  }

  /** The command that does the same as the page, quoted for a shell. */
  command(verb: string, runId?: string, ...options: readonly string[]): string {
    const { name } = this.settings;
    const store = parseAddress(name) === undefined ? [] : ["--store", name];
    return typed(verb, runId, [...options, ...store]);
  }
}

/** A store whose loads change nothing, even if a run is damaged. */
export function inspecting(store: CheckpointStore): CheckpointStore {
  return wrap(store, {
    load: (load) => (runId, at, context) => load(runId, at, { ...context, inspect: true }),
  });
}
