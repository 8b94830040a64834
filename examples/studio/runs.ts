import { randomUUID } from "node:crypto";
import { readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type CheckpointStore, State } from "waymark";
import {
  articleGraph,
  importGraph,
  newArticle,
  onboardingGraph,
  refundGraph,
  type Setting,
} from "./graphs.js";

/** The graphs of the sample runs. */
export function graphsOf(setting: Setting) {
  return {
    article: articleGraph(setting),
    refund: refundGraph(setting),
    import: importGraph(setting),
    onboarding: onboardingGraph(setting),
  };
}

/** Makes runs of every kind: completed, failed, paused, forked, of a dag, with a graph inside. */
export async function makeRuns(setting: Setting): Promise<void> {
  const { article, refund, import: nightly, onboarding } = graphsOf(setting);
  const named = (runId: string, customer: string) => ({
    runId,
    metadata: { customer, region: "eu" },
  });
  await Promise.all([
    article.execute(State.create(newArticle("cairns"), named("article-cairns", "acme"))),
    article
      .execute(State.create(newArticle("avalanches"), named("article-avalanches", "acme")))
      .catch(() => "it is meant to fail"),
    refund.execute(
      State.create(
        { order: "A-1043", eur: 40, approval: undefined, paid: false },
        named("refund-A-1043", "globex"),
      ),
    ),
    refund.execute(
      State.create(
        { order: "A-1077", eur: 310, approval: undefined, paid: false },
        named("refund-A-1077", "initech"),
      ),
    ),
    nightly.execute(
      State.create(
        { customers: 0, orders: 0, rates: 0, matched: 0, converted: 0, report: "" },
        { runId: "import-tuesday" },
      ),
    ),
    onboarding.execute(
      State.create({ company: "Acme", verified: false, account: "" }, { runId: "onboarding-acme" }),
    ),
  ]);
  await article.fork("article-cairns", { step: 3 }, { topic: "cairns and trolls" });
}

/** Damages the newest checkpoint of a run in a folder, as a failing disk would. */
export async function damage(root: string, runId: string): Promise<void> {
  const files = (await readdir(join(root, runId))).filter((name) => name.startsWith("checkpoint_"));

  for (const file of files) await writeFile(join(root, runId, file), '{"waymark":1,"data":{"to');
}

/** Copies of runs as if they had been made on the days before, so that figures have something to show. */
export async function makePast(
  store: CheckpointStore,
  days: number,
  perDay: number,
): Promise<void> {
  const samples = await Promise.all(
    [
      "article-cairns",
      "article-cairns",
      "article-cairns",
      "article-avalanches",
      "import-tuesday",
    ].map((runId) => store.load<object>(runId)),
  );
  for (let day = 1; day <= days; day++) {
    const count = Math.round(perDay * (0.6 + 0.4 * Math.abs(Math.sin(day * 1.7))));
    for (let index = 0; index < count; index++) {
      const sample = samples[(day * 7 + index * 3) % samples.length];
      const back = day * 86_400_000 - index * 1_800_000;
      if (sample !== undefined) await store.import?.([{ state: aged(sample, back), parentId: "" }]);
    }
  }
}

/** A State under another name, with all its times so much earlier. */
function aged(state: State<object>, ms: number): State<object> {
  const runId = `${state.runId}-${randomUUID().slice(0, 8)}`;
  const json = JSON.stringify({ ...state.toJSON(), runId, checkpointId: randomUUID() });
  const earlier = json.replace(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/g, (time) =>
    new Date(Date.parse(time) - ms).toISOString(),
  );
  return State.fromJSON(earlier);
}
