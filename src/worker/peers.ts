import type { IQueueBackend } from "bullmq";
import { ConfigError, isMissingPackage } from "../errors.js";

/** The module of BullMQ. */
export type BullMQ = typeof import("bullmq");

/** Creates a backend of BullMQ from the name of its queue and its owner's options. */
export type BackendFactory = (
  name: string,
  options: { readonly connection: unknown },
  needs?: { readonly blocking?: boolean; readonly withBlockingConnection?: boolean },
) => IQueueBackend;

/** Imports a package; tests replace it. */
export type Load = (name: string) => Promise<unknown>;

const known: Readonly<Record<string, () => Promise<unknown>>> = {
  bullmq: () => import("bullmq"),
  pg: () => import("pg"),
  ioredis: () => import("ioredis"),
};

/** Loads the packages that the queue needs, on first use. */
export async function loadPeers(
  driver: "pg" | "ioredis",
  load: Load = (name) => known[name]?.() ?? import(name),
): Promise<BullMQ> {
  const bullmq = (await peer("bullmq", load)) as BullMQ & { readonly default?: BullMQ };
  // BullMQ loads its driver itself, but its error is less clear if the driver is missing.
  await peer(driver, load);
  return bullmq.default ?? bullmq;
}

async function peer(name: string, load: Load): Promise<unknown> {
  try {
    return await load(name);
  } catch (error) {
    if (!isMissingPackage(error)) throw error;
    throw new ConfigError("connection", `needs the package ${name}: npm install ${name}`);
  }
}
