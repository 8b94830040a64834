import type { DrawnNode } from "./model.js";

/** Where something is drawn: its top left corner and its size. */
export interface Box {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

/** A place on the plane. */
export interface Point {
  readonly x: number;
  readonly y: number;
}

/** An edge on the plane. */
export interface Line {
  /** Its corners, from its source to its target. */
  readonly points: readonly Point[];
  /** The middle of its label. */
  readonly label: Point | undefined;
}

/** A drawing on the plane. */
export interface Layout {
  readonly width: number;
  readonly height: number;
  readonly boxes: ReadonlyMap<string, Box>;
  /** In the order of the drawing's edges. */
  readonly lines: readonly Line[];
  /** Boxes around nodes that share their edges. */
  readonly frames: readonly Box[];
}

/** Below this scale, names can't be read. */
export const READABLE = 0.65;

/** The space around a drawing. */
export const MARGIN = 16;
/** Room for the name of a group above what is in it. */
export const GROUP_HEAD = 24;

const NODE_HEIGHT = 32;
const POINT_SIZE = 12;

/** How large a node is drawn. */
export function sizeOf({ label, kind, visits }: DrawnNode): { width: number; height: number } {
  if (kind === "start" || kind === "end") return { width: POINT_SIZE, height: POINT_SIZE };
  const often = visits > 1 ? 8 + widthOf(`×${"0".repeat(digits(visits))}`) : 0;
  return { width: Math.min(220, 44 + widthOf(label)) + often, height: NODE_HEIGHT };
}

/** How many digits a count has; a node grows only when it needs more. */
export function digits(count: number): number {
  return String(count).length;
}

let context: CanvasRenderingContext2D | null | undefined;

/** How wide a text is drawn. */
export function widthOf(text: string): number {
  context ??= document.createElement("canvas").getContext("2d");
  if (context === null) return text.length * 7;
  context.font = "13px system-ui, sans-serif";
  return context.measureText(text.slice(0, 60)).width;
}

/** The `d` of an SVG path through points, with its corners rounded. */
export function pathOf(points: readonly Point[]): string {
  const [first, ...rest] = points;
  const last = rest.pop();
  if (first === undefined || last === undefined) return "";
  const at = ({ x, y }: Point): string => `${round(x)},${round(y)}`;
  const parts = [`M${at(first)}`];
  for (const [index, point] of rest.entries()) {
    const next = rest[index + 1] ?? last;
    parts.push(`Q${at(point)} ${at({ x: (point.x + next.x) / 2, y: (point.y + next.y) / 2 })}`);
  }
  parts.push(`L${at(last)}`);
  return parts.join(" ");
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}

/** A layout elsewhere on the plane. */
export function moved(layout: Layout, by: Point): Layout {
  const move = <T extends Point>(point: T): T => ({
    ...point,
    x: point.x + by.x,
    y: point.y + by.y,
  });
  return {
    width: layout.width,
    height: layout.height,
    boxes: new Map([...layout.boxes].map(([id, box]) => [id, move(box)])),
    lines: layout.lines.map(({ points, label }) => ({
      points: points.map(move),
      label: label && move(label),
    })),
    frames: layout.frames.map(move),
  };
}
