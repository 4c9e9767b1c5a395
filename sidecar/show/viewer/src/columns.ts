// Which instant each column of pixels shows, and what ran then. Cost is by columns, not by spans.

import { floats, floor, imul, ints, max, min } from "./math.ts";
import type { Spans } from "./recording.ts";

/**
 * cellStep is the power of two nearest to the microseconds of a column. Comparisons only, so that
 * another language comes to the same.
 */
export function cellStep(perColumn: number): number {
  let step = 1;
  while (step * Math.SQRT2 < perColumn) step *= 2;
  while (step / Math.SQRT2 > perColumn && step > 2 ** -20) step /= 2;
  return step;
}

/** scatter maps a cell of time to 0 … 1 without a pattern, always the same (murmur3's finaliser). */
export function scatter(cell: number): number {
  let h = cell ^ imul(floor(cell / 2 ** 32), 0x9e3779b1);
  h = imul(h ^ (h >>> 16), 0x85ebca6b);
  h = imul(h ^ (h >>> 13), 0xc2b2ae35);
  return ((h ^ (h >>> 16)) >>> 0) / 2 ** 32;
}

/**
 * instants is one instant for each column of from … to: the scattered one of the cell of absolute time
 * in the column's middle. A column may hold many spans; showing the longest would hide what takes 40 %
 * everywhere, so the instant is anywhere: shares of the picture come out as shares of time, and since
 * cells do not move with the window, panning does not flicker. Instants never decrease.
 */
export function instants(from: number, to: number, columns: number): Float64Array {
  const column = (to - from) / columns;
  const step = cellStep(column);
  return floats(columns).map((_, c) => {
    const cell = floor((from + (c + 0.5) * column) / step);
    return (cell + scatter(cell)) * step;
  });
}

/** firstAfter is the first index of begin … end whose value is greater than at; values are in order. */
export function firstAfter(values: Float64Array, begin: number, end: number, at: number): number {
  while (begin < end) {
    const middle = (begin + end) >>> 1;
    if (values[middle]! > at) end = middle;
    else begin = middle + 1;
  }
  return begin;
}

/** picksOf is the index of what ran at each instant, of begin … end; -1 where nothing did. */
export function picksOf(spans: Spans, begin: number, end: number, at: Float64Array): Int32Array {
  const out = ints(at.length);
  let i = begin;
  for (let c = 0; c < at.length; c++) {
    // Most instants find their span a few steps ahead of the one before.
    const t = at[c]!;
    let stride = 1;
    while (i + stride < end && spans.end[i + stride]! <= t) stride *= 2;
    i = firstAfter(spans.end, i, min(i + stride + 1, end), t);
    out[c] = i < end && spans.begin[i]! <= t ? i : -1;
  }
  return out;
}

/** within counts the spans of begin … end that touch from … to: what a pixel merges. */
export function within(spans: Spans, begin: number, end: number, from: number, to: number): number {
  const a = firstAfter(spans.end, begin, end, from);
  return max(firstAfter(spans.begin, a, end, to) - a, 0);
}
