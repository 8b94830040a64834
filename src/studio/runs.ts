import { listRuns } from "../checkpoint/any-store.js";
import { type RunFilter, type RunSummary, sizeWarning, summarize } from "../checkpoint/store.js";
import { monotonic } from "../clock.js";
import { isWaymarkError, messageOf } from "../errors.js";
import { longestPath } from "../graph/description.js";
import { integerFrom } from "../options.js";
import type { Metadata } from "../state/metadata.js";
import { isUnderWay, type RunStatus } from "../state/record.js";
import type { State } from "../state/state.js";
import type { RunProblem, RunRow, RunsPage } from "./api.js";
import type { Studio } from "./context.js";
import { badRequest, refuse } from "./http.js";

const LIMIT = 50;
const MOST = 200;
/** How many runs a search reads for one page. */
const SCANNED = 2000;
/** How many runs are cached, so that a list that is fetched again loads only new States. */
const REMEMBERED = 5000;

/** How long the ids of unreadable runs are cached, in milliseconds. */
const UNREADABLE_AGE = 5000;

type Fits = (run: RunSummary) => boolean;

type Facts = Pick<RunRow, "costUsd" | "maxSteps" | "waitsFor" | "warnings" | "problem"> & {
  readonly run: RunSummary;
};

/** The runs of a store, as rows of a list. */
export class Runs {
  readonly #studio: Studio;
  readonly #known = new Map<string, { readonly stamp: string; readonly facts: Facts }>();

  #damaged: Promise<string[]> = Promise.resolve([]);
  #lookedAt = Number.NEGATIVE_INFINITY;

  constructor(studio: Studio) {
    this.#studio = studio;
  }

  /** A page of runs; see `RunsQuery`. */
  async page(query: URLSearchParams): Promise<RunsPage> {
    const { store } = this.#studio.settings;
    const limit = countOf(query, "limit", LIMIT, 1, MOST);
    const fits = searchOf(query.get("q") ?? "");
    const filter = filterOf(query);
    const found: RunSummary[] = [];
    const start = cursorOf(query.get("cursor"));
    let cursor = start;
    let scanned = 0;
    let isMore = true;
    while (isMore && found.length < limit && scanned < SCANNED) {
      const step = fits === undefined ? limit : MOST;
      const page = await listRuns(store, { ...filter, cursor, limit: step + 1 });
      isMore = page.length > step;
      for (const run of page.slice(0, step)) {
        if (found.length === limit) {
          isMore = true;
          break;
        }
        scanned++;
        cursor = { savedAt: run.savedAt, runId: run.runId };
        if (fits?.(this.#studio.settings.redaction.summary(run)) ?? true) found.push(run);
      }
    }
    // First, since nobody knows when they were saved, and somebody should look at them.
    const runs = start === undefined ? await this.#unlisted(filter, fits) : [];
    // One by one: all States together may not fit into memory.
    for (const run of found) runs.push(await this.row(run));
    return { runs, scanned, ...(isMore && cursor !== undefined && { next: cursorText(cursor) }) };
  }

  /** Makes the next list look for unreadable runs again. */
  lookAgain(): void {
    this.#lookedAt = Number.NEGATIVE_INFINITY;
  }

  /** One run; `undefined` if the store does not have it. */
  async find(runId: string): Promise<RunRow | undefined> {
    const [run] = await listRuns(this.#studio.settings.store, { runId, limit: 1 });
    return run === undefined ? this.#unlistedRow(runId) : this.row(run);
  }

  /** The runs that the store does not list because nothing of them can be read. */
  async #unlisted(filter: RunFilter, fits: Fits | undefined): Promise<RunRow[]> {
    const { status, graph, metadata } = filter;
    // They are shown as failed; nothing else is known about them.
    const isFailed = status === undefined || status.includes("failed");
    if (!isFailed || graph !== undefined || metadata !== undefined) return [];
    const rows: RunRow[] = [];
    for (const runId of await this.#unreadable()) {
      const row = fits?.(unreadable(runId)) === false ? undefined : await this.#unlistedRow(runId);
      if (row !== undefined) rows.push(row);
      if (rows.length === MOST) break;
    }
    return rows;
  }

  /** Cached, since a FileStore reads all headers for it. */
  #unreadable(): Promise<string[]> {
    if (monotonic() >= this.#lookedAt + UNREADABLE_AGE) {
      this.#lookedAt = monotonic();
      this.#damaged = this.#studio.settings.store.unreadable?.() ?? Promise.resolve([]);
      this.#damaged.catch(() => this.lookAgain());
    }
    return this.#damaged;
  }

  /** A run that is not listed; `undefined` unless it exists and is corrupt. */
  async #unlistedRow(runId: string): Promise<RunRow | undefined> {
    const row = await this.row(unreadable(runId));
    return row.problem?.code === "CHECKPOINT_CORRUPT" ? row : undefined;
  }

  /** A run, with facts from its newest State. */
  async row(listed: RunSummary): Promise<RunRow> {
    const { store, redaction } = this.#studio.settings;
    // Before the State: a run that ends in between must not look abandoned.
    const holder = isUnderWay(listed.status) ? await store.holder?.(listed.runId) : undefined;
    const { run, ...facts } = await this.#facts(listed);
    const elapsedMs = Math.max(0, Date.parse(run.savedAt) - Date.parse(run.startedAt)) || 0;
    const live = store.holder === undefined ? null : isUnderWay(run.status) && holder !== undefined;
    return { ...redaction.summary(run), ...facts, elapsedMs, live };
  }

  async #facts(listed: RunSummary): Promise<Facts> {
    const { runId, savedAt, step, status } = listed;
    const stamp = `${savedAt} ${step} ${status}`;
    const known = this.#known.get(runId);
    if (known?.stamp === stamp) return known.facts;
    const facts = await this.#load(listed);
    this.#known.delete(runId);
    // Not cached: a repair may leave the summary unchanged.
    if (facts.problem !== undefined) return facts;
    if (this.#known.size >= REMEMBERED) {
      const [oldest = ""] = this.#known.keys();
      this.#known.delete(oldest);
    }
    this.#known.set(runId, { stamp, facts });
    return facts;
  }

  async #load(listed: RunSummary): Promise<Facts> {
    const { store, redaction } = this.#studio.settings;
    let problem: RunProblem | undefined;
    const emit = (_type: string, data: object): void => {
      if (!("kind" in data && data.kind === "fallback" && "message" in data)) return;
      const command = this.#studio.command("repair", listed.runId);
      problem = { code: "CHECKPOINT_CORRUPT", message: String(data.message), help, command };
    };
    try {
      const state = await redaction.store(store).load<object>(listed.runId, {}, { emit });
      const topology = await this.#studio.topologyOf(state.graph);
      return {
        run: summarize(state),
        costUsd: state.ledger.usage.costUsd,
        maxSteps: (topology && longestPath(topology)) ?? null,
        waitsFor: state.pauses.map(({ reason }) => reason),
        warnings: warningsOf(state),
        ...(problem && { problem }),
      };
    } catch (error) {
      problem = problemOf(this.#studio, listed.runId, error);
      return { run: listed, costUsd: null, maxSteps: null, waitsFor: [], warnings: [], problem };
    }
  }
}

const help = "repair moves corrupt checkpoints aside, so that the run continues from an intact one";

/** A run of which only the id is known. */
function unreadable(runId: string): RunSummary {
  const place = { graph: "", node: "", phase: "", step: 0, metadata: {} };
  return { runId, status: "failed", ...place, startedAt: "", savedAt: "", timestamp: "" };
}

/** What there is to know of a checkpoint that was read. */
export function warningsOf(state: State<object>): string[] {
  const size = sizeWarning(state);
  return size === undefined ? [] : [size];
}

/** Why a run can't be read. */
export function problemOf(studio: Studio, runId: string, error: unknown): RunProblem {
  const isCorrupt = isWaymarkError(error, "CHECKPOINT_CORRUPT");
  return {
    code: isWaymarkError(error) ? error.code : "UNREADABLE",
    message: messageOf(error),
    ...(isCorrupt && {
      expected: error.expected,
      actual: error.actual,
      help,
    }),
    command: studio.command(isCorrupt ? "repair" : "validate", runId),
  };
}

/** An integer parameter of a query. */
export function countOf(
  query: URLSearchParams,
  name: string,
  otherwise: number,
  least: number,
  most: number,
): number {
  const given = query.get(name);
  if (given === null) return otherwise;
  const value = /^\d+$/.test(given) ? Number(given) : given;
  integerFrom(least, most)(name, value, refuse);
  return Number(value);
}

function filterOf(query: URLSearchParams): RunFilter {
  const status = query.getAll("status") as RunStatus[];
  const graph = query.get("graph");
  const metadata = Object.fromEntries(query.getAll("metadata").map(pairOf));
  return {
    ...(status.length > 0 && { status }),
    ...(graph !== null && graph !== "" && { graph }),
    ...(Object.keys(metadata).length > 0 && { metadata }),
  };
}

function pairOf(text: string): [string, Metadata[string]] {
  const at = text.indexOf("=");
  if (at < 1) throw badRequest("metadata must be key=value");
  const value = text.slice(at + 1);
  try {
    const parsed: unknown = JSON.parse(value);
    const isPlain = typeof parsed === "number" || typeof parsed === "boolean";
    return [text.slice(0, at), isPlain || typeof parsed === "string" ? parsed : value];
  } catch {
    return [text.slice(0, at), value];
  }
}

function searchOf(text: string): Fits | undefined {
  const wanted = text.trim().toLowerCase();
  if (wanted === "") return undefined;
  return ({ runId, graph, node, nextNode, phase, error, metadata }) => {
    const pairs = Object.entries(metadata).map(([key, value]) => `${key}=${value}`);
    const texts = [runId, graph, node, nextNode ?? "", phase, error?.message ?? "", ...pairs];
    return texts.some((one) => one.toLowerCase().includes(wanted));
  };
}

type Cursor = NonNullable<RunFilter["cursor"]>;

function cursorText({ savedAt, runId }: Cursor): string {
  return Buffer.from(JSON.stringify([savedAt, runId])).toString("base64url");
}

function cursorOf(text: string | null): Cursor | undefined {
  if (text === null || text === "") return undefined;
  try {
    const [savedAt, runId] = JSON.parse(Buffer.from(text, "base64url").toString()) as unknown[];
    if (typeof savedAt === "string" && typeof runId === "string") return { savedAt, runId };
  } catch {
    // Invalid JSON is an invalid cursor.
  }
  throw badRequest("cursor must be the `next` of a page");
}
