// Where lanes stand. The static picture decides; the viewer only stretches, unfolds and narrows.

import { ceil, max, min } from "./brief.ts";
import { amount, first, index, list, object, objects, string } from "./json.ts";
import { mostLanes, mostLineLanes, mostParts, mostRows } from "./limits.ts";
import { clean, count } from "./words.ts";

export type LaneKind = "track" | "lines" | "flame" | "thread" | "stream";

/** Lane is one stripe of the static picture, in its pixels. */
export interface Lane {
  kind: LaneKind;
  nth: number; // of the track, thread or stream; of the file of lines, -1 for all own files
  y0: number;
  y1: number;
  rows: number; // of a flame chart; 0 for a strip
  limit: number; // of its rows: more callees are told in the row after
  paint: string;
  full: number; // of a track: the value at the upper edge
  byCode: boolean; // a strip shows whose code ran, else the thread's state
  called: string;
  sources: string[];
  figure: string;
  aside: string;
}

/** Phrase is a piece of a line of text: what, in which tone, "b" or "code". */
export type Phrase = [says: string, tone: string, tag: string];

/** Chart is the static picture's geometry and words, as the document's "chart" carries it. */
export interface Chart {
  wide: number;
  x0: number; // of the time axis
  x1: number;
  y0: number; // of the lanes
  y1: number;
  axis: number; // baseline of the ticks' labels
  strip: number; // upper edge of the overview
  pitch: number; // of a flame chart's rows
  folded: boolean; // libraries and imports are folded
  heading: Phrase[];
  finding: Phrase[];
  legend: [paint: string, means: string][];
  notes: string[];
  states: string[]; // words for a thread's states, in the order of recording's
  help: string; // about keys and the mouse
  threads: string[]; // their names, by the document's list
  lanes: Lane[];
  leftOut: string[]; // what is in the document and not here
}

const kinds = ["track", "lines", "flame", "thread", "stream"];
const words = (v: unknown): string => clean(string(v), 400);
const token = (v: unknown): string => (/^[a-z]\w{0,11}$/.test(string(v)) ? (v as string) : "");
const px = (v: unknown): number => min(amount(v), 1e5);

/** chartOf reads the document's chart; null where there is none to stand on. */
export function chartOf(document: unknown): Chart | null {
  const c = object(object(document)["chart"]);
  const [x0, y0, x1, y1] = list(c["plot"]).map(px) as [number, number, number, number];
  const wide = px(c["width"]);
  if (!(wide >= 100 && x1 - x0 >= 50 && x1 <= wide && y1 > y0)) return null;
  const parts = (v: unknown) => first(v, mostParts);
  const phrases = (v: unknown) => parts(v).map((p): Phrase => [words(list(p)[0]), token(list(p)[1]), /^(b|code)$/.test(list(p)[2] as string) ? (list(p)[2] as string) : "span"]);
  const lanes: Lane[] = [];
  const all = list(c["lanes"]);
  const pitch = max(px(c["pitch"]), 8);
  const seen = new Set<string>();
  let lineLanes = 0;
  let below = y0;
  for (const l of objects(first(all, mostLanes))) {
    const kind = string(l["kind"]) as LaneKind;
    const top = max(px(l["y0"]), below);
    const bottom = px(l["y1"]);
    const nth = index(l["index"], 1e6);
    // What a lane costs depends on what it is of: each is shown once.
    const of = nth < 0 ? "" : [kind, nth, l["by"] === "code"].join();
    if (!kinds.includes(kind) || !(bottom > top) || (of && seen.has(of)) || (kind === "lines" && ++lineLanes > mostLineLanes)) continue;
    seen.add(of);
    const rows = kind === "flame" || kind === "thread" ? min(amount(l["rows"]) | 0, ceil((bottom - top) / pitch)) : 0;
    lanes.push({
      kind,
      nth,
      y0: top,
      y1: (below = bottom),
      rows,
      limit: min(amount(l["limit"]) | 0 || rows, rows),
      paint: token(l["paint"]),
      full: amount(l["top"]) || 1,
      byCode: l["by"] === "code",
      called: words(l["name"]),
      sources: parts(l["sources"]).map(words),
      figure: words(l["value"]),
      aside: words(l["aside"]),
    });
  }
  const axis = px(c["axis"]);
  return {
    wide,
    x0,
    x1,
    y0,
    y1: max(y1, below),
    axis,
    strip: px(c["strip"]) || max(axis - 22, 0),
    pitch,
    folded: !!c["folded"],
    heading: phrases(c["title"]),
    finding: phrases(c["finding"]),
    legend: parts(c["legend"]).map((e) => [token(list(e)[0]), words(list(e)[1])]),
    notes: parts(c["notes"]).map(words),
    states: parts(c["states"]).map(words),
    help: clean(string(c["help"]), 2000),
    threads: first(c["threads"], mostRows.threads).map(words),
    lanes,
    leftOut: all.length > mostLanes ? [`Of ${count(all.length)} lanes the first ${count(mostLanes)} are read.`] : [],
  };
}

/** Placed is a lane where it stands on the screen. */
export interface Placed {
  lane: Lane;
  y0: number;
  y1: number;
  rows: number; // 0: folded
  limit: number;
}

/** Layout is all lanes on the screen, in CSS pixels; y counts from the overview's upper edge. */
export interface Layout {
  k: number; // scale of the static picture
  head: number; // what the picture has above the overview
  axis: number;
  x0: number;
  x1: number;
  y0: number;
  y1: number;
  pitch: number;
  narrow: boolean; // names stand over the lanes, not beside them
  lanes: Placed[];
  strip: Placed; // the overview
}

/** Below this scale the picture's own text is too small: then it is laid out at full size, as wide as there is room. */
const leastScale = 0.75;
const stripHeight = 10;

/**
 * layOut places the lanes in a picture of the given width. As handed over, every lane stands where the
 * static picture has it. unfolded tells the rows of lanes that were unfolded (0: folded), by their place
 * in the list.
 */
export function layOut(c: Chart, width: number, unfolded: ReadonlyMap<number, number>): Layout {
  const narrow = width < c.wide * leastScale;
  const k = narrow ? 1 : width / c.wide;
  const pitch = c.pitch * k;
  let grown = -c.strip * k;
  const lanes = c.lanes.map((lane, i): Placed => {
    if (narrow) grown += 15;
    const y0 = lane.y0 * k + grown;
    const rows = unfolded.get(i) ?? lane.rows;
    const plain = (lane.y1 - lane.y0) * k;
    const height = rows === lane.rows ? plain : rows ? rows * pitch : stripHeight * k;
    grown += height - plain;
    return { lane, y0, y1: y0 + height, rows, limit: rows === lane.rows ? lane.limit : rows };
  });
  return {
    k,
    head: c.strip * k,
    axis: (c.axis - c.strip) * k,
    x0: narrow ? 8 : c.x0 * k,
    x1: narrow ? width - 8 : c.x1 * k,
    y0: (c.y0 - c.strip) * k,
    y1: c.y1 * k + grown,
    pitch,
    narrow,
    lanes,
    strip: { lane: { byCode: true } as Lane, y0: 0, y1: stripHeight * k, rows: 0, limit: 0 },
  };
}
