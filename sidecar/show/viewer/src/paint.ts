// A frame of the timeline as pixels and words.

import { imul, max, min, round } from "./math.ts";
import type { Shown } from "./frame.ts";
import { boxes, type Grid } from "./grid.ts";
import type { Layout } from "./lanes.ts";
import type { Model } from "./model.ts";
import { area, bar, blend, grid, ground, type Ink, type Look, type Pixels } from "./pixels.ts";
import { codes, State as Doing } from "./generated.ts";
import { paintCells } from "./ranks.ts";
import type { Recording } from "./recording.ts";
import type { Stretches } from "./stretches.ts";
import type { Matches } from "./search.ts";
import type { State } from "./state.ts";
import type { Pen } from "./surface.ts";
import { codePaints, statePaints, type Theme } from "./theme.ts";
import { ticks } from "./ticks.ts";
import { labelsOf, type CallTree } from "./tree.ts";
import { percent } from "./words.ts";

/** How far the axis' words may reach beyond the plot, in CSS pixels. */
export const overhang = 24;
/** Boxes narrower than this have no words. */
const leastText = 24;
const smallText = 10.5;
/** A line's code is shown where so many of its letters have room. */
const leastCode = 14;

/** Scene is what a frame is painted from. */
export interface Scene {
  model: Model;
  state: State;
  layout: Layout;
  theme: Theme;
  found: Matches | null;
  inks: Uint32Array; // of the tree
  shown: (Shown | null)[];
  /** lineWords are a line's text with its number, and the number. */
  lineWords(own: number): [full: string, number: string];
}

const modulePaints = [...codePaints, "gmem", "mem", "disk", "l2"];

/** moduleInk is a colour of its own for a name, the same one each time. */
function moduleInk(theme: Theme, name: string): Ink {
  let hash = 7;
  for (let i = 0; i < name.length; i++) hash = imul(hash ^ name.charCodeAt(i), 16777619);
  hash = (hash ^ (hash >>> 15)) >>> 0;
  // Lightness differs, too, for those who do not see hues.
  return blend(theme.ink(modulePaints[hash % modulePaints.length]!), theme.ink("bg"), 1 - ((hash >>> 8) % 3) / 4);
}

/** inksOf are a tree's colours by node; where something was searched for, the rest fades. */
export function inksOf(tree: CallTree, theme: Theme, modules: boolean, found: Matches | null): Uint32Array {
  const byFn = tree.fns.map((func) =>
    modules ? moduleInk(theme, func.file.pkg || func.file.path) : theme.ink(codePaints[func.code]!),
  );
  return new Uint32Array(tree.above.length).map((_, n) =>
    !n ? 0 : found && found.nodes[n] !== 1 ? blend(byFn[tree.fn[n]!]!, theme.ink("bg"), 0.35) : byFn[tree.fn[n]!]!,
  );
}

/** nodeOf is the call that a cell of a flame chart shows, or most of it; 0 for a count of callees. */
const nodeOf = (grid: Grid, id: number): number => (id > 0 ? id : grid.marks[-1 - id]!.node);

/** wordsOf are ways to name a cell of a flame chart, the most informative first. */
export function wordsOf(tree: CallTree, grid: Grid, id: number): string[] {
  if (id > 0) return labelsOf(tree, id);
  const { node, share, others } = grid.marks[-1 - id]!;
  if (!node) return [`… ${others} deeper`, "…"];
  const name = labelsOf(tree, node).pop()!;
  const most = name + " " + percent(share);
  return [others ? `${most} + ${others} more` : most, most, name];
}

/** kernelPaint finds by a kernel's name what it does. */
const kernelPaint = (name: string): string =>
  /nccl|rccl|^hccl/i.test(name) ? "mem" : /memcpy|memset|^dma/i.test(name) ? "gmem" : "gpu";

/** isUnread reports whether a flame chart has nothing in a column because no stack could be read. */
export const isUnread = ({ state }: Recording, span: number, grid: Grid, column: number): boolean =>
  !grid.cells[column] && span >= 0 && state[span] === Doing.unknown;

/** paintLanes fills a tile, top of which (CSS pixels) is the upper edge. */
export function paintLanes(
  pixels: Pixels,
  scale: number,
  top: number,
  { model, state, layout, theme, found, inks, shown }: Scene,
): void {
  const { recording } = model;
  const x = round(overhang * scale);
  const columns = round((layout.x1 - layout.x0) * scale);
  const y = (css: number) => round((css - top) * scale);
  const column = (t: number) => round(((t - state.from) / (state.to - state.from)) * columns);
  const paint = theme.ink;
  const bg = paint("bg");

  const under = new Uint32Array(pixels.wide).fill(bg);
  const shade = (line: Uint32Array, idle: Stretches) => {
    for (let i = 0; i < idle.length; i += 2) {
      const a = max(column(idle[i]!), 0);
      const b = min(column(idle[i + 1]!), columns);
      if (a < b) line.fill(paint("idle"), x + a, x + b);
    }
  };
  shade(under, recording.idle);
  for (const t of ticks(state.from / 1e6, state.to / 1e6, (layout.x1 - layout.x0) / 60).at) {
    const c = x + min(column(t * 1e6), columns - 1);
    under[c] = blend(paint("ru"), under[c]!, 0.7);
  }
  ground(pixels, under);
  bar(pixels, 0, 0, pixels.wide, y(layout.y0), bg);
  bar(pixels, 0, y(layout.y1), pixels.wide, pixels.high, bg);
  let last = -9;
  for (const { end } of recording.steps) {
    const c = column(end);
    if (c < 0 || c > columns || c - last < 2.5 * scale) continue;
    last = c;
    bar(pixels, x + c, y(layout.y0 - 10), x + c + round(scale * 1.2), y(layout.y0 - 3), paint("other"));
  }

  const strip = (cells: Grid, y0: number, y1: number, look: Look) =>
    grid(pixels, cells, x, y0, y1 - y0, 0, scale, under, look);
  for (const lane of shown) {
    if (!lane) continue;
    const { placed, track, levels, grid: g, picks } = lane;
    const { kind, nth, byCode, least, full, cells } = placed.lane;
    const [y0, y1] = [y(placed.y0), y(placed.y1)];
    if (cells) paintCells(pixels, cells, x, columns, y0, y1, column, paint);
    else if (track) {
      const own = recording.deviceIdle.length > 1 && recording.deviceIdle.find((d) => d.device === track.device);
      const ground = own ? under.slice() : under;
      if (own) shade(ground, own.stretches);
      for (let row = max(y0, 0); own && row < min(y1, pixels.high); row++) pixels.ink.set(ground, row * pixels.wide);
      area(
        pixels,
        levels!.map((v) => max(v - least, 0) / (full - least)),
        x,
        y0,
        y1,
        paint(placed.lane.paint),
        ground,
      );
      if (track.resident)
        for (const { evidence } of recording.growth)
          for (let i = 0; i < evidence.length; i += 2) {
            const c = x + column(evidence[i]!);
            const to = max(x + column(evidence[i + 1]!), c + round(3 * scale));
            bar(pixels, max(c, x), y0, min(to, x + columns), y0 + round(3 * scale), paint("l1"));
          }
      // Where nothing is known, nothing drawn would read as "did nothing".
      levels!.forEach((v, c) => isNaN(v) && bar(pixels, x + c, y0, x + c + 1, y1, paint("ba")));
    } else if (g) {
      const { part } = model.own(kind === "lines" ? nth : -1);
      if (kind === "lines")
        strip(g, y0, y1, { inkOf: (id) => paint(part[id - 1]! >= 0.3 ? "l1" : part[id - 1]! >= 0.05 ? "l2" : "l3") });
      else if (kind === "stream") {
        bar(pixels, x, y0, x + columns, y1, paint("ba"));
        strip(g, y0, y1, { inkOf: (id) => paint(kernelPaint(recording.streams[nth]!.kernels[id - 1]!)) });
      } else if (!placed.rows) {
        bar(pixels, x, y0, x + columns, y1, paint("ba"));
        strip(g, y0, y1, {
          inkOf: (id) =>
            id > codes.length
              ? blend(paint(codePaints[id - 1 - codes.length]!), bg, 0.3)
              : paint((byCode ? codePaints : statePaints)[id - 1]!),
        });
      } else {
        const inkOf = (id: number) => {
          const node = nodeOf(g, id);
          return !node ? paint("other") : id > 0 ? inks[id]! : blend(inks[node]!, bg, 0.65);
        };
        const look: Look = { inkOf, edgeOf: (id) => (found?.nodes[nodeOf(g, id)] === 1 ? paint("accent") : 0) };
        if (state.colour === "state")
          look.columns = new Uint32Array(columns).map((_, c) =>
            picks![c]! < 0 ? bg : paint(statePaints[recording.state[picks![c]!]!]!),
          );
        grid(pixels, g, x, (placed.y0 - top) * scale, layout.pitch * scale, round(scale), scale, under, look);
        // Where no stack could be read, white would read as "did nothing".
        for (let c = 0; c < columns; c++)
          if (isUnread(recording, picks![c]!, g, c)) bar(pixels, x + c, y0, x + c + 1, y1, paint("ba"));
      }
    }
  }
}

/** writeLanes sets the words of a frame: the axis, and the names of boxes with room. */
export function writeLanes(
  pen: Pen,
  columns: number,
  { model, state, layout, theme, found, shown, lineWords }: Scene,
): void {
  const { k, x0, x1, pitch } = layout;
  const scale = columns / (x1 - x0);
  const size = smallText * k;
  const axis = ticks(state.from / 1e6, state.to / 1e6, (x1 - x0) / 60);
  for (const t of axis.at) {
    const words = axis.label(t);
    const x = x0 + ((t * 1e6 - state.from) / (state.to - state.from)) * (x1 - x0);
    const half = pen.widthOf(words, size) / 2 - overhang;
    if (x - half > x0 && x + half < x1) pen.write(words, x, layout.axis, theme.ink("tm"), size, "center");
  }
  pen.write(model.chart.more, x0, layout.y1 - 7 * k, theme.ink("tm"), 9.5 * k);
  const on = theme.ink("tx");
  for (const lane of shown) {
    const grid = lane?.grid;
    if (!grid) continue;
    const { placed } = lane;
    const { kind } = placed.lane;
    const tree = model.tree(state.folded);
    for (let row = 0; row < placed.rows; row++) {
      boxes(grid, row, leastText * scale, (id, from, to) => {
        const x = x0 + from / scale + 4;
        const words = pen.fit(wordsOf(tree, grid, id), (to - from) / scale - 8, size);
        if (words)
          pen.write(
            words,
            x,
            placed.y0 + row * pitch + 11.5 * k,
            found && found.nodes[nodeOf(grid, id)] !== 1 ? blend(on, theme.ink("bg"), 0.6) : on,
            size,
          );
      });
    }
    if (kind !== "lines") continue;
    boxes(grid, 0, 10 * scale, (id, from, to) => {
      const [full, number] = lineWords(id - 1);
      const room = (to - from) / scale - 8;
      const baseline = placed.y1 - 5 * k;
      const enough = pen.widthOf(number + "m".repeat(leastCode), size, true) <= room;
      const code = enough && full.length > number.length + 1 && pen.fit([full], room, size, true);
      if (code) pen.write(code, x0 + from / scale + 5, baseline, on, size, "left", true);
      else if (pen.widthOf(number, size) <= room + 6)
        pen.write(number, x0 + (from + to) / 2 / scale, baseline, on, size, "center");
    });
  }
}
