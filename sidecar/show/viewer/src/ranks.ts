// The strip of a distributed run: a row for each rank, or for some together, and in it a cell for each step.

import { first, index, known, list, object, string } from "./json.ts";
import type { Placed } from "./lanes.ts";
import { mostCells, mostRows } from "./limits.ts";
import { clamp, floor, max, min, round } from "./math.ts";
import { bar, type Pixels } from "./pixels.ts";
import type { Theme } from "./theme.ts";
import { clean, micros } from "./words.ts";

/** Cell is a step of a rank, of several the one that was longest beside the others. Times are microseconds. */
export interface Cell {
  begin: number;
  end: number;
  row: number;
  level: number; // 0 … 3: by how much it was longer than the median rank; -1: not known
  rank: string;
  thread: number; // the rank's main one, in the document's list; -1: it is not there
  step: number; // which of the rank's, from 1
  length: number; // the step's
  own: number; // of it, outside of collectives; NaN: not known
  median: number; // of all ranks' own times at this step; NaN: not known
}

/** Cells are those of a strip by row, in order of time. */
export interface Cells {
  byLength: boolean; // nobody was seen in a collective: own times are the steps' lengths
  rows: Cell[][];
}

/** cellsOf reads a lane's cells; null where there are none. */
export function cellsOf(v: unknown): Cells | null {
  const row = object(v);
  const column = (name: string) => first(row[name], mostCells);
  const [at, lengths, levels, ranks, steps, all, own, medians] = [
    "at_us",
    "length_us",
    "level",
    "rank",
    "step",
    "step_us",
    "own_us",
    "median_us",
  ].map(column) as unknown[][];
  const names = first(row["ranks"], mostRows.processes);
  const threads = list(row["threads"]);
  const time = (v: unknown) => (index(v, Infinity) < 0 ? NaN : known(v));
  const cells = at!.map((begin, i): Cell => {
    const nth = index(ranks![i], names.length);
    return {
      begin: time(begin) || 0,
      end: (time(begin) || 0) + (time(lengths![i]) || 0),
      row: 0,
      level: index(levels![i], 4),
      rank: clean(string(names[nth]), 40),
      thread: index(threads[nth], mostRows.threads),
      step: index(steps![i], 1e9),
      length: time(all![i]) || 0,
      own: time(own![i]),
      median: time(medians![i]),
    };
  });
  let last = 0;
  const rows = first(row["first"], mostCells)
    .slice(1)
    .map((v) => cells.slice(last, (last = max(min(index(v, Infinity), cells.length), last))));
  rows.forEach((of, row) => of.forEach((cell) => (cell.row = row)));
  return cells[0] && rows[0] ? { byLength: !!row["by_length"], rows } : null;
}

/** paintCells fills a strip's rows; the hotter cell is over the others where a column has several. */
export function paintCells(
  pixels: Pixels,
  { rows }: Cells,
  x: number,
  columns: number,
  y0: number,
  y1: number,
  column: (time: number) => number,
  ink: Theme["ink"],
): void {
  const pitch = (y1 - y0) / rows.length;
  const gap = pitch >= 4 ? round(pitch / 5) : 0;
  rows.forEach((cells, row) => {
    const top = round(y0 + row * pitch);
    const bottom = max(round(y0 + (row + 1) * pitch) - gap, top + 1);
    const levels = new Int8Array(columns);
    for (const cell of cells) {
      const from = clamp(column(cell.begin), 0, columns);
      const to = min(max(column(cell.end), from + 1), columns);
      if (column(cell.end) >= 0) for (let c = from; c < to; c++) levels[c] = max(levels[c]!, cell.level + 2);
    }
    for (let c = 0, from = 0; c <= columns; c++)
      if (c === columns || levels[c] !== levels[from]) {
        const level = levels[from]!;
        if (level) bar(pixels, x + from, top, x + c, bottom, ink(level < 2 ? "ba" : "r" + (level - 2)));
        from = c;
      }
  });
}

/** cellAt is what is at a height and a time; undefined where there is no step. */
export function cellAt({ lane: { cells }, y0, y1 }: Placed, y: number, time: number): Cell | undefined {
  const rows = cells!.rows;
  return rows[floor(((y - y0) / (y1 - y0)) * rows.length)]?.find((cell) => cell.begin <= time && time < cell.end);
}

/** aboutCell is a cell in words. */
export function aboutCell({ byLength }: Cells, { rank, step, length, own, median }: Cell): string[] {
  const beside = `the median rank's ${micros(median)}`;
  const times = own > median && median > 0 ? `, ${(own / median).toFixed(1)} times as long` : "";
  return [
    `${rank}, step ${step}`,
    "",
    isNaN(own)
      ? `${micros(length)}, of which is not known how much was its own`
      : (byLength ? micros(own) + " long" : `${micros(own)} its own, ${micros(length - own)} waiting in collectives`) +
        (isNaN(median) ? "" : ` · ${beside}${times}`),
  ];
}
