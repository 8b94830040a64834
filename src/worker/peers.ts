import type { IQueueBackend } from "bullmq";
import { type LoadPackage, optionalPeer } from "../optional-peer.js";

/** The module of BullMQ. */
export type BullMQ = typeof import("bullmq");

/** Creates a backend of BullMQ from the name of its queue and its owner's options. */
export type BackendFactory = (
  name: string,
  options: { readonly connection: unknown },
  needs?: { readonly blocking?: boolean; readonly withBlockingConnection?: boolean },
) => IQueueBackend;

/** Loads the packages that the queue needs, on first use. */
export async function loadPeers(driver: "pg" | "ioredis", load?: LoadPackage): Promise<BullMQ> {
  const [, module] = await optionalPeer(["bullmq"], "connection", load);
  // BullMQ loads its driver itself, but its error is less clear if the driver is missing.
  await optionalPeer([driver], "connection", load);
  const bullmq = module as BullMQ & { readonly default?: BullMQ };
  return bullmq.default ?? bullmq;
}
