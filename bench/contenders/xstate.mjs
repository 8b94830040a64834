import { assign, createActor, createMachine } from "xstate";

/**
 * One `actor.send` per step. Nothing is awaited, which favours XState. With `reenter` the step leaves its state and
 * enters it again, as a node's self edge does; without it the state is never left.
 */
export function run(steps, { reenter }) {
  const actor = createActor(counter(steps, reenter)).start();
  const tick = { type: "TICK" };
  while (actor.getSnapshot().status === "active") actor.send(tick);
  return actor.getSnapshot().context.n;
}

function counter(steps, reenter) {
  const again = {
    guard: ({ context }) => context.n < steps,
    actions: assign({ n: ({ context }) => context.n + 1 }),
    ...(reenter && { target: "tick", reenter }),
  };
  return createMachine({
    context: { n: 0 },
    initial: "tick",
    states: { tick: { on: { TICK: [again, { target: "done" }] } }, done: { type: "final" } },
  });
}
