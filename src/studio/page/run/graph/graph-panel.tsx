import type { JSX } from "preact";
import { useEffect, useId, useMemo, useRef, useState } from "preact/hooks";
import type { RunView } from "../../../api.js";
import { Icon } from "../../parts/icon.js";
import { Section } from "../../parts/section.js";
import { StatusShape, statusWord } from "../../parts/status.js";
import { layoutOf } from "./layout.js";
import {
  type Drawing,
  type DrawnEdge,
  type DrawnGroup,
  type DrawnNode,
  drawingOf,
} from "./model.js";
import { type Box, digits, type Layout, pathOf, READABLE } from "./plane.js";
import { useViewport } from "./viewport.js";

/** A graph of more nodes has a field to find one. */
const FEW = 12;

/** The graph of a run, with how far the run is. */
export function GraphPanel(props: GraphProps): JSX.Element {
  const { view } = props;
  const drawing = useMemo(() => drawingOf(view), [view]);
  if (drawing.nodes.length > 0) return <DrawnGraph {...props} drawing={drawing} />;
  return (
    <Section title="Graph" kind="graph">
      <p class="muted nothing">No graph has run this State yet.</p>
    </Section>
  );
}

interface GraphProps {
  readonly view: RunView;
  /** The selected node. */
  readonly selected: string;
  readonly onSelect: (node: string) => void;
  readonly large: boolean;
  readonly onLarge: () => void;
}

function DrawnGraph({
  view,
  drawing,
  selected,
  onSelect,
  large,
  onLarge,
}: GraphProps & { readonly drawing: Drawing }): JSX.Element {
  const panel = useRef<HTMLDivElement>(null);
  const room = useRoom(panel);
  const structure = JSON.stringify([
    drawing.nodes.map(({ id, visits }) => [id, visits > 1 && digits(visits)]),
    drawing.edges.map(({ from, to }) => [from, to]),
  ]);
  // What a run does changes colours, not places.
  const layout = useMemo(() => layoutOf(drawing, room), [structure, room]);
  const current =
    drawing.nodes.find(({ mark }) => mark !== "none" && mark !== "completed") ??
    drawing.nodes.find(({ node }) => node !== "" && node === view.run.node);
  const focus = layout.boxes.get(current?.id ?? drawing.nodes[0]?.id ?? "");
  const { view: at, zoom, fit, reveal, onPointerDown } = useViewport(panel, layout, focus);
  const chosen = drawing.nodes.find(({ node }) => node !== "" && node === selected);
  // What is selected in the timeline or the history is moved into sight.
  useEffect(() => reveal(layout.boxes.get(chosen?.id ?? "")), [selected]);
  const names = drawing.nodes.filter(({ node }) => node !== "");
  return (
    <Section
      title="Graph"
      kind="graph"
      note={view.topology === null && "as far as its steps show"}
      tools={
        <>
          {names.length > FEW && (
            <FindNode
              nodes={names}
              onFind={({ id, node }) => {
                onSelect(node);
                reveal(layout.boxes.get(id));
              }}
            />
          )}
          <button
            type="button"
            class="plain square"
            aria-label="Zoom out"
            onClick={() => zoom(1 / 1.3)}
          >
            <Icon name="minus" />
          </button>
          <button type="button" class="plain square" aria-label="Zoom in" onClick={() => zoom(1.3)}>
            <Icon name="plus" />
          </button>
          <button type="button" class="plain" onClick={fit}>
            Fit
          </button>
          <button
            type="button"
            class="plain square"
            aria-label={large ? "Smaller graph" : "Larger graph"}
            aria-pressed={large}
            onClick={onLarge}
          >
            <Icon name="fit" />
          </button>
        </>
      }
    >
      <div class="canvas" ref={panel} onPointerDown={onPointerDown}>
        <div
          class={`plane ${at.scale < READABLE * 0.8 ? "far" : ""}`}
          style={{
            width: `${layout.width}px`,
            height: `${layout.height}px`,
            transform: `translate(${at.x}px, ${at.y}px) scale(${at.scale})`,
          }}
        >
          {layout.frames.map((box, index) => (
            <div key={index} class="group" style={placed(box)} />
          ))}
          {drawing.groups.map((group) => (
            <Group
              key={group.id}
              group={group}
              box={layout.boxes.get(group.id)}
              onSelect={onSelect}
            />
          ))}
          <Edges edges={drawing.edges} layout={layout} />
          {drawing.nodes.map((node) => (
            <Node
              key={node.id}
              node={node}
              box={layout.boxes.get(node.id)}
              selected={node.node !== "" && node.node === selected}
              onSelect={onSelect}
              onFocus={() => reveal(layout.boxes.get(node.id))}
            />
          ))}
        </div>
      </div>
    </Section>
  );
}

/** A field with the names of all nodes, for a graph that is larger than its panel. */
function FindNode({
  nodes,
  onFind,
}: {
  readonly nodes: readonly DrawnNode[];
  readonly onFind: (node: DrawnNode) => void;
}): JSX.Element {
  const id = useId();
  const find = (text: string, isWhole: boolean): void => {
    const wanted = text.trim().toLowerCase();
    const found =
      nodes.find(({ label }) => label.toLowerCase() === wanted) ??
      (isWhole ? undefined : nodes.find(({ label }) => label.toLowerCase().includes(wanted)));
    if (found !== undefined && wanted !== "") onFind(found);
  };
  return (
    <>
      <input
        type="search"
        class="find-node"
        aria-label="Find a node"
        placeholder="Find a node"
        list={id}
        autocomplete="off"
        spellcheck={false}
        onInput={({ currentTarget }) => find(currentTarget.value, true)}
        onKeyDown={(event) => event.key === "Enter" && find(event.currentTarget.value, false)}
      />
      <datalist id={id}>
        {nodes.map(({ id: key, label }) => (
          <option key={key} value={label} />
        ))}
      </datalist>
    </>
  );
}

/** The size of an element; only large changes count, so that nothing jumps. */
function useRoom(panel: { readonly current: HTMLElement | null }): {
  width: number;
  height: number;
} {
  const [room, setRoom] = useState({ width: 640, height: 320 });
  useEffect(() => {
    const element = panel.current;
    if (element === null) return;
    const observer = new ResizeObserver(() => {
      const { clientWidth: width, clientHeight: height } = element;
      setRoom((before) =>
        Math.abs(before.width - width) + Math.abs(before.height - height) < 80
          ? before
          : { width, height },
      );
    });
    observer.observe(element);
    return () => observer.disconnect();
  }, [panel]);
  return room;
}

function placed({ x, y, width, height }: Box): Record<string, string> {
  return { left: `${x}px`, top: `${y}px`, width: `${width}px`, height: `${height}px` };
}

function Node({
  node,
  box,
  selected,
  onSelect,
  onFocus,
}: {
  readonly node: DrawnNode;
  readonly box: Box | undefined;
  readonly selected: boolean;
  readonly onSelect: (node: string) => void;
  readonly onFocus: () => void;
}): JSX.Element | null {
  if (box === undefined) return null;
  const { label, kind, mark, visits } = node;
  if (kind === "start" || kind === "end") {
    return (
      <span class={`point ${kind}`} style={placed(box)} role="img" aria-label={kind} title={kind} />
    );
  }
  const often = visits > 1 ? ` ×${visits}` : "";
  return (
    <button
      type="button"
      class={`node ${mark} ${kind}`}
      style={placed(box)}
      aria-pressed={selected}
      aria-label={`${label}${often}: ${statusWord(mark)}`}
      title={label}
      onClick={() => onSelect(node.node)}
      onFocus={(event) => event.currentTarget.matches(":focus-visible") && onFocus()}
    >
      <StatusShape mark={mark} />
      <span class="cut">{label}</span>
      {visits > 1 && <span class="visits">×{visits}</span>}
    </button>
  );
}

function Group({
  group,
  box,
  onSelect,
}: {
  readonly group: DrawnGroup;
  readonly box: Box | undefined;
  readonly onSelect: (node: string) => void;
}): JSX.Element | null {
  if (box === undefined) return null;
  const { label, mark, visits } = group;
  return (
    <div class={`group ${mark}`} style={placed(box)}>
      <button
        type="button"
        class="plain"
        aria-label={`${label}${visits > 1 ? ` ×${visits}` : ""}: ${statusWord(mark)}`}
        onClick={() => onSelect(group.node)}
      >
        <span class="cut">{label}</span>
        {visits > 1 && <span class="visits">×{visits}</span>}
      </button>
    </div>
  );
}

function Edges({
  edges,
  layout,
}: {
  readonly edges: readonly DrawnEdge[];
  readonly layout: Layout;
}): JSX.Element {
  const kindOf = ({ next, taken }: DrawnEdge): string => (next ? "next" : taken > 0 ? "taken" : "");
  return (
    <svg class="edges" width={layout.width} height={layout.height} aria-hidden="true">
      <defs>
        {["", "taken", "next"].map((kind) => (
          <marker
            key={kind}
            id={`arrow-${kind}`}
            class={`arrow ${kind}`}
            viewBox="0 0 8 8"
            refX="7"
            refY="4"
            markerWidth="8"
            markerHeight="8"
            markerUnits="userSpaceOnUse"
            orient="auto"
          >
            <path d="M0 0.5L8 4L0 7.5z" />
          </marker>
        ))}
      </defs>
      {edges.map((edge, index) => (
        <path
          key={`${edge.from} ${edge.to} ${edge.label}`}
          class={`edge ${kindOf(edge)}`}
          d={pathOf(layout.lines[index]?.points ?? [])}
          marker-end={`url(#arrow-${kindOf(edge)})`}
        />
      ))}
      {/* Above all lines, so that none crosses out a name. */}
      {edges.map((edge, index) => {
        const at = layout.lines[index]?.label;
        if (at === undefined) return null;
        return (
          <text
            key={`${edge.from} ${edge.to} ${edge.label}`}
            class={kindOf(edge)}
            x={at.x}
            y={at.y}
          >
            {edge.label.length > 32 ? `${edge.label.slice(0, 32)}…` : edge.label}
          </text>
        );
      })}
    </svg>
  );
}
