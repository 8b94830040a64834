import type { JSX } from "preact";

/** Chooses one of some graphs, or all of them: `""`. */
export function GraphSelect({
  names,
  value,
  onChange,
}: {
  readonly names: readonly string[];
  readonly value: string;
  readonly onChange: (name: string) => void;
}): JSX.Element {
  // A link may lead to a graph that the list does not have.
  const offered = [...new Set([...names, value])].filter((name) => name !== "").sort();
  return (
    <select
      aria-label="Graph"
      value={value}
      onChange={(event) => onChange(event.currentTarget.value)}
    >
      <option value="">all graphs</option>
      {offered.map((name) => (
        <option key={name} value={name}>
          {name}
        </option>
      ))}
    </select>
  );
}
