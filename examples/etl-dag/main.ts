/**
 * Extract, transform, load, as tasks that declare their dependencies. `dag` arranges them in layers: the tasks
 * of a layer run concurrently, and each layer is a checkpoint. One source is offline at first; the resume runs
 * that task and those that depend on it, and nothing that was done.
 *
 * Run it: npx tsx examples/etl-dag/main.ts
 */
import assert from "node:assert/strict";
import { setTimeout as wait } from "node:timers/promises";
import { dag, MemoryStore, State } from "waymark";

interface Customer {
  readonly id: number;
  readonly country: string;
}

interface Order {
  readonly customer: number;
  readonly amount: number;
  readonly currency: string;
}

/** The result of each task, under its name. */
interface Sales {
  readonly customers: readonly Customer[];
  readonly orders: readonly Order[];
  readonly rates: Readonly<Record<string, number>>;
  readonly validOrders: readonly Order[];
  readonly countries: ReadonlyMap<number, string>;
  readonly revenue: Readonly<Record<string, number>>;
  readonly largest: string;
  readonly loaded: number;
}

const nothing: Sales = {
  customers: [],
  orders: [],
  rates: {},
  validOrders: [],
  countries: new Map(),
  revenue: {},
  largest: "",
  loaded: 0,
};

const warehouse = new Map<string, number>();
let online = false;
let [running, most] = [0, 0];

/** Stands for a source that takes its time. */
async function extract<T>(rows: T): Promise<T> {
  most = Math.max(most, ++running);
  await wait(20);
  running--;
  return rows;
}

const graph = dag<Sales>(
  {
    customers: {
      run: () =>
        extract([
          { id: 1, country: "NO" },
          { id: 2, country: "NP" },
        ]),
    },
    orders: {
      run: () =>
        extract([
          { customer: 1, amount: 100, currency: "NOK" },
          { customer: 2, amount: 30, currency: "EUR" },
          { customer: 2, amount: -1, currency: "EUR" },
          { customer: 1, amount: 250, currency: "NOK" },
        ]),
    },
    rates: {
      run: async () => {
        await wait(40);
        if (!online) throw new Error("the bank is offline");
        return extract({ EUR: 1, NOK: 0.1 });
      },
    },
    validOrders: {
      dependsOn: ["orders"],
      run: ({ data }) => data.orders.filter((order) => order.amount > 0),
    },
    countries: {
      dependsOn: ["customers"],
      run: ({ data }) => new Map(data.customers.map(({ id, country }) => [id, country])),
    },
    revenue: {
      dependsOn: ["validOrders", "countries", "rates"],
      run: ({ data }) => {
        const sums: Record<string, number> = {};
        for (const { customer, amount, currency } of data.validOrders) {
          const country = data.countries.get(customer) ?? "?";
          sums[country] = (sums[country] ?? 0) + amount * (data.rates[currency] ?? Number.NaN);
        }
        return sums;
      },
    },
    largest: {
      dependsOn: ["revenue"],
      run: ({ data }) =>
        Object.entries(data.revenue).sort(([, one], [, other]) => other - one)[0]?.[0] ?? "",
    },
    loaded: {
      dependsOn: ["revenue"],
      run: ({ data }) => {
        // By its key, so that a second time changes nothing.
        for (const [country, eur] of Object.entries(data.revenue)) warehouse.set(country, eur);
        return warehouse.size;
      },
    },
  },
  { name: "sales", checkpoint: { store: new MemoryStore(), interval: 1, preserve: true } },
);

/** How many tasks a layer had to work on, in the order they came. */
const worked: string[] = [];
graph
  .on("parallel.start", ({ data }) => {
    worked.push(`${data.total - data.completed} of ${data.total}`);
    const before = data.completed > 0 ? ` (${data.completed} of ${data.total} were done)` : "";
    console.log(`  ${data.node}${before}`);
  })
  .on("parallel.complete", ({ data }) => {
    if (data.error !== undefined) console.log(`    failed: ${data.error}`);
  });

console.log("At night");
const start = State.create(nothing, { runId: "sales-of-monday" });
await assert.rejects(graph.execute(start), /the bank is offline/);

console.log("In the morning");
online = true;
const final = await graph.resume("sales-of-monday");

console.log("Revenue in EUR");
for (const [country, eur] of Object.entries(final.data.revenue)) {
  console.log(`  ${country}  ${eur.toFixed(2)}`);
}
console.log(`\n${graph.toMermaid({ state: final })}`);

assert.deepEqual(worked, ["3 of 3", "1 of 3", "2 of 2", "1 of 1", "2 of 2"]);
assert.equal(most, 2, "the sources were read at once");
assert.deepEqual(final.data.revenue, { NO: 35, NP: 30 });
assert.equal(final.data.largest, "NO");
assert.deepEqual([...warehouse.keys()].sort(), ["NO", "NP"]);
