// The timeline: lanes over one time axis, and what lies under the pointer.

import { about, growthOf, launchOf, type Target } from "./about.ts";
import { placeWords, source, type App } from "./app.ts";
import { boxOf, div, element, fill, listen, small, vars } from "./dom.ts";
import { listenToDrags } from "./drags.ts";
import { laneFigure } from "./figures.ts";
import { emptyLanes, frameOf, type Shown } from "./frame.ts";
import { runAt } from "./grid.ts";
import { layOut, type Layout, type Placed } from "./lanes.ts";
import { clamp, floor, max, min, round } from "./math.ts";
import { cellAt } from "./ranks.ts";
import { remember } from "./model.ts";
import { overhang, paintLanes, writeLanes, type Scene } from "./paint.ts";
import type { Thread } from "./recording.ts";
import { isZoomed, pick, unzoomed, wheelFactor, zoom, type State } from "./state.ts";
import { surface } from "./surface.ts";
import { micros, plural } from "./words.ts";

export interface Timeline {
  stage: HTMLElement;
  /** draw shows the app's state at a width. */
  draw(width: number): Layout;
  /** covers reports whether all that is visible is painted. */
  covers(): boolean;
  wheel(e: WheelEvent): void;
  /** step moves the cursor to a neighbouring box; take selects what it is on. */
  step(columns: number, rows: number): void;
  take(): void;
}

/** A lane lower than this has its figures on one line. */
const lowLane = 20;
/** A thread unfolds to at most so many rows. */
const mostRows = 60;

export function timeline(app: App): Timeline {
  const { model } = app;
  const { recording, initial, chart } = model;
  const overlay = (name: string) => div({ class: "o-over o-" + name, hidden: 1 });
  const [before, after, chosen, outline, arrow, crosshair, frame, gutter] = [
    overlay("dim"),
    overlay("dim"),
    overlay("chosen"),
    overlay("outline"),
    overlay("arrow"),
    overlay("cross"),
    overlay("frame"),
    div(),
  ];
  const stage = div("o-lanes", before, after, chosen, outline, arrow, crosshair, frame, gutter);
  const lanes = surface(stage);

  let layout: Layout = layOut(chart, chart.wide, app.state.unfolded);
  let shown: (Shown | null)[] = [];
  let columns = 1;
  let cursor: Target | null = null;
  let figures: HTMLElement[] = [];

  const span = () => app.state.to - app.state.from;
  const wide = () => layout.x1 - layout.x0;
  const xOf = (t: number) => clamp(layout.x0 + ((t - app.state.from) / span()) * wide(), layout.x0, layout.x1);
  const timeAt = (x: number) => app.state.from + ((clamp(x, layout.x0, layout.x1) - layout.x0) / wide()) * span();
  const xAt = (c: number) => layout.x0 + (c / columns) * wide();
  const columnTime = (c: number) => app.state.from + (c / columns) * span();
  const local = (e: MouseEvent): [x: number, y: number] => {
    const { left, top } = boxOf(stage);
    return [e.clientX - left, e.clientY - top];
  };
  /** cover places an overlay, or hides it. */
  const cover = (e: HTMLElement, on: unknown, left: number, top: number, right: number, bottom: number) => {
    e.hidden = !on;
    vars(e, { x: left, y: top, w: right - left, h: bottom - top });
  };

  /** labels stand in the gutters; they change with the layout only. */
  const labels = remember((width: number, _: string, empty: string) => {
    const { unfolded, folded } = app.state;
    const rowsOf = (nth: number) => min(model.depth(nth, folded), mostRows);
    // Folded otherwise than in the picture, flame charts have as many rows as they need.
    const open = new Map(unfolded);
    if (folded !== initial.folded)
      chart.lanes.forEach((lane, i) => lane.rows && !open.has(i) && open.set(i, rowsOf(lane.nth)));
    // Of a thread without a box in view there is a strip.
    for (const i of empty.split(",")) if (i && !open.has(+i)) open.set(+i, 0);
    layout = layOut(chart, width, open);
    vars(stage, { left: layout.x0, right: layout.x1, high: layout.y1 + 4 });
    stage.classList.toggle("o-narrow", layout.narrow);
    figures = [];
    const steps = recording.steps.length;
    const counted = steps > 0 && !layout.narrow && div("o-label", small(plural(steps, "step")));
    if (counted) vars(counted, { y: layout.axis - 4 * layout.k });
    fill(gutter, [
      counted,
      ...layout.lanes.flatMap(({ lane, y0, y1, rows }, i) => {
        const { kind, nth, name, sources } = lane;
        const thread = (kind === "flame" || kind === "thread") && recording.threads[nth];
        const toggle = () => {
          // What the picture folded or cut off unfolds to all rows, and back.
          const next = new Map(unfolded);
          if (!next.delete(i)) next.set(i, rowsOf(nth));
          app.put({ unfolded: next });
        };
        const left = element(
          thread ? "button" : "div",
          {
            class: "o-label",
            title: [name, ...sources].join("\n"),
            click: thread && toggle,
            "aria-expanded": thread && String(unfolded.has(i)),
          },
          thread && (unfolded.has(i) ? "▾ " : "▸ "),
          name,
          ...sources.map(small),
        );
        const right = div("o-label o-figure" + (y1 - y0 < lowLane ? " o-low" : ""));
        figures.push(right);
        for (const e of [left, right])
          vars(e, { y: layout.narrow ? y0 - 14 : y0 + min(y1 - y0, rows ? 26 * layout.k : y1) / 2 });
        return [left, right];
      }),
    ]);
  }, 1);

  /** levels puts into the right gutter what each lane says of the range, or of an instant. */
  function levels(at = -1): void {
    layout.lanes.forEach(({ lane }, i) => {
      const [value, aside] = laneFigure(app, lane, at);
      fill(figures[i]!, [value, aside && small(aside)]);
    });
  }

  function targetAt(e: MouseEvent): Target | null {
    const [x, y] = local(e);
    const lane = shown.find((v) => v?.placed.lane.kind && y >= v.placed.y0 && y < v.placed.y1);
    const column = floor(((x - layout.x0) / wide()) * columns);
    if (!lane || column < 0 || column >= columns) return null;
    const target = targetIn(lane, lane.placed.rows && floor((y - lane.placed.y0) / layout.pitch), column);
    if (lane.placed.lane.cells) target.cell = cellAt(lane.placed, y, columnTime(column + 0.5));
    return target;
  }

  function targetIn(lane: Shown, row: number, column: number): Target {
    const grid = lane.grid;
    const id = (grid && row < grid.rows && grid.cells[row * columns + column]) || 0;
    const [begin, end] = id ? runAt(grid!, row, column) : [column, column + 1];
    return { lane, row, column, id, begin, end };
  }

  /** laneOf is the lane of a thread, where it has one. */
  const laneOf = (thread: Thread | undefined): Placed | undefined =>
    layout.lanes.find(
      ({ lane: { kind, nth } }) => "flame thread".includes(kind) && thread && recording.threads[nth] === thread,
    );

  /** rankAt selects the lane of the rank whose step is clicked on, and its thread for the flame graph. */
  function rankAt(e: MouseEvent): Partial<State> {
    const nth = targetAt(e)?.cell?.thread ?? -1;
    const lane = laneOf(recording.threads[nth]);
    if (!lane) return {};
    const unfolded = new Map(app.state.unfolded);
    if (!lane.rows) unfolded.set(layout.lanes.indexOf(lane), min(model.depth(nth, app.state.folded), mostRows));
    return { who: nth, unfolded };
  }

  /** point frames a target and says what it is, near a point of the window. */
  function point(target: Target | null, x: number, y: number): void {
    outline.hidden = arrow.hidden = true;
    app.tip(x, y, target ? about(app, target, columns) : []);
    const cell = target?.cell;
    if (cell) {
      const { lane, y0, y1 } = target.lane.placed;
      const pitch = (y1 - y0) / lane.cells!.rows.length;
      const top = y0 + cell.row * pitch;
      cover(outline, 1, xOf(cell.begin) - 1, top - 2, xOf(cell.end) + 1, top + pitch + 1);
      const own = laneOf(recording.threads[cell.thread]);
      if (own) cover(arrow, 1, xOf(cell.begin), own.y0, xOf(cell.end), own.y1);
    }
    if (!target?.id) return;
    const { y0, y1, rows } = target.lane.placed;
    const top = y0 + target.row * layout.pitch;
    cover(outline, 1, xAt(target.begin) - 1, top - 1, xAt(target.end), (rows ? top + layout.pitch : y1) + 1);
    const launch = launchOf(app, target);
    const from = launch && laneOf(launch.thread);
    if (from) cover(arrow, 1, xOf(launch.at), from.y1, xAt(target.begin), (y0 + y1) / 2);
  }

  function hover(e: MouseEvent, on = true): void {
    const [x, y] = local(e);
    on &&= x >= layout.x0 && x <= layout.x1 && y > 0 && y < layout.y1;
    cover(crosshair, on, x, layout.y0, x, layout.y1);
    if (on) fill(crosshair, [element("b", x > layout.x1 - 90 && "o-flip", micros(timeAt(x)))]);
    levels(on ? timeAt(x) : -1);
    point(on ? targetAt(e) : null, e.clientX, e.clientY);
  }

  const boxAt = (e: MouseEvent): [number, number] | null => {
    const target = targetAt(e);
    const growth = target && growthOf(app, target, columns);
    if (target?.cell) return [target.cell.begin, target.cell.end];
    return (
      target && [
        growth?.begin ?? launchOf(app, target)?.at ?? columnTime(target.begin),
        growth?.end ?? columnTime(target.id ? target.end : target.begin),
      ]
    );
  };
  listenToDrags(app, stage, { layout: () => layout, local, timeAt, xOf, hover, boxAt, rankAt });
  listen(stage, "dblclick", () => app.put(unzoomed(app.state, initial)));

  return {
    stage,
    covers: lanes.covers,
    draw(width) {
      const { state: s, theme } = app;
      const { from, to, picked, query } = s;
      const zoomed = isZoomed(s, initial);
      labels(width, [s.folded, ...s.unfolded].join(), zoomed ? emptyLanes(model, from, to).join() : "");
      cursor = null;
      stage.classList.toggle("o-zoomed", zoomed);
      const file = chart.lanes.find((v) => v.kind === "lines")?.nth ?? -1;
      const scene: Scene = {
        model,
        state: s,
        layout,
        theme,
        found: model.found(query, s.folded),
        inks: app.inks(),
        shown,
        lineWords: (own) => {
          const p = model.own(file).places[own]!;
          const number = file < 0 ? placeWords(app, p).replace("line ", "") : p.line + "";
          return [number + " " + source(p), number];
        },
      };
      lanes.paint(
        layout.x0 - overhang,
        wide() + 2 * overhang,
        layout.y1 + 4,
        theme,
        (pixels, scale, top) => {
          columns = round(wide() * scale);
          scene.shown = shown = frameOf(model, s, layout, columns, scale, top, top + pixels.high / scale);
          paintLanes(pixels, scale, top, scene);
        },
        (pen) => writeLanes(pen, columns, scene),
      );
      const [a, b] = picked ? [xOf(picked[0]), xOf(picked[1])] : [0, 0];
      cover(before, picked, layout.x0, layout.y0, a, layout.y1);
      cover(after, picked, b, layout.y0, layout.x1, layout.y1);
      cover(chosen, picked, a - 1, layout.y0 - 3, b + 1, layout.y1);
      if (picked) fill(chosen, [element("b", null, micros(picked[1] - picked[0]))]);
      const share = (t: number) => layout.x0 + (t / recording.duration) * wide();
      cover(frame, zoomed, share(from) - 2, -2, max(share(to) + 2, share(from) + 6), 12 * layout.k);
      outline.hidden = arrow.hidden = crosshair.hidden = true;
      levels();
      return layout;
    },
    wheel(e) {
      hover(e, false);
      app.put(zoom(app.state, initial, timeAt(local(e)[0]), wheelFactor(e.deltaY || e.deltaX, e.deltaMode)));
    },
    step(columnsBy, rowsBy) {
      const first = shown.find((v) => v?.placed.rows) || shown.find((v) => v?.picks);
      if (!first) return;
      let t = cursor || targetIn(first, 0, columns >> 1);
      const { lane } = t;
      if (cursor && rowsBy) t = targetIn(lane, clamp(t.row + rowsBy, 0, lane.grid!.rows - 1), (t.begin + t.end) >> 1);
      else if (cursor) {
        // The next box of the row, over what is empty.
        do t = targetIn(lane, t.row, columnsBy > 0 ? t.end : t.begin - 1);
        while (!t.id && t.column > 0 && t.column < columns);
      }
      if (t.column < 0 || t.column >= columns) return;
      cursor = t;
      const { left, top } = boxOf(stage);
      point(t, left + xAt((t.begin + t.end) / 2), top + lane.placed.y0 + (t.row + 1) * layout.pitch);
    },
    take: () => cursor?.id && app.put(pick(app.state, initial, columnTime(cursor.begin), columnTime(cursor.end))),
  };
}
