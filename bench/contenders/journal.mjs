import { cycleInStore } from "../cycle-in-store.mjs";

const { JournalStore } = await import(new URL("../../dist/stores/journal.js", import.meta.url));

export const { prepare, run } = cycleInStore((options) => new JournalStore(options));
