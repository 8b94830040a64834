import type { ComponentChildren, JSX } from "preact";
import type { RunView } from "../../../api.js";
import { href } from "../../address.js";
import { count, duration, moment } from "../../format.js";
import { Command, Copy } from "../../parts/command.js";
import { Section } from "../../parts/section.js";
import { RunLink } from "../../runs/runs-table.js";

/** What a run belongs to, where it runs, and how it is named. */
export function DetailsSection({ view }: { readonly view: RunView }): JSX.Element {
  const { run, next, parent, topology } = view;
  const metadata = Object.entries(run.metadata);
  return (
    <Section title="Details" kind="details">
      <dl class="pairs">
        <Pair name="Run">
          <span class="mono">{run.runId}</span> <Copy text={run.runId} label="Copy the run's id" />
        </Pair>
        <Pair name="Graph">
          <a href={href(["runs"], { graph: run.graph })}>{run.graph || "none"}</a>
        </Pair>
        {parent !== null && (
          <Pair name="Forked from">
            <RunLink runId={parent.runId} />
          </Pair>
        )}
        <Pair name="Started">{moment(run.startedAt)}</Pair>
        <Pair name="Last saved">{moment(run.savedAt)}</Pair>
        <Pair name="Worked">
          {duration(view.workedMs)} of {duration(run.elapsedMs)}
        </Pair>
        <Pair name="Resumed">
          {view.resumes === 0 && view.crashes === 0
            ? "never"
            : `${count(Math.max(view.resumes, view.crashes))} times, ${count(view.crashes)} after a crash`}
        </Pair>
        <Pair name="Worked on by">
          {next.holder === null ? (
            run.live === null ? (
              "the store can't say"
            ) : (
              "nobody"
            )
          ) : (
            <span>
              process {next.holder.pid} on {next.holder.host}
            </span>
          )}
        </Pair>
        {view.checkpointId !== null && (
          <Pair name="Checkpoint">
            <span class="mono">{view.checkpointId}</span>{" "}
            <Copy text={view.checkpointId} label="Copy the checkpoint's id" />
          </Pair>
        )}
        {next.command !== null && (
          <Pair name="From a terminal">
            <Command command={next.command} />
          </Pair>
        )}
      </dl>
      <div class="details-more">
        {metadata.length > 0 && (
          <div>
            <h3>Metadata</h3>
            <dl class="pairs">
              {metadata.map(([key, value]) => (
                <Pair key={key} name={key}>
                  <a class="mono" href={href(["runs"], { metadata: `${key}=${value}` })}>
                    {String(value)}
                  </a>
                </Pair>
              ))}
            </dl>
          </div>
        )}
        {topology !== null && (
          <div>
            <h3>Settings</h3>
            <dl class="pairs">
              <Pair name="version">{String(topology.version)}</Pair>
              <Pair name="fingerprint">
                <span class="mono">{topology.fingerprint}</span>
              </Pair>
              {Object.entries(view.config).map(([key, value]) => (
                <Pair key={key} name={key}>
                  <span class="mono">{String(value)}</span>
                </Pair>
              ))}
            </dl>
          </div>
        )}
      </div>
    </Section>
  );
}

function Pair({
  name,
  children,
}: {
  readonly name: string;
  readonly children: ComponentChildren;
}): JSX.Element {
  return (
    <>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </>
  );
}
