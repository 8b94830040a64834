import type { JSX } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { RunView } from "../../../api.js";
import { Icon } from "../../parts/icon.js";
import { Section } from "../../parts/section.js";
import { StatusShape, statusWord } from "../../parts/status.js";
import { type Box, digits, type Layout, layoutOf } from "./layout.js";
import {
  type Drawing,
  type DrawnEdge,
  type DrawnGroup,
  type DrawnNode,
  drawingOf,
} from "./model.js";
import { useViewport } from "./viewport.js";

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
  const current = drawing.nodes.find(({ mark }) => mark !== "none" && mark !== "completed");
  const focus = layout.boxes.get(current?.id ?? drawing.nodes[0]?.id ?? "");
  const { view: at, zoom, fit, onPointerDown } = useViewport(panel, layout, focus);
  return (
    <Section
      title="Graph"
      kind="graph"
      note={view.topology === null && "as far as its steps show"}
      tools={
        <>
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
            class="plain square wide-only"
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
          class="plane"
          style={{
            width: `${layout.width}px`,
            height: `${layout.height}px`,
            transform: `translate(${at.x}px, ${at.y}px) scale(${at.scale})`,
          }}
        >
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
            />
          ))}
        </div>
      </div>
    </Section>
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
}: {
  readonly node: DrawnNode;
  readonly box: Box | undefined;
  readonly selected: boolean;
  readonly onSelect: (node: string) => void;
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
          d={layout.lines[index]?.path}
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
