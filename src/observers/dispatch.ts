import type { AnyEvent, EventType, WaymarkEvent } from "../events.js";

/** What an observer does with each type of event; it ignores the others. */
export type Handlers = { readonly [T in EventType]?: (event: WaymarkEvent<T>) => void };

/** Calls the handler of an event, if there is one. */
export function dispatch(handlers: Handlers, event: AnyEvent): void {
  const handle = Object.hasOwn(handlers, event.type) ? handlers[event.type] : undefined;
  // The handler under a type takes events of that type, which TypeScript can't see for a union.
  (handle as ((event: AnyEvent) => void) | undefined)?.(event);
}
