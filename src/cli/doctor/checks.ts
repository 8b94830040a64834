import { constants, readFileSync } from "node:fs";
import { access, lstat, statfs } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { listRuns } from "../../checkpoint/any-store.js";
import { withHint } from "../../errors.js";
import { underWay } from "../../state/record.js";
import { showAddress } from "../../stores/address.js";
import type { Context } from "../context.js";
import { explain } from "../exit.js";
import { bytes, count } from "../output/units.js";
import { manifest } from "../package.js";
import { type OpenStore, openStore } from "../store/open.js";

/** The result of one check. */
export interface Check {
  readonly name: string;
  /** `info` is neither good nor bad. */
  readonly state: "ok" | "warning" | "problem" | "info";
  readonly text: string;
}

const LEAST_NODE = 20;
const LEAST_DISK = 100_000_000;

const peers = ["pg", "@electric-sql/pglite", "bullmq", "ioredis", "redis", "@opentelemetry/api"];

/** The versions of Node, waymark and the optional packages. */
export function versions(): readonly Check[] {
  const { node } = process.versions;
  const isOld = Number.parseInt(node, 10) < LEAST_NODE;
  const found = peers.flatMap((name) => {
    const version = versionOf(name);
    return version === undefined ? [] : [`${name} ${version}`];
  });
  return [
    { name: "waymark", state: "info", text: manifest().version },
    {
      name: "node",
      state: isOld ? "problem" : "ok",
      text: isOld ? `${node}; ${LEAST_NODE} or newer is needed` : node,
    },
    { name: "packages", state: "info", text: found.join(", ") || "none of the optional ones" },
  ];
}

/** The version of an optional package, if it is installed. Not every package exports its package.json. */
function versionOf(name: string): string | undefined {
  const { resolve } = createRequire(import.meta.url);
  for (const folder of resolve.paths(name) ?? []) {
    try {
      const manifest = readFileSync(join(folder, name, "package.json"), "utf8");
      return String((JSON.parse(manifest) as { version?: unknown }).version);
    } catch {
      // It is not in this folder.
    }
  }
  return undefined;
}

/** Whether the config can be loaded, and its graphs. */
export async function configChecks(context: Context): Promise<readonly Check[]> {
  try {
    const config = await context.config();
    if (config.file === "") return [{ name: "config", state: "info", text: "none" }];
    const { loadGraphs } = await import("../config/graphs.js");
    const graphs = Object.values(await loadGraphs(config));
    for (const graph of graphs) graph.validate();
    const names = graphs.map(({ name }) => name).join(", ");
    const text = graphs.length === 0 ? config.file : `${config.file}, graphs: ${names}`;
    return [{ name: "config", state: "ok", text }];
  } catch (error) {
    return [{ name: "config", state: "problem", text: failureText(error) }];
  }
}

/** Whether the store can be reached and read. */
export async function storeChecks(context: Context): Promise<readonly Check[]> {
  let opened: OpenStore;
  try {
    opened = await context.store();
    const runs = await opened.store.list();
    const text = `${opened.name}, ${count(runs.length, "run")}`;
    const check: Check = { name: "store", state: "ok", text };
    return [
      check,
      ...(await claims(opened)),
      ...(await databaseChecks(opened)),
      ...(await redisChecks(opened)),
      ...(await folderChecks(opened)),
      ...(await replicaChecks(opened)),
    ];
  } catch (error) {
    return [{ name: "store", state: "problem", text: failureText(error) }];
  }
}

function failureText(error: unknown): string {
  const { message, hint } = explain(error, "doctor");
  return withHint(message, hint);
}

async function databaseChecks({ store, address }: OpenStore): Promise<readonly Check[]> {
  if (address?.scheme !== "postgres" && address?.scheme !== "pglite") return [];
  const { PostgresStore } = await import("../../stores/postgres.js");
  const facts = store instanceof PostgresStore ? await store.facts() : undefined;
  if (facts === undefined) return [];
  const { version: server, hasTables, canWrite, bytes: size } = facts;
  const allowed = hasTables
    ? "this user may save"
    : "there are no tables yet; this user may create them";
  const refused = hasTables
    ? "this user may not save"
    : "there are no tables, and this user may not create them";
  return [
    { name: "server", state: "info", text: `Postgres ${server}, ${bytes(size)} in the database` },
    {
      name: "rights",
      state: canWrite ? "ok" : "problem",
      text: canWrite ? allowed : refused,
    },
  ];
}

async function redisChecks({ store, address }: OpenStore): Promise<readonly Check[]> {
  if (address?.scheme !== "redis") return [];
  const { RedisStore } = await import("../../stores/redis.js");
  if (!(store instanceof RedisStore)) return [];
  const { facts, problem } = await store.facts();
  const { version: server, isCluster, isReplica, bytes: size } = facts;
  const kind = isCluster ? " (cluster)" : "";
  const what = `Redis ${server}${kind}, ${bytes(size)} in memory`;
  return [
    { name: "server", state: "info", text: what },
    {
      name: "rights",
      state: isReplica ? "problem" : "ok",
      text: isReplica ? "the server is a replica, which accepts no saves" : "it accepts saves",
    },
    {
      name: "durability",
      state: problem === undefined ? "ok" : "warning",
      text: problem ?? "it has an append-only file",
    },
  ];
}

async function folderChecks({ address }: OpenStore): Promise<readonly Check[]> {
  const root = folderOf(address);
  if (root === undefined) return [];
  const place = await existing(root);
  return [...(await permissions(root, place)), ...(await disk(place))];
}

/** The folder that a store is in; `undefined` if it is not in one. */
function folderOf(address: OpenStore["address"]): string | undefined {
  if (address?.scheme === "sqlite") return dirname(address.location);
  const isFolder = address?.scheme === "file" || address?.scheme === "pglite";
  return isFolder ? address.location : undefined;
}

/** The folder, or its nearest parent that exists. */
async function existing(folder: string): Promise<string> {
  const there = await lstat(folder).catch(() => undefined);
  return there !== undefined || dirname(folder) === folder ? folder : existing(dirname(folder));
}

async function permissions(root: string, place: string): Promise<readonly Check[]> {
  const name = "permissions";
  try {
    await access(place, constants.R_OK | constants.W_OK | constants.X_OK);
  } catch {
    return [{ name, state: "problem", text: `${place} can't be written by this user` }];
  }
  if (place !== root) {
    return [{ name, state: "ok", text: `${root} does not exist yet; it can be created` }];
  }
  const { mode } = await lstat(root);
  const isOpen = process.platform !== "win32" && (mode & 0o077) !== 0;
  const shown = (mode & 0o777).toString(8);
  return isOpen
    ? [{ name, state: "warning", text: `${root} is ${shown}: others can read it; chmod 700` }]
    : [{ name, state: "ok", text: `only its owner can read ${root} (${shown})` }];
}

async function disk(place: string): Promise<readonly Check[]> {
  const { bavail, bsize } = await statfs(place);
  const free = bavail * bsize;
  const isLow = free < LEAST_DISK;
  return [{ name: "disk", state: isLow ? "problem" : "ok", text: `${bytes(free)} free` }];
}

/** Whether the copies of a mirror have the newest checkpoint of each run. */
async function replicaChecks({ store, address }: OpenStore): Promise<readonly Check[]> {
  const runs = address?.replicas === undefined ? [] : await listRuns(store);
  const checks = address?.replicas?.map(async (replica): Promise<Check> => {
    const name = "copy";
    try {
      const copy = await openStore(replica, "read", undefined);
      const copied = await listRuns(copy.store).finally(() => copy.store.close?.());
      const times = new Map(copied.map(({ runId, savedAt }) => [runId, savedAt]));
      const behind = runs.filter(({ runId, savedAt }) => times.get(runId) !== savedAt).length;
      if (behind === 0) return { name, state: "ok", text: `${copy.name} is up to date` };
      const advice = "catchUp() of the mirror copies what is missing";
      return {
        name,
        state: "warning",
        text: `${copy.name} lacks the newest checkpoint of ${count(behind, "run")}: ${advice}`,
      };
    } catch (error) {
      return { name, state: "problem", text: `${showAddress(replica)}: ${failureText(error)}` };
    }
  });
  return Promise.all(checks ?? []);
}

/** How many runs are being worked on, and how many were abandoned. */
async function claims({ store }: OpenStore): Promise<readonly Check[]> {
  if (store.runs === undefined || store.holder === undefined) return [];
  const runs = await store.runs({ status: underWay });
  const holders = await Promise.all(runs.map(({ runId }) => store.holder?.(runId)));
  const live = holders.filter((holder) => holder !== undefined).length;
  const text = `${count(live, "run")} at work, ${runs.length - live} stopped before the end`;
  return [{ name: "runs", state: "info", text }];
}
