import { type CheckpointStore, isCheckpointStore } from "../checkpoint/store.js";
import { checkRedaction, type Redaction as Patterns } from "../codecs/patterns.js";
import { ConfigError } from "../errors.js";
import { checkObserver, type Observer } from "../events.js";
import { checkLogPlace, type LogPlace } from "../observers/run-files.js";
import { callable, check, checkOptions, flag, integer, string, strings, text } from "../options.js";
import { Redaction } from "../report/redaction.js";
import { graphsByName } from "../run/graphs.js";
import type { AnyGraph } from "../run/state-graph.js";
import { hidePassword } from "../stores/address.js";
import { getCheckpointStore } from "../stores/registry.js";
import type { Client } from "../worker/client.js";
import type { Auth } from "./access.js";
import type { StudioSettings } from "./context.js";

/** Options of {@link studio}. */
export interface StudioOptions {
  /** The store with the runs to show, or its address or registered name. */
  readonly store: CheckpointStore | string;
  /** What the store is called on the page and in commands; its address by default. */
  readonly name?: string;
  /** Graphs whose runs can be continued in this process. In an object, each key is an additional name of its graph. */
  readonly graphs?: readonly AnyGraph[] | Readonly<Record<string, AnyGraph>>;
  /** Lets workers continue the runs of all graphs. It takes precedence over `graphs`. */
  readonly client?: Client;
  /** Rejects every request that would change a run; false by default. */
  readonly readOnly?: boolean;
  /** The token for `Authorization: Bearer`, at least 16 characters. Without it and `auth`, one is generated: {@link StudioHandler.token}. */
  readonly token?: string;
  /** The name of the token's user in audit events; `token` by default. */
  readonly actor?: string;
  /** Authenticates requests instead of a token: returns `false`, `true`, or the user's name for audit events. */
  readonly auth?: Auth;
  /** The allowed Host headers, with or without a port; `localhost`, `127.0.0.1` and `[::1]` by default. */
  readonly hosts?: readonly string[];
  /** The path where the studio is mounted, such as `/studio`; the root by default. */
  readonly basePath?: string;
  /** What to redact in all responses; see `redact` of `waymark/codecs`. */
  readonly redact?: Patterns;
  /** Where the event log of the runs is, as passed to `eventLog`. */
  readonly log?: LogPlace;
  /** Receives an event for each load, save and removal by the studio, with `actor: "studio/…"` and `purpose`. */
  readonly observer?: Observer;
  /** How often to look for changes while a client follows them, in milliseconds; at least 10, 500 by default. */
  readonly pollMs?: number;
}

/**
 * Validates the options and fills in their defaults.
 *
 * @throws ConfigError if an option is invalid.
 */
export function resolveStudioOptions(options: StudioOptions): StudioSettings {
  checkOptions("options", options, {
    store: check(
      "a CheckpointStore, an address, or a registered name",
      (value) => typeof value === "string" || isCheckpointStore(value),
    ),
    name: text,
    graphs: () => {},
    client: check(
      "a Client of waymark/worker",
      (value) => typeof Reflect.get(Object(value), "run") === "function",
    ),
    readOnly: flag,
    token: (name, value) => {
      if (typeof value === "string" && /^[\w.~+/=-]{16,}$/.test(value)) return;
      // The value is a secret, so the message does not show it.
      throw new ConfigError(
        name,
        "must be a string of 16 characters or more: letters, digits, -._~+/=",
      );
    },
    actor: string,
    auth: callable,
    hosts: strings,
    basePath: check(
      "a path such as /studio",
      (value) => typeof value === "string" && /^(\/[\w.~-]+)+$/.test(value),
    ),
    redact: checkRedaction,
    log: checkLogPlace,
    observer: checkObserver,
    pollMs: integer(10),
  });
  const { store, name, client, readOnly = false, log, observer, pollMs = 500 } = options;
  if (store === undefined) throw new ConfigError("options.store", "must be given");
  return {
    store: typeof store === "string" ? getCheckpointStore(store) : store,
    name: name ?? (typeof store === "string" ? hidePassword(store) : store.constructor.name),
    graphs: graphsByName("options.graphs", options.graphs ?? []),
    redaction: new Redaction(options.redact),
    ...{ client, readOnly, log, observer, pollMs },
  };
}
