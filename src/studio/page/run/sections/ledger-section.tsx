import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { RunView } from "../../../api.js";
import { count, money, percent } from "../../format.js";
import { Section } from "../../parts/section.js";
import { Time } from "../../runs/columns.js";
import { preview } from "../../values/tagged.js";

type Ledger = RunView["ledger"];
type Usage = Ledger["usage"];

const PART = 10;

/** The usage, decisions, agents and outputs of a run. */
export function LedgerSection({
  view,
  now,
  onSelect,
}: {
  readonly view: RunView;
  readonly now: number;
  readonly onSelect: (node: string) => void;
}): JSX.Element {
  const [most, setMost] = useState(PART);
  const { ledger } = view;
  const older = ledger.decisions.length - most;
  const nodes = Object.entries(ledger.nodes);
  const agents = Object.entries(ledger.agents);
  const outputs = Object.entries(ledger.outputs);
  const isEmpty = nodes.length + ledger.decisions.length + agents.length + outputs.length === 0;
  return (
    <Section
      title="Ledger"
      kind="ledger"
      note={[
        ledger.confidence !== null && `confidence ${percent(ledger.confidence)}`,
        view.repeated.visits > 0 &&
          ` ${count(view.repeated.visits)} visits were lost and done again, for ${money(view.repeated.usage.costUsd)}`,
      ]}
    >
      {isEmpty && (
        <p class="muted nothing">
          Nothing was recorded. Nodes write here with <code class="mono">context.ledger</code>.
        </p>
      )}
      {nodes.length > 0 && <UsageTable ledger={ledger} nodes={nodes} onSelect={onSelect} />}
      {ledger.decisions.length > 0 && (
        <>
          <h3>Decisions</h3>
          <ol class="decisions" reversed>
            {ledger.decisions
              .slice(-most)
              .reverse()
              .map((decision) => (
                <li key={`${decision.timestamp} ${decision.description}`}>
                  <p>
                    <strong>{decision.description}</strong>
                    {decision.confidence !== undefined && (
                      <span class="confidence" title={`confidence ${decision.confidence}`}>
                        {percent(decision.confidence)}
                      </span>
                    )}
                  </p>
                  {decision.rationale !== undefined && <p>{decision.rationale}</p>}
                  <p class="muted">
                    {[decision.type, decision.agent, decision.node].filter(Boolean).join(" · ")}{" "}
                    <Time time={decision.timestamp} now={now} />
                    {decision.alternatives !== undefined && decision.alternatives.length > 0 && (
                      <> · instead of {decision.alternatives.join(", ")}</>
                    )}
                  </p>
                </li>
              ))}
          </ol>
          {older > 0 && (
            <button type="button" class="plain more" onClick={() => setMost(most + PART * 10)}>
              {count(older)} older
            </button>
          )}
        </>
      )}
      {agents.length > 0 && <Agents agents={agents} />}
      {outputs.length > 0 && (
        <>
          <h3>Outputs</h3>
          <dl class="pairs">
            {outputs.map(([name, { ref, node }]) => (
              <>
                <dt key={name}>{name}</dt>
                <dd>
                  <span class="mono">{preview(ref, 200)}</span> <span class="muted">by {node}</span>
                </dd>
              </>
            ))}
          </dl>
        </>
      )}
    </Section>
  );
}

function UsageTable({
  ledger,
  nodes,
  onSelect,
}: {
  readonly ledger: Ledger;
  readonly nodes: readonly (readonly [string, Usage])[];
  readonly onSelect: (node: string) => void;
}): JSX.Element {
  const counters = [...new Set(nodes.flatMap(([, { counters: own }]) => Object.keys(own)))].sort();
  const most = Math.max(0, ...nodes.map(([, { costUsd }]) => costUsd));
  const cells = ({ inputTokens, outputTokens, costUsd, counters: own }: Usage): JSX.Element => (
    <>
      <td class="number">{count(inputTokens)}</td>
      <td class="number">{count(outputTokens)}</td>
      {counters.map((name) => (
        <td key={name} class="number">
          {count(own[name])}
        </td>
      ))}
      <td class="number">{money(costUsd)}</td>
    </>
  );
  return (
    <div class="table-wrap">
      <table aria-label="Usage by node">
        <thead>
          <tr>
            <th scope="col">Node</th>
            <th scope="col" class="number">
              Tokens in
            </th>
            <th scope="col" class="number">
              Tokens out
            </th>
            {counters.map((name) => (
              <th key={name} scope="col" class="number">
                {name}
              </th>
            ))}
            <th scope="col" class="number">
              Cost
            </th>
            <th scope="col" class="share-head">
              <span class="unseen">Share</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {nodes.map(([name, usage]) => (
            <tr key={name}>
              <th scope="row">
                <button type="button" class="row-button" onClick={() => onSelect(name)}>
                  {name}
                </button>
              </th>
              {cells(usage)}
              <td class="share">
                <span style={{ width: `${most === 0 ? 0 : (usage.costUsd / most) * 100}%` }} />
              </td>
            </tr>
          ))}
        </tbody>
        <tfoot>
          <tr>
            <th scope="row">Whole run</th>
            {cells(ledger.usage)}
            <td />
          </tr>
        </tfoot>
      </table>
    </div>
  );
}

function Agents({
  agents,
}: {
  readonly agents: readonly (readonly [string, Ledger["agents"][string]])[];
}) {
  return (
    <>
      <h3>Agents</h3>
      <div class="table-wrap">
        <table aria-label="Agents">
          <thead>
            <tr>
              <th scope="col">Agent</th>
              <th scope="col">Status</th>
              <th scope="col" class="number">
                Confidence
              </th>
              <th scope="col">Last decision</th>
              <th scope="col">Blocked by</th>
            </tr>
          </thead>
          <tbody>
            {agents.map(([id, agent]) => (
              <tr key={id}>
                <th scope="row">{id}</th>
                <td>{agent.status ?? "–"}</td>
                <td class="number">
                  {agent.confidence === undefined ? "–" : percent(agent.confidence)}
                </td>
                <td>{agent.lastDecision ?? "–"}</td>
                <td>{agent.blockers?.join(", ") || "–"}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}
