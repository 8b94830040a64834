import type { ComponentChildren, JSX } from "preact";
import type { RequestFailure } from "../client/http.js";
import { Command } from "./command.js";
import { Icon, type IconName } from "./icon.js";
import { LongText } from "./long-text.js";

/** A place where there is nothing to show: what that means, and what to do. */
export function Blank({
  icon,
  title,
  children,
}: {
  readonly icon: IconName;
  readonly title: string;
  readonly children?: ComponentChildren;
}): JSX.Element {
  return (
    <div class="blank">
      <Icon name={icon} />
      <h2>{title}</h2>
      {children}
    </div>
  );
}

/** Lines that stand for what is on its way. They appear only if it takes a while. */
export function Loading({ lines = 6 }: { readonly lines?: number }): JSX.Element {
  return (
    <div class="loading" role="status" aria-label="Loading">
      {Array.from({ length: lines }, (_, index) => (
        <span key={index} class={`line w${(index * 7) % 5}`} />
      ))}
    </div>
  );
}

const titles: Readonly<Record<RequestFailure["kind"], string>> = {
  unauthorized: "The studio does not know you",
  forbidden: "Not allowed",
  missing: "Not found",
  conflict: "The run is elsewhere by now",
  corrupt: "The checkpoint is corrupt",
  offline: "The studio does not answer",
  failed: "That did not work",
};

/** A request that failed: why, and what to do. */
export function Failed({
  failure,
  onRetry,
}: {
  readonly failure: RequestFailure;
  readonly onRetry?: () => void;
}): JSX.Element {
  const { kind, message, help, expected, actual } = failure;
  return (
    <div class="blank" role="alert">
      <Icon name={kind === "offline" ? "lost" : "warning"} />
      <h2>{titles[kind]}</h2>
      <p>
        <LongText text={message} />
      </p>
      {expected !== undefined && (
        <dl class="pairs">
          <dt>Expected</dt>
          <dd class="mono">{expected}</dd>
          <dt>Found</dt>
          <dd class="mono">{actual}</dd>
        </dl>
      )}
      {help !== undefined && <p class="muted">{help}</p>}
      {kind === "corrupt" && <Command command="waymark validate" />}
      {onRetry !== undefined && kind !== "forbidden" && (
        <button type="button" onClick={onRetry}>
          Try again
        </button>
      )}
    </div>
  );
}

/** The short form of a failure, beside what caused it. */
export function Problem({ failure }: { readonly failure: RequestFailure }): JSX.Element {
  return (
    <div class="problem" role="alert">
      <p>
        <strong>{titles[failure.kind]}.</strong> {failure.message}
      </p>
      {failure.issues.length > 0 && (
        <ul>
          {failure.issues.map(({ path, message }) => (
            <li key={path}>
              <span class="mono">{path}</span> {message}
            </li>
          ))}
        </ul>
      )}
      {failure.help !== undefined && <p class="muted">{failure.help}</p>}
    </div>
  );
}
