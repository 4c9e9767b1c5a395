import { expect, test } from "vitest";
import { gridOf } from "../src/grid.ts";
import { area, bar, blend, css, grid, ground, ink, type Pixels } from "../src/pixels.ts";

const white = ink(255, 255, 255);
const red = ink(255, 0, 0);
const pixels = (wide: number, high: number): Pixels => ({ wide, high, ink: new Uint32Array(wide * high) });
const under = (wide: number) => new Uint32Array(wide).fill(white);
/** seen is a picture in letters: red, white, something between. */
const seen = (p: Pixels) =>
  Array.from({ length: p.high }, (_, y) =>
    [...p.ink.subarray(y * p.wide, (y + 1) * p.wide)].map((v) => (v === red ? "#" : v === white ? "." : "+")).join(""),
  );

test("an ink is a colour as a canvas keeps it", () => {
  expect(ink(1, 2, 3)).toBe(0xff030201);
  expect(css(ink(1, 2, 3))).toBe("rgb(1 2 3)");
  expect(blend(red, white, 0.5)).toBe(ink(255, 128, 128));
});

test("boxes leave a hair of ground, corners are soft", () => {
  const p = pixels(12, 5);
  ground(p, under(12));
  const g = gridOf(1, 12);
  g.cells.set([1, 1, 1, 1, 1, 1, 0, 1, 1, 0, 2, 2]);
  grid(p, g, 0, 0, 5, 1, 1, under(12), { inkOf: () => red });
  expect(seen(p)).toEqual(["+###+..##.##", "#####..##.##", "#####..##.##", "+###+..##.##", "............"]);
});

test("a box that waited is hatched, and no other", () => {
  const p = pixels(12, 12);
  ground(p, under(12));
  const g = gridOf(2, 12);
  g.cells.fill(1, 0, 12).fill(2, 12, 18);
  g.leaf = new Int32Array(12).fill(1).fill(-1, 6, 12);
  grid(p, g, 0, 0, 6, 0, 1, under(12), { inkOf: () => red });
  const rows = seen(p).map((r) => r.slice(1, 5));
  expect(rows.slice(1, 5).join("").includes("+")).toBe(false);
  expect(rows.slice(7, 11).every((r) => r.includes("+") || r.includes("#"))).toBe(true);
  expect(rows.slice(7, 11).join("").includes("+")).toBe(true);
});

test("what lies outside of the tile is not painted, and does not hurt", () => {
  for (const y of [-100, -3, 3, 100]) {
    const p = pixels(4, 4);
    ground(p, under(4));
    const g = gridOf(1, 4);
    g.cells.fill(1);
    grid(p, g, 0, y, 5, 0, 1, under(4), { inkOf: () => red });
    bar(p, -5, y, 99, y + 2, red);
    area(p, new Float32Array([1, 0.5, NaN, 2]), 0, y, y + 4, red, under(4));
    expect(
      p.ink.every((v) => v > 0),
      `${y}`,
    ).toBe(true);
  }
});

test("an area is as high as its share, a part of a pixel is pale", () => {
  const p = pixels(4, 4);
  ground(p, under(4));
  area(p, new Float32Array([1, 0.5, 0.625, 0]), 0, 0, 4, red, under(4));
  expect(seen(p)).toEqual(["#...", "#.+.", "###.", "###."]);
});
