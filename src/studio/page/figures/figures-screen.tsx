import type { JSX } from "preact";
import type { Figures, GraphFigures } from "../../api.js";
import { amend, href } from "../address.js";
import { useGet } from "../client/hooks.js";
import { count, duration, money, percent, short } from "../format.js";
import { Fact } from "../parts/fact.js";
import { GraphSelect } from "../parts/graph-select.js";
import { Section } from "../parts/section.js";
import { Blank, Failed, Loading } from "../parts/states.js";
import { useStudio } from "../studio.js";
import { costBar, failureBar, filledDays, runsBar } from "./days.js";
import { BarPlot, ValuePlot } from "./plots.js";

/** What the runs of each graph came to. */
export function FiguresScreen({ query }: { readonly query: URLSearchParams }): JSX.Element {
  const { session } = useStudio();
  const graph = query.get("graph") ?? "";
  const path = graph === "" ? "figures" : `figures?graph=${encodeURIComponent(graph)}`;
  const { data, failure, reload } = useGet<Figures>(path);
  return (
    <div class="figures">
      <header class="screen-head">
        <h1>Figures</h1>
        <GraphSelect
          names={session.graphs.map(({ name }) => name)}
          value={graph}
          onChange={(name) => amend({ graph: name })}
        />
        <button type="button" class="plain" onClick={reload}>
          Refresh
        </button>
        {data?.more && <span class="muted">of the newest 10,000 runs</span>}
      </header>
      {failure !== undefined && data === undefined && <Failed failure={failure} onRetry={reload} />}
      {data === undefined && failure === undefined && <Loading lines={10} />}
      {data?.graphs.length === 0 && (
        <Blank icon="figures" title="No runs to count">
          <p class="muted">Figures are made of the runs in {session.store}.</p>
        </Blank>
      )}
      {data?.graphs.map((figures) => (
        <GraphPlots key={figures.graph} figures={figures} />
      ))}
    </div>
  );
}

const MOST_NODES = 12;

function GraphPlots({ figures }: { readonly figures: GraphFigures }): JSX.Element {
  const { graph, runs, failureRate, elapsed, costUsd, sampled, nodes, statuses } = figures;
  const failed = statuses.failed ?? 0;
  const slowest = [...nodes].sort((a, b) => b.p95Ms - a.p95Ms).slice(0, MOST_NODES);
  const dearest = figures.dearest.flatMap((name) => nodes.find(({ node }) => node === name) ?? []);
  const failing = nodes.filter(({ failures }) => failures > 0);
  const days = filledDays(figures.days);
  return (
    <Section
      title={graph || "no graph"}
      kind="figure-set"
      note={sampled < runs && `times and costs of the newest ${count(sampled)} runs`}
    >
      <dl class="facts">
        <Fact name="Runs">
          <a href={href(["runs"], { graph })}>{count(runs)}</a>
        </Fact>
        <Fact name="Failed">
          {failed === 0 ? (
            "none"
          ) : (
            <a href={href(["runs"], { graph, status: "failed" })}>
              {count(failed)}
              {failureRate !== null && `, ${percent(failureRate)}`}
            </a>
          )}
        </Fact>
        <Fact name="p50">{duration(elapsed?.p50Ms)}</Fact>
        <Fact name="p95">{duration(elapsed?.p95Ms)}</Fact>
        <Fact name="Cost">{money(costUsd)}</Fact>
        <Fact name="Cost of a run">{sampled === 0 ? "–" : money(costUsd / sampled)}</Fact>
      </dl>
      <div class="plots">
        <BarPlot title="Runs a day" bars={days.map(runsBar)} format={short} />
        {failed > 0 && (
          <BarPlot title="Failure rate" bars={days.map(failureBar)} format={percent} />
        )}
        {costUsd > 0 && <BarPlot title="Cost a day" bars={days.map(costBar)} format={usd} />}
        {slowest.length > 0 && (
          <ValuePlot
            title="Slowest nodes, p50 and p95"
            values={slowest.map(({ node, p50Ms, p95Ms }) => ({
              label: node,
              value: p50Ms,
              most: p95Ms,
            }))}
            format={duration}
          />
        )}
        {dearest.some((node) => node.costUsd > 0) && (
          <ValuePlot
            title="Most expensive nodes"
            values={dearest.map((node) => ({ label: node.node, value: node.costUsd }))}
            format={money}
          />
        )}
        {failing.length > 0 && (
          <ValuePlot
            title="Where runs failed"
            values={failing
              .sort((a, b) => b.failures - a.failures)
              .slice(0, MOST_NODES)
              .map(({ node, failures }) => ({ label: node, value: failures }))}
            format={count}
          />
        )}
      </div>
    </Section>
  );
}

function usd(value: number): string {
  return value === 0 ? "$0" : money(value);
}
