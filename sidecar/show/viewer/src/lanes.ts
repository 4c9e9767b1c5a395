// Where lanes stand. The static picture decides; the viewer only stretches, unfolds and narrows.

import { ceil, max, min } from "./math.ts";
import { amount, first, index, list, object, objects, string } from "./json.ts";
import { cellsOf, type Cells } from "./ranks.ts";
import { mostLanes, mostLineLanes, mostParts, mostRows, mostTableRows, mostTables } from "./limits.ts";
import { clean, count } from "./words.ts";

export type LaneKind = "track" | "lines" | "flame" | "thread" | "stream" | "ranks";

/** Lane is one stripe of the static picture, in its pixels. */
export interface Lane {
  kind: LaneKind;
  nth: number; // of the track, thread or stream; of the file of lines, -1 for all own files
  y0: number;
  y1: number;
  rows: number; // of a flame chart; 0 for a strip
  limit: number; // of its rows: more callees are counted in the row after
  paint: string;
  least: number; // of a track: the value at the lower edge …
  full: number; // … and at the upper
  byCode: boolean; // a strip shows whose code ran, else the thread's state
  name: string;
  sources: string[];
  figure: string;
  aside: string;
  cells: Cells | null; // of the strip of ranks
}

/** Phrase is a piece of a line of text: what, in which tone, "b" or "code". */
export type Phrase = [text: string, tone: string, tag: string];

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
  phases: [id: string, means: string, paint: string][]; // of a training's steps
  notes: string[];
  more: string; // about the threads that have no lane
  states: string[]; // words for a thread's states, in the order of recording's
  help: string; // about keys and the mouse
  threads: string[]; // their names, by the document's list
  lanes: Lane[];
  tables: Table[]; // of the whole recording
  leftOut: string[]; // what is in the document and not here
}

/** Table is a table of the picture. */
export interface Table {
  heading: string;
  note: string;
  rows: { name: string; figure: string; share: number; aside: string; text: string; hint: string }[];
}

const kinds = ["track", "lines", "flame", "thread", "stream", "ranks"];
const words = (v: unknown): string => clean(string(v), 400);
const token = (v: unknown): string => (/^[a-z]\w{0,11}$/.test(string(v)) ? (v as string) : "");
const px = (v: unknown): number => min(amount(v), 1e5);

/** chartOf reads the document's chart; null where there is none to build on. */
export function chartOf(document: unknown): Chart | null {
  const row = object(object(document)["chart"]);
  const [x0, y0, x1, y1] = list(row["plot"]).map(px) as [number, number, number, number];
  const wide = px(row["width"]);
  if (!(wide >= 100 && x1 - x0 >= 50 && x1 <= wide && y1 > y0)) return null;
  const parts = (v: unknown) => first(v, mostParts);
  const phrases = (v: unknown) =>
    parts(v).map((p): Phrase => {
      const [text, tone, tag] = list(p);
      return [words(text), token(tone), tag === "b" || tag === "code" ? tag : "span"];
    });
  const lanes: Lane[] = [];
  const all = list(row["lanes"]);
  const pitch = max(px(row["pitch"]), 8);
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
    if (
      !kinds.includes(kind) ||
      !(bottom > top) ||
      (of && seen.has(of)) ||
      (kind === "lines" && ++lineLanes > mostLineLanes)
    )
      continue;
    const cells = kind === "ranks" ? cellsOf(l["cells"]) : null;
    if (kind === "ranks" && (!cells || seen.has(kind))) continue;
    seen.add(of || kind);
    const rows = kind === "flame" || kind === "thread" ? min(amount(l["rows"]) | 0, ceil((bottom - top) / pitch)) : 0;
    const [least, full] = [amount(l["bottom"]), amount(l["top"]) || 1];
    lanes.push({
      kind,
      nth,
      y0: top,
      y1: (below = bottom),
      rows,
      limit: min(amount(l["limit"]) | 0 || rows, rows),
      paint: token(l["paint"]),
      least: least < full ? least : 0,
      full,
      byCode: l["by"] === "code",
      name: words(l["name"]),
      sources: parts(l["sources"]).map(words),
      figure: words(l["value"]),
      aside: words(l["aside"]),
      cells,
    });
  }
  const axis = px(row["axis"]);
  return {
    wide,
    x0,
    x1,
    y0,
    y1: max(y1, below),
    axis,
    strip: px(row["strip"]) || max(axis - 22, 0),
    pitch,
    folded: !!row["folded"],
    heading: phrases(row["title"]),
    finding: phrases(row["finding"]),
    legend: parts(row["legend"]).map((e) => [token(list(e)[0]), words(list(e)[1])]),
    phases: parts(row["phases"]).map((e) => [words(list(e)[0]), words(list(e)[1]), token(list(e)[2])]),
    notes: parts(row["notes"]).map(words),
    more: words(row["more"]),
    states: parts(row["states"]).map(words),
    help: clean(string(row["help"]), 2000),
    threads: first(row["threads"], mostRows.threads).map(words),
    lanes,
    tables: objects(first(row["tables"], mostTables)).map((t) => ({
      heading: words(t["heading"]),
      note: words(t["note"]),
      rows: objects(first(t["rows"], mostTableRows)).map((r) => ({
        name: words(r["name"]),
        figure: words(r["figure"]),
        share: min(amount(r["share"]), 1),
        aside: words(r["aside"]),
        text: words(r["text"]),
        hint: words(r["hint"]),
      })),
    })),
    leftOut: all.length > mostLanes ? [`Of ${count(all.length)} lanes the first ${count(mostLanes)} are read.`] : [],
  };
}

/** Placed is a lane with its place on the screen. */
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
  scaled: boolean; // as the static picture is at this width; else at full size, as wide as there is room
  narrow: boolean; // names stand over the lanes, not beside them
  lanes: Placed[];
  strip: Placed; // the overview
}

/** Below this scale, 1,000 pixels of a picture's 1,120, its smallest text, of 9.5 pixels, has less than 8.5. */
const leastScale = 1000 / 1120;
/** Narrower than this lanes have their names above them. */
const leastBeside = 720;

/** fits reports whether a static picture of a width can be read in a box of another, and fills it. */
export const fits = (wide: number, width: number): boolean => width >= wide * leastScale && width <= wide + 1;

const stripHeight = 10;

/**
 * layOut places the lanes in a picture of the given width. As handed over, every lane is where the
 * static picture has it. unfolded has the rows of lanes that were unfolded (0: folded), by their place
 * in the list.
 */
export function layOut(chart: Chart, width: number, unfolded: ReadonlyMap<number, number>): Layout {
  const scaled = fits(chart.wide, width);
  const narrow = !scaled && width < leastBeside;
  const k = scaled ? width / chart.wide : 1;
  const pitch = chart.pitch * k;
  let grown = -chart.strip * k;
  const lanes = chart.lanes.map((lane, i): Placed => {
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
    head: chart.strip * k,
    axis: (chart.axis - chart.strip) * k,
    x0: narrow ? 8 : chart.x0 * k,
    x1: width - (narrow ? 8 : (chart.wide - chart.x1) * k),
    y0: (chart.y0 - chart.strip) * k,
    y1: chart.y1 * k + grown,
    pitch,
    scaled,
    narrow,
    lanes,
    strip: { lane: { byCode: true } as Lane, y0: 0, y1: stripHeight * k, rows: 0, limit: 0 },
  };
}
