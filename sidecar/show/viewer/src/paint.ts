// A frame of the timeline as pixels and words.

import { imul, max, min, round } from "./brief.ts";
import type { Shown } from "./frame.ts";
import { boxes, type Grid } from "./grid.ts";
import type { Layout } from "./lanes.ts";
import type { Model } from "./model.ts";
import { area, bar, blend, grid, ground, type Ink, type Look, type Pixels } from "./pixels.ts";
import { codeCount, type Stretches } from "./recording.ts";
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

/** Scene is what a frame is painted from. */
export interface Scene {
  m: Model;
  s: State;
  l: Layout;
  theme: Theme;
  found: Matches | null;
  inks: Uint32Array; // of the tree
  shown: (Shown | null)[];
  /** lineWords are a line's text with its number, and the number. */
  lineWords(own: number): [full: string, number: string];
}

const modulePaints = [...codePaints, "gmem", "mem", "disk", "l2"];

/** moduleInk is a colour of its own for a name, the same one each time. */
function moduleInk(theme: Theme, called: string): Ink {
  let hash = 7;
  for (let i = 0; i < called.length; i++) hash = imul(hash ^ called.charCodeAt(i), 16777619);
  hash = (hash ^ (hash >>> 15)) >>> 0;
  // Lightness differs, too, for those who do not see hues.
  return blend(theme.ink(modulePaints[hash % modulePaints.length]!), theme.ink("bg"), 1 - ((hash >>> 8) % 3) / 4);
}

/** inksOf are a tree's colours by node; where something was searched for, the rest fades. */
export function inksOf(t: CallTree, theme: Theme, modules: boolean, found: Matches | null): Uint32Array {
  const byFn = t.fns.map((f) => (FULL && modules ? moduleInk(theme, f.file.pkg || f.file.path) : theme.ink(codePaints[f.code]!)));
  return new Uint32Array(t.above.length).map((_, n) => (!n ? 0 : found && found.nodes[n] !== 1 ? blend(byFn[t.fn[n]!]!, theme.ink("bg"), 0.35) : byFn[t.fn[n]!]!));
}

/** nodeOf is the call that a cell of a flame chart shows, or most of it; 0 for a count of callees. */
const nodeOf = (g: Grid, id: number): number => (id > 0 ? id : g.marks[-1 - id]!.node);

/** wordsOf are ways to name a cell of a flame chart, the most telling first. */
export function wordsOf(t: CallTree, g: Grid, id: number): string[] {
  if (id > 0) return labelsOf(t, id);
  const { node, share, others } = g.marks[-1 - id]!;
  if (!node) return [`… ${others} deeper`, "…"];
  const name = labelsOf(t, node).pop()!;
  const most = name + " " + percent(share);
  return [others ? `${most} + ${others} more` : most, most, name];
}

/** kernelPaint tells by a kernel's name what it does. */
const kernelPaint = (name: string): string => (/nccl|rccl|^hccl/i.test(name) ? "mem" : /memcpy|memset|^dma/i.test(name) ? "gmem" : "gpu");

/** paintLanes fills a tile, top of which (CSS pixels) is the upper edge. */
export function paintLanes(p: Pixels, scale: number, top: number, { m, s, l, theme, found, inks, shown }: Scene): void {
  const { r } = m;
  const x = round(overhang * scale);
  const columns = round((l.x1 - l.x0) * scale);
  const y = (css: number) => round((css - top) * scale);
  const column = (t: number) => round(((t - s.from) / (s.to - s.from)) * columns);
  const paint = theme.ink;
  const bg = paint("bg");

  const under = new Uint32Array(p.wide).fill(bg);
  const shade = (line: Uint32Array, idle: Stretches) => {
    for (let i = 0; i < idle.length; i += 2) {
      const a = max(column(idle[i]!), 0);
      const b = min(column(idle[i + 1]!), columns);
      if (a < b) line.fill(paint("idle"), x + a, x + b);
    }
  };
  shade(under, r.idle);
  for (const t of ticks(s.from / 1e6, s.to / 1e6, (l.x1 - l.x0) / 60).at) {
    const c = x + min(column(t * 1e6), columns - 1);
    under[c] = blend(paint("ru"), under[c]!, 0.7);
  }
  ground(p, under);
  bar(p, 0, 0, p.wide, y(l.y0), bg);
  bar(p, 0, y(l.y1), p.wide, p.high, bg);
  let last = -9;
  for (const { end } of r.steps) {
    const c = column(end);
    if (c < 0 || c > columns || c - last < 2.5 * scale) continue;
    last = c;
    bar(p, x + c, y(l.y0 - 10), x + c + round(scale * 1.2), y(l.y0 - 3), paint("other"));
  }

  const strip = (g: Grid, y0: number, y1: number, look: Look) => grid(p, g, x, y0, y1 - y0, 0, scale, under, look);
  for (const lane of shown) {
    if (!lane) continue;
    const { placed, track, levels, grid: g, picks } = lane;
    const { kind, nth, byCode, full } = placed.lane;
    const [y0, y1] = [y(placed.y0), y(placed.y1)];
    if (track) {
      const own = r.deviceIdle.length > 1 && r.deviceIdle.find((d) => d.device === track.device);
      const ground = own ? under.slice() : under;
      if (own) shade(ground, own.stretches);
      for (let row = max(y0, 0); own && row < min(y1, p.high); row++) p.ink.set(ground, row * p.wide);
      area(p, levels!.map((v) => v / full), x, y0, y1, paint(placed.lane.paint), ground);
    } else if (g) {
      const { part } = m.own(kind === "lines" ? nth : -1);
      if (kind === "lines") strip(g, y0, y1, { inkOf: (id) => paint(part[id - 1]! >= 0.3 ? "l1" : part[id - 1]! >= 0.05 ? "l2" : "l3") });
      else if (FULL && kind === "stream") strip(g, y0, y1, { inkOf: (id) => paint(kernelPaint(r.streams[nth]!.kernels[id - 1]!)) });
      else if (!placed.rows) {
        bar(p, x, y0, x + columns, y1, paint("ba"));
        strip(g, y0, y1, { inkOf: (id) => (id > codeCount ? blend(paint(codePaints[id - 1 - codeCount]!), bg, 0.3) : paint((byCode ? codePaints : statePaints)[id - 1]!)) });
      } else {
        const inkOf = (id: number) => {
          const node = nodeOf(g, id);
          return !node ? paint("other") : id > 0 ? inks[id]! : blend(inks[node]!, bg, 0.65);
        };
        const look: Look = { inkOf, edgeOf: (id) => (found?.nodes[nodeOf(g, id)] === 1 ? paint("accent") : 0) };
        if (FULL && s.colour === "state") look.columns = new Uint32Array(columns).map((_, c) => (picks![c]! < 0 ? bg : paint(statePaints[r.state[picks![c]!]!]!)));
        grid(p, g, x, (placed.y0 - top) * scale, l.pitch * scale, round(scale), scale, under, look);
      }
    }
  }
}

/** writeLanes sets the words of a frame: the axis, and the names of boxes with room. */
export function writeLanes(pen: Pen, columns: number, { m, s, l, theme, found, shown, lineWords }: Scene): void {
  const { k, x0, x1, pitch } = l;
  const scale = columns / (x1 - x0);
  const size = smallText * k;
  const axis = ticks(s.from / 1e6, s.to / 1e6, (x1 - x0) / 60);
  for (const t of axis.at) {
    const words = axis.label(t);
    const x = x0 + ((t * 1e6 - s.from) / (s.to - s.from)) * (x1 - x0);
    const half = pen.widthOf(words, size) / 2 - overhang;
    if (x - half > x0 && x + half < x1) pen.write(words, x, l.axis, theme.ink("tm"), size, "center");
  }
  const on = theme.ink("tx");
  for (const lane of shown) {
    const g = lane?.grid;
    if (!g) continue;
    const { placed } = lane;
    const { kind } = placed.lane;
    const t = m.tree(s.folded);
    for (let row = 0; row < placed.rows; row++) {
      boxes(g, row, leastText * scale, (id, from, to) => {
        const x = x0 + from / scale + 4;
        const words = pen.fit(wordsOf(t, g, id), (to - from) / scale - 8, size);
        if (words) pen.write(words, x, placed.y0 + row * pitch + 11.5 * k, found && found.nodes[nodeOf(g, id)] !== 1 ? blend(on, theme.ink("bg"), 0.6) : on, size);
      });
    }
    if (kind !== "lines") continue;
    boxes(g, 0, 10 * scale, (id, from, to) => {
      const [full, number] = lineWords(id - 1);
      const room = (to - from) / scale - 8;
      const baseline = placed.y1 - 5 * k;
      const code = room > 60 && full.length > number.length + 2 && pen.fit([full], room, size, true);
      if (code) pen.write(code, x0 + from / scale + 4, baseline, on, size, "left", true);
      else if (pen.widthOf(number, size) <= room + 6) pen.write(number, x0 + (from + to) / 2 / scale, baseline, on, size, "center");
    });
  }
}
