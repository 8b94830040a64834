import type { Audit } from "../event-map.js";
import { checkRunId } from "../options.js";
import { AccessCheck, newToken } from "./access.js";
import { Actions } from "./actions.js";
import { Studio } from "./context.js";
import { Streams } from "./events.js";
import { figuresOf } from "./figures.js";
import { badRequest, bodyOf, errorResponse, HttpError, json, securityHeaders } from "./http.js";
import { inboxOf } from "./inbox.js";
import { resolveStudioOptions, type StudioOptions } from "./options.js";
import { notFound, pageFile } from "./page-files.js";
import { differenceOf, historyOf, logOf, sessionOf, stateOf } from "./reads.js";
import { Runs } from "./runs.js";
import { viewOf } from "./view.js";

/** What {@link studio} returns: a fetch handler for any server. */
export interface StudioHandler {
  /** Answers a request; never rejects. */
  (request: Request): Promise<Response>;
  /** The token that requests must have; `undefined` if there is only `auth`. The page takes it from its address: `/#token=…`. */
  readonly token: string | undefined;
  /** Ends all streams, and stops the runs that were continued here, so that they can be resumed. */
  close(): Promise<void>;
}

/**
 * Creates a fetch handler that serves a page with the runs of a store, and its HTTP API. The API requires the token, and
 * rejects requests with a foreign Host or Origin.
 *
 * @throws ConfigError if an option is invalid.
 *
 * @example
 * ```ts
 * import { MemoryStore, State } from "waymark";
 * import { type StudioApi, studio } from "waymark/studio";
 *
 * const store = new MemoryStore();
 * await State.create({ topic: "cairns" }, { runId: "monday" }).checkpoint(store);
 *
 * const handler = studio({ store, token: "correct-horse-battery" });
 * const headers = { authorization: "Bearer correct-horse-battery" };
 * const response = await handler(new Request("http://localhost/api/runs", { headers }));
 * const { runs } = (await response.json()) as StudioApi["GET /api/runs"]["answer"];
 * console.log(runs[0]?.runId, runs[0]?.status); // monday pending
 * console.log((await handler(new Request("http://localhost/api/runs"))).status); // 401
 * await handler.close();
 * ```
 */
export function studio(options: StudioOptions): StudioHandler {
  const settings = resolveStudioOptions(options);
  const { auth, hosts, basePath = "" } = options;
  const token = options.token ?? (auth === undefined ? newToken() : undefined);
  const access = new AccessCheck({ token, auth, hosts });
  let api: Promise<Api> | undefined;
  const open = async (): Promise<Api> => new Api(await Studio.open(settings));
  const opening = (): Promise<Api> => {
    api ??= open().catch((error: unknown) => {
      api = undefined;
      throw error;
    });
    return api;
  };
  const answer = async (request: Request): Promise<Response> => {
    access.checkOrigin(request);
    const url = new URL(request.url);
    if (url.pathname === basePath && basePath !== "") return moved(`${basePath}/`);
    if (!url.pathname.startsWith(`${basePath}/`)) throw notFound();
    const path = url.pathname.slice(basePath.length);
    if (path !== "/api" && !path.startsWith("/api/")) {
      checkMethod(request, "GET", "HEAD");
      return pageFile(path);
    }
    const who = (await access.authenticate(request)) || options.actor || "token";
    return (await opening()).answer(request, url.searchParams, segmentsOf(path), `studio/${who}`);
  };
  const handler = async (request: Request): Promise<Response> => {
    const response = await answer(request).catch(errorResponse);
    return request.method === "HEAD" ? new Response(null, response) : response;
  };
  return Object.assign(handler, { token, close: async () => (await api)?.close() });
}

class Api {
  readonly #studio: Studio;
  readonly #runs: Runs;
  readonly #actions: Actions;
  readonly #streams: Streams;

  constructor(context: Studio) {
    this.#studio = context;
    this.#runs = new Runs(context);
    this.#actions = new Actions(context);
    this.#streams = new Streams(context, this.#runs);
  }

  async close(): Promise<void> {
    this.#streams.close();
    await this.#actions.close();
  }

  async answer(
    request: Request,
    query: URLSearchParams,
    [what = "", id, verb, ...more]: readonly string[],
    actor: string,
  ): Promise<Response> {
    if (more.length > 0) throw notFound();
    if (what === "runs" && id !== undefined) {
      return this.#ofRun(request, query, checkRunId(id), verb, actor);
    }
    const route = Object.hasOwn(this.#general, what) ? this.#general[what] : undefined;
    if (route === undefined || id !== undefined) throw notFound();
    checkMethod(request, "GET", "HEAD");
    const answer = await route(query, request);
    return answer instanceof Response ? answer : json(answer);
  }

  readonly #general: Readonly<
    Record<string, (query: URLSearchParams, request: Request) => Promise<unknown>>
  > = {
    session: () => sessionOf(this.#studio),
    runs: (query) => this.#runs.page(query),
    inbox: () => inboxOf(this.#studio),
    figures: (query) => figuresOf(this.#studio, query.get("graph")),
    events: async (query, request) => {
      const run = query.get("run");
      return this.#streams.open(request, run === null ? null : checkRunId(run));
    },
    "openapi.json": async () => {
      const { default: description } = await import("./openapi.json", { with: { type: "json" } });
      return description;
    },
  };

  async #ofRun(
    request: Request,
    query: URLSearchParams,
    runId: string,
    verb: string | undefined,
    actor: string,
  ): Promise<Response> {
    const audit: Audit = { actor, purpose: `studio ${verb ?? request.method.toLowerCase()}` };
    if (verb === undefined) {
      if (request.method === "DELETE") return this.#delete(runId, { ...audit });
      checkMethod(request, "GET", "HEAD", "DELETE");
      const store = this.#studio.storeFor(audit);
      return json(await viewOf(this.#studio, this.#runs, store, runId));
    }
    const action = Object.hasOwn(this.#actions.byName, verb)
      ? this.#actions.byName[verb]
      : undefined;
    if (action !== undefined) {
      checkMethod(request, "POST");
      this.#checkWritable();
      const [result, status] = await action(runId, await bodyOf(request), audit);
      return json(result, status);
    }
    const reads: Readonly<Record<string, () => Promise<unknown>>> = {
      history: () => historyOf(this.#studio, runId, query),
      state: () => stateOf(this.#studio, runId, query, audit),
      diff: () => differenceOf(this.#studio, runId, query, audit),
      log: () => logOf(this.#studio, runId, query),
    };
    const read = Object.hasOwn(reads, verb) ? reads[verb] : undefined;
    if (read === undefined) throw notFound();
    checkMethod(request, "GET", "HEAD");
    return json(await read());
  }

  async #delete(runId: string, audit: Audit): Promise<Response> {
    this.#checkWritable();
    await this.#actions.delete(runId, audit);
    this.#runs.lookAgain();
    this.#streams.deleted(runId);
    return new Response(null, { status: 204, headers: securityHeaders });
  }

  #checkWritable(): void {
    if (!this.#studio.settings.readOnly) return;
    throw new HttpError(403, "READ_ONLY", "this studio is read-only");
  }
}

function checkMethod({ method }: Request, ...allowed: readonly string[]): void {
  if (allowed.includes(method)) return;
  throw new HttpError(405, "METHOD_NOT_ALLOWED", `the method must be ${allowed.join(" or ")}`);
}

/** The segments after `/api`. */
function segmentsOf(path: string): string[] {
  try {
    return path.split("/").slice(2).map(decodeURIComponent);
  } catch {
    throw badRequest("the path must be URL-encoded");
  }
}

function moved(location: string): Response {
  return new Response(null, { status: 308, headers: { ...securityHeaders, location } });
}
