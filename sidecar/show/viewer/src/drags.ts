// Drags over the lanes, by mouse or finger.

import type { App } from "./app.ts";
import { listen } from "./dom.ts";
import type { Layout } from "./lanes.ts";
import { abs, max } from "./math.ts";
import { isZoomed, pan, pick, show, toWindow, zoom, type State } from "./state.ts";

/** Ground is what a drag has below it. */
export interface Ground {
  layout(): Layout;
  /** local is where an event is, in the stage. */
  local(e: MouseEvent): [x: number, y: number];
  timeAt(x: number): number;
  xOf(time: number): number;
  /** hover shows what is under the pointer, or nothing. */
  hover(e: MouseEvent, on?: boolean): void;
  /** boxAt is the time of the box under the pointer, empty beside boxes; null outside of lanes. */
  boxAt(e: MouseEvent): [from: number, to: number] | null;
  /** rankAt is what else a click there selects. */
  rankAt(e: MouseEvent): Partial<State>;
}

/** A press that moves less than this is a click. */
export const dragThreshold = 4;

/** Two fingers count as at least so far apart (CSS pixels), so that a pinch never divides by nothing. */
const leastSpread = 20;

/** The overview's frame is taken hold of from above the axis' words: so far above their baseline. */
const axisHeight = 10;

/** Drag is what a press moves: nothing, a selection, the window, or the overview's frame, which is the window too. */
type Drag = "" | "pick" | "pan" | "frame";

/**
 * listenToDrags moves the window (once zoomed) or a selection by one finger or the mouse; two fingers pinch. A click
 * selects a box.
 */
export function listenToDrags(app: App, stage: HTMLElement, ground: Ground): void {
  const { initial, recording } = app.model;
  let drag: Drag = "";
  let moved = false;
  let start = 0; // x of the window's drags, time of the selection's
  const fingers = new Map<number, number>();

  function dragAt(y: number, shift: boolean): Drag {
    const { y0, axis, k } = ground.layout();
    if (!isZoomed(app.state, initial)) return "pick";
    if (y > y0) return shift ? "pick" : "pan";
    return y < axis - axisHeight * k ? "frame" : "pick";
  }

  function press(e: PointerEvent): void {
    if (e.button || (e.target as Element).closest("button")) return;
    const [x, y] = ground.local(e);
    stage.setPointerCapture(e.pointerId);
    fingers.set(e.pointerId, x);
    moved = false;
    drag = dragAt(y, e.shiftKey);
    start = drag === "pick" ? ground.timeAt(x) : x;
    if (drag === "frame") move(e);
  }

  function move(e: PointerEvent): unknown {
    const [x] = ground.local(e);
    const { state } = app;
    const { x0, x1 } = ground.layout();
    if (!drag) return e.pointerType === "touch" || ground.hover(e);
    const spread = () => max(abs([...fingers.values()].reduce((a, b) => a - b)), leastSpread);
    const last = spread();
    fingers.set(e.pointerId, x);
    if (fingers.size > 1) return app.put(zoom(state, initial, ground.timeAt(x), last / spread()));
    if (drag === "frame") {
      const middle = ((x - x0) / (x1 - x0)) * recording.duration;
      const half = (state.to - state.from) / 2;
      return app.put(toWindow(state, initial, middle - half, middle + half));
    }
    if (!moved && abs(x - (drag === "pick" ? ground.xOf(start) : start)) < dragThreshold) return;
    if (!moved) ground.hover(e, false);
    moved = true;
    if (drag === "pick") return app.put(pick(state, initial, start, ground.timeAt(x)));
    app.put(pan(state, initial, (start - x) / (x1 - x0)));
    start = x;
  }

  function release(e: PointerEvent): void {
    const box = drag && drag !== "frame" && !moved && fingers.size < 2 && ground.boxAt(e);
    fingers.delete(e.pointerId);
    moved = true;
    if (!fingers.size) drag = "";
    if (box) app.put({ ...(box[0] < app.state.from ? show : pick)(app.state, initial, ...box), ...ground.rankAt(e) });
  }

  listen(stage, "pointerdown", press);
  listen(stage, "pointermove", move);
  listen(stage, "pointerup", release);
  listen(stage, "pointercancel", release);
  listen(stage, "pointerleave", (e) => drag || ground.hover(e, false));
}
