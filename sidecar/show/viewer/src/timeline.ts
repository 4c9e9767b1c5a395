// The timeline: lanes over one time axis, and what lies under the pointer.

import { placeWords, shareWords, source, whereOf, type App } from "./app.ts";
import { abs, clamp, floor, max, min, on, round } from "./brief.ts";
import { within } from "./columns.ts";
import { div, fill, h, small, vars } from "./dom.ts";
import { frameOf, type Shown } from "./frame.ts";
import { runAt } from "./grid.ts";
import { layOut, type Layout } from "./lanes.ts";
import { overhang, paintLanes, wordsOf, writeLanes, type Scene } from "./paint.ts";
import { isZoomed, pan, pick, rangeOf, toWindow, unzoomed, wheelFactor, zoom } from "./state.ts";
import { heights, stateTimes } from "./sums.ts";
import { remember } from "./model.ts";
import { surface } from "./surface.ts";
import { figure, micros, percent, plural } from "./words.ts";

/** Target is a box, or a column of a lane without boxes. */
interface Target {
  lane: Shown;
  row: number;
  column: number;
  id: number;
  begin: number; // columns of the box
  end: number;
}

export interface Timeline {
  stage: HTMLElement;
  /** draw shows the app's state at a width. */
  draw(width: number): Layout;
  /** covers tells whether all that is visible is painted. */
  covers(): boolean;
  wheel(e: WheelEvent): void;
  /** step moves the cursor to a neighbouring box; take selects what it is on. */
  step(columns: number, rows: number): void;
  take(): void;
}

/** A press that moves less than this is a click. */
export const dragThreshold = 4;

/** A thread unfolds to at most so many rows. */
const mostRows = 60;

export function timeline(app: App): Timeline {
  const { m } = app;
  const { r, whole, chart } = m;
  const overlay = (name: string) => div({ class: "o-over o-" + name, hidden: 1 });
  const [before, after, chosen, outline, crosshair, frame, gutter] = [overlay("dim"), overlay("dim"), overlay("chosen"), overlay("outline"), overlay("cross"), overlay("frame"), div()];
  const stage = div("o-lanes", before, after, chosen, outline, crosshair, frame, gutter);
  const lanes = surface(stage);

  let l: Layout = layOut(chart, chart.wide, app.s.unfolded);
  let shown: (Shown | null)[] = [];
  let columns = 1;
  let cursor: Target | null = null;
  let figures: HTMLElement[] = [];

  const span = () => app.s.to - app.s.from;
  const wide = () => l.x1 - l.x0;
  const xOf = (t: number) => clamp(l.x0 + ((t - app.s.from) / span()) * wide(), l.x0, l.x1);
  const timeAt = (x: number) => app.s.from + ((clamp(x, l.x0, l.x1) - l.x0) / wide()) * span();
  const xAt = (c: number) => l.x0 + (c / columns) * wide();
  const columnTime = (c: number) => app.s.from + (c / columns) * span();
  const local = (e: MouseEvent): [x: number, y: number] => {
    const { left, top } = stage.getBoundingClientRect();
    return [e.clientX - left, e.clientY - top];
  };
  /** cover places an overlay, or hides it. */
  const cover = (e: HTMLElement, on: unknown, left: number, top: number, right: number, bottom: number) => {
    e.hidden = !on;
    vars(e, { x: left, y: top, w: right - left, h: bottom - top });
  };

  /** labels stand in the gutters; they change with the layout only. */
  const labels = remember((width: number, _: string) => {
    const { unfolded, folded } = app.s;
    const rowsOf = (nth: number) => min(m.depth(nth, folded), mostRows);
    // Folded otherwise than in the picture, flame charts have as many rows as they need.
    const open = new Map(unfolded);
    if (folded !== whole.folded) chart.lanes.forEach((lane, i) => lane.rows && !open.has(i) && open.set(i, rowsOf(lane.nth)));
    l = layOut(chart, width, open);
    vars(stage, { left: l.x0, right: l.x1, high: l.y1 + 4 });
    stage.classList.toggle("o-narrow", l.narrow);
    figures = [];
    fill(
      gutter,
      l.lanes.flatMap(({ lane, y0, y1, rows }, i) => {
        const { kind, nth, called, sources } = lane;
        const thread = (kind === "flame" || kind === "thread") && r.threads[nth];
        const toggle = () => {
          // What the picture folded or cut off unfolds to all rows, and back.
          const next = new Map(unfolded);
          if (!next.delete(i)) next.set(i, rowsOf(nth));
          app.put({ unfolded: next });
        };
        const left = h(thread ? "button" : "div", { class: "o-label", title: [called, ...sources].join("\n"), click: thread && toggle, "aria-expanded": thread && String(unfolded.has(i)) }, thread && (unfolded.has(i) ? "▾ " : "▸ "), called, ...sources.map(small));
        const right = div("o-label o-figure");
        figures.push(right);
        for (const e of [left, right]) vars(e, { y: l.narrow ? y0 - 14 : y0 + min(y1 - y0, rows ? 26 * l.k : y1) / 2 });
        return [left, right];
      }),
    );
  }, 1);

  /** levels puts into the right gutter what each lane says of the range, or of an instant. */
  function levels(at = -1): void {
    const { s } = app;
    const [from, to] = at < 0 ? rangeOf(s) : [at, at + 1];
    const plain = at < 0 && !s.picked && !isZoomed(s, whole);
    l.lanes.forEach(({ lane: { kind, nth, figure: value, aside } }, i) => {
      const track = kind === "track" && r.tracks[nth];
      const thread = kind === "thread" && r.threads[nth];
      if (track && !plain) {
        const level = (a: number, b: number) => heights(track, a, b, 1)[0]!;
        const growth = level(to - 1, to) - level(from, from + 1);
        value = figure(level(from, to), track.unit);
        aside = at >= 0 ? "at " + micros(at) : growth && !track.rate ? (growth > 0 ? "+" : "−") + figure(abs(growth), track.unit) : s.picked ? "in selection" : "in view";
      } else if (thread && !plain && at < 0) {
        const [python, native] = stateTimes(r, thread, from, to) as unknown as [number, number];
        value = percent((python + native) / (to - from)) + " busy";
      }
      fill(figures[i]!, [value, aside && small(aside)]);
    });
  }

  function targetAt(e: MouseEvent): Target | null {
    const [x, y] = local(e);
    const lane = shown.find((v) => v?.placed.lane.kind && y >= v.placed.y0 && y < v.placed.y1);
    const column = floor(((x - l.x0) / wide()) * columns);
    return lane && column >= 0 && column < columns ? targetIn(lane, lane.placed.rows && floor((y - lane.placed.y0) / l.pitch), column) : null;
  }

  function targetIn(lane: Shown, row: number, column: number): Target {
    const g = lane.grid;
    const id = (g && row < g.rows && g.cells[row * columns + column]) || 0;
    const [begin, end] = id ? runAt(g!, row, column) : [column, column + 1];
    return { lane, row, column, id, begin, end };
  }

  /** about are a target's lines: its name, where it is, figures. */
  function about({ lane, row, column, id, begin, end }: Target): string[] {
    const { placed, track, grid: g, thread, picks } = lane;
    const { kind, called, nth } = placed.lane;
    const at = columnTime(column);
    const share = (us: number) => ` · ${micros(us)} (${percent(us / r.duration)}) in all`;
    if (track) return [called, "", figure(lane.levels![column]!, track.unit) + " at " + micros(at)];
    if (!g || !id) {
      const gap = FULL && thread && r.gaps.find((v) => v.process === thread.process && v.begin <= at && at < v.end);
      return gap && g && picks![column]! < 0 ? [gap.says, "", micros(gap.end - gap.begin) + " from " + micros(gap.begin) + " on"] : [];
    }
    const here = micros(columnTime(end) - columnTime(begin)) + " here";
    if (FULL && kind === "stream") {
      const joined = r.streams[nth]!.joined[picks![column]!] as number;
      return [r.streams[nth]!.kernels[id - 1]!, "", here + (joined > 1 ? `, the longest of ${plural(joined, "kernel")}` : "")];
    }
    if (kind === "lines") {
      const p = m.own(nth).places[id - 1]!;
      const line = m.lines(0, r.duration).find(({ place: { file, line } }) => file === p.file && line === p.line);
      return [placeWords(app, p), source(p), here + (line ? share(line.self) + (line.idle ? ", the GPU idle for " + micros(line.idle) : "") : "")];
    }
    const i = picks![column]!;
    const t = m.tree(app.s.folded);
    const merged = within(r, thread!.begin, thread!.end, at, columnTime(column + 1));
    const more = (g.leaf?.[column] === row || !placed.rows ? " · " + chart.states[r.state[i]!] : "") + (merged > 1 ? ` · this pixel merges ${plural(merged, "stack")}` : "");
    const fn = t.fn[placed.rows ? id : t.of[r.node[i]!]!]!;
    const f = t.fns[fn];
    const where = f ? whereOf(f) : "";
    if (!placed.rows) return [called, f ? f.called + "  " + where : "", here + more + " · " + shareWords(app, stateTimes(r, thread!, ...rangeOf(app.s)), micros)];
    const times = m.functions(0, r.duration).get(fn);
    return [f?.called || wordsOf(t, g, id)[0]!, where, here + (times ? `${share(times.total)}, ${micros(times.self)} its own` + (times.self ? ` (${shareWords(app, times.shares, micros)})` : "") : "") + more];
  }

  /** point frames a target and tells what it is, near a point of the window. */
  function point(t: Target | null, x: number, y: number): void {
    outline.hidden = true;
    app.tip(x, y, t ? about(t) : []);
    if (!t?.id) return;
    const { y0, y1, rows } = t.lane.placed;
    const top = y0 + t.row * l.pitch;
    cover(outline, 1, xAt(t.begin) - 1, top - 1, xAt(t.end), (rows ? top + l.pitch : y1) + 1);
  }

  function hover(e: MouseEvent, on = true): void {
    const [x, y] = local(e);
    on &&= x >= l.x0 && x <= l.x1 && y > 0 && y < l.y1;
    cover(crosshair, on, x, l.y0, x, l.y1);
    if (on) fill(crosshair, [h("b", x > l.x1 - 90 && "o-flip", micros(timeAt(x)))]);
    levels(on ? timeAt(x) : -1);
    point(on ? targetAt(e) : null, e.clientX, e.clientY);
  }

  // One finger or the mouse moves the window (once zoomed) or a selection, above the axis the overview's frame; on pages two fingers pinch.
  let drag = "";
  let moved = false;
  let start = 0; // x of the window's drags, time of the selection's
  const fingers = new Map<number, number>();

  function press(e: PointerEvent): void {
    if (e.button || (e.target as Element).closest("button")) return;
    const [x, y] = local(e);
    stage.setPointerCapture(e.pointerId);
    if (FULL) fingers.set(e.pointerId, x);
    moved = false;
    drag = !isZoomed(app.s, whole) ? "pick" : y > l.y0 ? (e.shiftKey ? "pick" : "pan") : y < l.axis - 10 * l.k ? "frame" : "pick";
    start = drag === "pick" ? timeAt(x) : x;
    if (drag === "frame") move(e);
  }

  function move(e: PointerEvent): unknown {
    const [x] = local(e);
    const { s } = app;
    if (!drag) return e.pointerType === "touch" || hover(e);
    if (FULL) {
      const spread = () => max(abs([...fingers.values()].reduce((a, b) => a - b)), 20);
      const last = spread();
      fingers.set(e.pointerId, x);
      if (fingers.size > 1) return app.put(zoom(s, whole, timeAt(x), last / spread()));
    }
    const at = ((x - l.x0) / wide()) * r.duration;
    if (drag === "frame") return app.put(toWindow(s, whole, at - span() / 2, at + span() / 2));
    if (!moved && abs(x - (drag === "pick" ? xOf(start) : start)) < dragThreshold) return;
    if (!moved) hover(e, false);
    moved = true;
    if (drag === "pick") return app.put(pick(s, whole, start, timeAt(x)));
    app.put(pan(s, whole, (start - x) / wide()));
    start = x;
  }

  function release(e: PointerEvent): void {
    const t = drag && drag !== "frame" && !moved && !(FULL && fingers.size > 1) && targetAt(e);
    if (FULL) fingers.delete(e.pointerId);
    moved = true;
    if (!FULL || !fingers.size) drag = "";
    if (t) app.put(pick(app.s, whole, columnTime(t.begin), columnTime(t.id ? t.end : t.begin)));
  }

  on(stage, "pointerdown", press);
  on(stage, "pointermove", move);
  on(stage, "pointerup", release);
  on(stage, "pointercancel", release);
  on(stage, "pointerleave", (e) => drag || hover(e, false));
  on(stage, "dblclick", () => app.put(unzoomed(app.s, whole)));

  return {
    stage,
    covers: lanes.covers,
    draw(width) {
      const { s, theme } = app;
      const { from, to, picked, query } = s;
      labels(width, [s.folded, ...s.unfolded].join());
      cursor = null;
      const zoomed = isZoomed(s, whole);
      stage.classList.toggle("o-zoomed", zoomed);
      const file = chart.lanes.find((v) => v.kind === "lines")?.nth ?? -1;
      const scene: Scene = {
        m,
        s,
        l,
        theme,
        found: m.found(query, s.folded),
        inks: app.inks(),
        shown,
        lineWords: (own) => {
          const p = m.own(file).places[own]!;
          const number = file < 0 ? placeWords(app, p).replace("line ", "") : p.line + "";
          return [number + "  " + source(p), number];
        },
      };
      lanes.paint(
        l.x0 - overhang,
        wide() + 2 * overhang,
        l.y1 + 4,
        theme,
        (p, scale, top) => {
          columns = round(wide() * scale);
          scene.shown = shown = frameOf(m, s, l, columns, scale, top, top + p.high / scale);
          paintLanes(p, scale, top, scene);
        },
        (pen) => writeLanes(pen, columns, scene),
      );
      const [a, b] = picked ? [xOf(picked[0]), xOf(picked[1])] : [0, 0];
      cover(before, picked, l.x0, l.y0, a, l.y1);
      cover(after, picked, b, l.y0, l.x1, l.y1);
      cover(chosen, picked, a - 1, l.y0 - 3, b + 1, l.y1);
      if (picked) fill(chosen, [h("b", null, micros(picked[1] - picked[0]))]);
      const share = (t: number) => l.x0 + (t / r.duration) * wide();
      cover(frame, zoomed, share(from) - 2, -2, max(share(to) + 2, share(from) + 6), 12 * l.k);
      outline.hidden = crosshair.hidden = true;
      levels();
      return l;
    },
    wheel(e) {
      hover(e, false);
      app.put(zoom(app.s, whole, timeAt(local(e)[0]), wheelFactor(e.deltaY || e.deltaX, e.deltaMode)));
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
      const { left, top } = stage.getBoundingClientRect();
      point(t, left + xAt((t.begin + t.end) / 2), top + lane.placed.y0 + (t.row + 1) * l.pitch);
    },
    take: () => cursor?.id && app.put(pick(app.s, whole, columnTime(cursor.begin), columnTime(cursor.end))),
  };
}
