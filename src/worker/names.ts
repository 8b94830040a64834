import { ConfigError, show } from "../errors.js";

/** The queue of a graph. Queue names have no colon, and on Postgres none has the character 0. */
export function queueName(graph: string): string {
  if (graph.includes("\0")) {
    throw new ConfigError("graph", `has the character 0 in its name, ${show(graph)}`);
  }
  try {
    return `waymark-${encodeURIComponent(graph)}`;
  } catch {
    throw new ConfigError("graph", `has half a surrogate pair in its name, ${show(graph)}`);
  }
}

const ESCAPED = "~";
/** The id of a job that a schedule made. */
const SCHEDULED = /^repeat:[^:]+:\d+$/;
const NUMBER = /^-?\d+$/;

/** The id of a run's job: the run's id, but for those that the queue refuses. No two runs have the same. */
export function jobIdOf(runId: string): string {
  if (SCHEDULED.test(runId)) return runId;
  const isRefused = runId.includes(":") || NUMBER.test(runId) || runId.startsWith(ESCAPED);
  if (!isRefused) return runId;
  return ESCAPED + runId.replaceAll("%", "%25").replaceAll(":", "%3A");
}

/** The run that a job is of. */
export function runIdOf(jobId: string): string {
  if (!jobId.startsWith(ESCAPED)) return jobId;
  return jobId.slice(ESCAPED.length).replaceAll("%3A", ":").replaceAll("%25", "%");
}
