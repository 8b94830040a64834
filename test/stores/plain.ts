import type { CheckpointStore } from "waymark";

/** A store that has these methods of another one and no others, as somebody's own may. */
export function only(
  store: CheckpointStore,
  ...methods: readonly (keyof CheckpointStore)[]
): CheckpointStore {
  const bound = methods.map((name) => {
    const method = Reflect.get(store, name) as (...args: unknown[]) => unknown;
    return [name, method.bind(store)];
  });
  return Object.fromEntries(bound) as CheckpointStore;
}

/** All that a generator yields. */
export async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const item of items) all.push(item);
  return all;
}
