import type { RefObject } from "preact";
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { type Box, type Layout, READABLE } from "./plane.js";

/** How the plane lies under the panel. */
export interface View {
  readonly x: number;
  readonly y: number;
  readonly scale: number;
}

const SMALLEST = 0.15;
const LARGEST = 2;

/** Moving and zooming by pointer, wheel and buttons. */
export function useViewport(
  panel: RefObject<HTMLDivElement | null>,
  layout: Layout,
  focus: Box | undefined,
): {
  readonly view: View;
  readonly zoom: (by: number) => void;
  readonly fit: () => void;
  /** Moves a box into sight, if it is not. */
  readonly reveal: (box: Box | undefined) => void;
  readonly onPointerDown: (event: PointerEvent) => void;
} {
  const [view, setView] = useState<View>({ x: 0, y: 0, scale: 1 });
  const size = `${layout.width} ${layout.height}`;
  const newest = useRef({ layout, focus });
  newest.current = { layout, focus };

  const fit = useCallback(() => {
    const element = panel.current;
    if (element !== null) setView(whole(newest.current.layout, element));
  }, [panel]);

  const reveal = useCallback(
    (box: Box | undefined) => {
      const element = panel.current;
      if (element === null || box === undefined) return;
      setView((before) =>
        isInSight(box, before, element)
          ? before
          : around(box, newest.current.layout, element, Math.max(before.scale, READABLE)),
      );
    },
    [panel],
  );

  // A graph of another size is looked at anew.
  useEffect(() => {
    const element = panel.current;
    if (element === null) return;
    const arrange = (): void => {
      const { layout: plane, focus: box } = newest.current;
      const all = whole(plane, element);
      const scale = Math.min(0.9, Math.max(READABLE, element.clientWidth / plane.width));
      const isSmall = all.scale < READABLE && box !== undefined;
      setView(isSmall ? around(box, plane, element, scale) : all);
    };
    const observer = new ResizeObserver(arrange);
    observer.observe(element);
    return () => observer.disconnect();
  }, [panel, size]);

  useEffect(() => {
    const element = panel.current;
    if (element === null) return;
    const onWheel = (event: WheelEvent): void => {
      // Without a key the wheel scrolls the page, as everywhere.
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      const bounds = element.getBoundingClientRect();
      const at = { x: event.clientX - bounds.left, y: event.clientY - bounds.top };
      setView((before) => zoomed(before, Math.exp(-event.deltaY / 200), at));
    };
    element.addEventListener("wheel", onWheel, { passive: false });
    return () => element.removeEventListener("wheel", onWheel);
  }, [panel]);

  const zoom = useCallback(
    (by: number) => {
      const element = panel.current;
      if (element === null) return;
      const at = { x: element.clientWidth / 2, y: element.clientHeight / 2 };
      setView((before) => zoomed(before, by, at));
    },
    [panel],
  );

  const onPointerDown = (event: PointerEvent): void => {
    const element = panel.current;
    const isOnNode = (event.target as Element).closest("button") !== null;
    if (element === null || isOnNode || event.button !== 0) return;
    element.setPointerCapture(event.pointerId);
    let last = event;
    const move = (next: PointerEvent): void => {
      const [dx, dy] = [next.clientX - last.clientX, next.clientY - last.clientY];
      last = next;
      setView((before) => ({ ...before, x: before.x + dx, y: before.y + dy }));
    };
    const end = (): void => {
      element.removeEventListener("pointermove", move);
      element.removeEventListener("pointerup", end);
      element.removeEventListener("pointercancel", end);
    };
    element.addEventListener("pointermove", move);
    element.addEventListener("pointerup", end);
    element.addEventListener("pointercancel", end);
  };
  return { view, zoom, fit, reveal, onPointerDown };
}

function whole(layout: Layout, element: HTMLElement): View {
  const { clientWidth, clientHeight } = element;
  const scale = Math.min(1, clientWidth / layout.width, clientHeight / layout.height);
  return centred({ x: layout.width / 2, y: layout.height / 2 }, Math.max(scale, SMALLEST), element);
}

/** A part of the plane with a box in its middle; no room is wasted on what lies beyond the plane. */
function around(box: Box, layout: Layout, element: HTMLElement, scale: number): View {
  const at = (middle: number, plane: number, panel: number): number => {
    const half = panel / scale / 2;
    return plane < 2 * half ? plane / 2 : Math.min(Math.max(middle, half), plane - half);
  };
  const x = at(box.x + box.width / 2, layout.width, element.clientWidth);
  const y = at(box.y + box.height / 2, layout.height, element.clientHeight);
  return centred({ x, y }, scale, element);
}

/** Whether all of a box is seen, and large enough to be read. */
function isInSight(box: Box, { x, y, scale }: View, element: HTMLElement): boolean {
  const [left, top] = [x + box.x * scale, y + box.y * scale];
  return (
    scale >= READABLE &&
    left >= 0 &&
    top >= 0 &&
    left + box.width * scale <= element.clientWidth &&
    top + box.height * scale <= element.clientHeight
  );
}

function centred(point: { x: number; y: number }, scale: number, element: HTMLElement): View {
  return {
    x: element.clientWidth / 2 - point.x * scale,
    y: element.clientHeight / 2 - point.y * scale,
    scale,
  };
}

function zoomed({ x, y, scale }: View, by: number, at: { x: number; y: number }): View {
  const next = Math.min(LARGEST, Math.max(SMALLEST, scale * by));
  const ratio = next / scale;
  return { x: at.x - (at.x - x) * ratio, y: at.y - (at.y - y) * ratio, scale: next };
}
