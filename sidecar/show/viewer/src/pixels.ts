// Painting lanes into pixels. Everything is a device pixel; nothing here knows a canvas.

import { ceil, max, min, round } from "./math.ts";
import { boxes, type Grid } from "./grid.ts";

/** Ink is a colour as a canvas keeps it: red in the lowest byte, opaque. */
export type Ink = number;

export const ink = (red: number, green: number, blue: number): Ink =>
  (0xff000000 | (round(blue) << 16) | (round(green) << 8) | round(red)) >>> 0;

/** css is an ink for a style. */
export const css = (i: Ink): string => `rgb(${i & 255} ${(i >> 8) & 255} ${(i >> 16) & 255})`;

/** blend is share of a over b. */
export function blend(a: Ink, b: Ink, share: number): Ink {
  const mix = (shift: number) => ((a >>> shift) & 255) * share + ((b >>> shift) & 255) * (1 - share);
  return ink(mix(0), mix(8), mix(16));
}

/** Pixels is a picture, row by row. */
export interface Pixels {
  wide: number;
  high: number;
  ink: Uint32Array;
}

/** ground fills the picture with what lies under all lanes: one ink for each column. */
export function ground(pixels: Pixels, under: Uint32Array): void {
  for (let y = 0; y < pixels.high; y++) pixels.ink.set(under, y * pixels.wide);
}

/** bar fills a rectangle, as far as it is in the picture. */
export function bar(pixels: Pixels, x0: number, y0: number, x1: number, y1: number, colour: Ink): void {
  x0 = max(x0, 0);
  x1 = min(x1, pixels.wide);
  for (let y = max(y0, 0); y < min(y1, pixels.high) && x0 < x1; y++)
    pixels.ink.fill(colour, y * pixels.wide + x0, y * pixels.wide + x1);
}

/** Look is how the boxes of a grid are painted. */
export interface Look {
  inkOf(id: number): Ink;
  edgeOf?(id: number): Ink; // of a frame around it; 0: none
  columns?: Uint32Array; // inks by column, in place of the boxes'
}

/**
 * grid paints boxes: columns begin at x, rows at y, pitch apart, with a gap between rows; scale is device
 * pixels per CSS pixel. Between boxes a hair of ground is left, wide ones have softened corners, and where
 * the innermost call waited its box is hatched. Rows outside of the picture cost nothing.
 */
export function grid(
  pixels: Pixels,
  cells: Grid,
  x: number,
  y: number,
  pitch: number,
  gap: number,
  scale: number,
  under: Uint32Array,
  look: Look,
): void {
  const { ink: data, wide } = pixels;
  const hair = round(scale);
  for (let row = 0; row < cells.rows; row++) {
    const top = round(y + row * pitch);
    const bottom = round(y + (row + 1) * pitch) - gap;
    const first = max(top, 0);
    const end = min(bottom, pixels.high);
    if (end <= first) continue;
    const line = first * wide + x;
    const big: [id: number, from: number, to: number][] = [];
    boxes(cells, row, 1, (id, from, to) => {
      if (to - from > 3 * scale) to -= hair;
      if (look.columns) data.set(look.columns.subarray(from, to), line + from);
      else data.fill(look.inkOf(id), line + from, line + to);
      if (to - from >= 4 * scale) big.push([id, x + from, x + to]);
    });
    for (let k = first + 1; k < end; k++) data.copyWithin(k * wide + x, line, line + cells.columns);
    hatch(pixels, cells, row, x, first, end, scale, under);
    for (const [id, from, to] of big) {
      const edge = to - from > 8 * scale && look.edgeOf?.(id);
      if (edge) {
        bar(pixels, from, top, to, bottom, edge);
        bar(pixels, from + 2 * hair, top + 2 * hair, to - 2 * hair, bottom - 2 * hair, look.inkOf(id));
      }
      for (const c of [from, to - 1])
        for (const k of [top, bottom - 1])
          if (k >= first && k < end) data[k * wide + c] = blend(data[k * wide + c]!, under[c]!, 0.4);
    }
  }
}

/** hatch lightens strokes over the innermost calls that waited, so that waiting is not taken for work. */
function hatch(
  pixels: Pixels,
  grid: Grid,
  row: number,
  x: number,
  first: number,
  end: number,
  scale: number,
  under: Uint32Array,
): void {
  const period = round(6 * scale);
  let last = -1;
  let light = 0;
  for (let c = 0; c < grid.columns; c++) {
    if (grid.leaf?.[c] !== row) continue;
    for (let y = first; y < end; y++) {
      const i = y * pixels.wide + x + c;
      if ((c + y) % period >= 2.4 * scale || pixels.ink[i] === under[x + c]) continue;
      if (pixels.ink[i] !== last) light = blend((last = pixels.ink[i]!), under[x + c]!, 0.5);
      pixels.ink[i] = light;
    }
  }
}

/** area fills columns up to their heights, 0 … 1 of what is between y0 and y1; NaN is left out. */
export function area(
  pixels: Pixels,
  heights: Float32Array,
  x: number,
  y0: number,
  y1: number,
  colour: Ink,
  under: Uint32Array,
): void {
  const end = min(y1, pixels.high);
  heights.forEach((share, c) => {
    if (!(share > 0)) return;
    const top = y1 - min(share, 1) * (y1 - y0);
    const full = ceil(top);
    for (let y = max(full, 0); y < end; y++) pixels.ink[y * pixels.wide + x + c] = colour;
    if (full > top && full > 0 && full <= end)
      pixels.ink[(full - 1) * pixels.wide + x + c] = blend(colour, under[x + c]!, full - top);
  });
}
