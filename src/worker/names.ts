import { ConfigError, show } from "../errors.js";

/** The queue's name for a graph. A queue name has no colon, and on Postgres no character 0. */
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
/** The id of a scheduled job. */
const SCHEDULED = /^repeat:[^:]+:\d+$/;
const NUMBER = /^-?\d+$/;

/** The id of a run's job: the run's id, escaped where the queue would reject it. No two runs share one. */
export function jobIdOf(runId: string): string {
  if (SCHEDULED.test(runId)) return runId;
  const isRefused = runId.includes(":") || NUMBER.test(runId) || runId.startsWith(ESCAPED);
  if (!isRefused) return runId;
  return ESCAPED + runId.replaceAll("%", "%25").replaceAll(":", "%3A");
}

/** The run of a job. */
export function runIdOf(jobId: string): string {
  if (!jobId.startsWith(ESCAPED)) return jobId;
  return jobId.slice(ESCAPED.length).replaceAll("%3A", ":").replaceAll("%25", "%");
}
