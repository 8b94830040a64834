import { afterEach, beforeEach, expect, test } from "vitest";
import { MemoryStore, State, StateGraph } from "waymark";
import { type FakeClock, useFakeClock } from "waymark/testing";

const time = (hour: number): string => `2030-01-01T0${hour}:00:00.000Z`;
const metadata = { tenant: "acme" };

let clock: FakeClock;

beforeEach(() => {
  clock = useFakeClock(Date.parse(time(1)));
});

afterEach(() => {
  clock.restore();
});

const graphOf = (store: MemoryStore) =>
  new StateGraph<{ n: number }>({ name: "g", checkpoint: { store, interval: 1, preserve: true } })
    .addNode("only", (state) => state.set("n", state.data.n + 1))
    .setEntryPoint("only")
    .setExitPoint("only");

async function anHourLater(): Promise<void> {
  await clock.advance(60 * 60 * 1000);
}

test("a run keeps its start across a resume, and records when it was saved", async () => {
  const graph = graphOf(new MemoryStore());
  const first = State.create({ n: 0 }, { runId: "r", metadata });
  await anHourLater();
  const final = await graph.execute(first);
  expect(final).toMatchObject({ startedAt: time(1), savedAt: time(2), metadata });
  await anHourLater();
  expect(await graph.resume("r")).toMatchObject({ startedAt: time(1), savedAt: time(2), metadata });
});

test("a State that starts over, and a fork, have a new start", async () => {
  const graph = graphOf(new MemoryStore());
  const final = await graph.execute(State.create({ n: 0 }, { runId: "r", metadata }));
  await anHourLater();
  expect(await graph.fork("r", 1)).toMatchObject({ startedAt: time(2), metadata });
  const again = await graphOf(new MemoryStore()).execute(final);
  expect(again).toMatchObject({ startedAt: time(2), metadata, step: 1 });
});
