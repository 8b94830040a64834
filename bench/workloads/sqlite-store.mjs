/** The built SqliteStore. */
export const { SqliteStore } = await import(
  new URL("../../dist/stores/sqlite.js", import.meta.url)
);
