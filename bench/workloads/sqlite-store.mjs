import { built } from "../lib/waymark.mjs";

/** The built SqliteStore. */
export const { SqliteStore } = await built("stores/sqlite.js");
