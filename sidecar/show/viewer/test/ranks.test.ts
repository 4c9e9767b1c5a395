import { expect, test } from "vitest";
import type { Placed } from "../src/lanes.ts";
import { aboutCell, cellAt, cellsOf, paintCells } from "../src/ranks.ts";

/** two ranks with two steps each; rank 1 takes long, and of its first step is not known how long. */
const strip = {
  ranks: ["rank 0", "rank 1"],
  threads: [4, -1],
  first: [0, 2, 4],
  at_us: [0, 100_000, 0, 100_000],
  length_us: [100_000, 100_000, 100_000, 100_000],
  level: [0, 0, -1, 3],
  rank: [0, 0, 1, 1],
  step: [1, 2, 1, 2],
  step_us: [100_000, 100_000, 100_000, 100_000],
  own_us: [20_000, 30_000, -1, 90_000],
  median_us: [20_000, 30_000, -1, 30_000],
};

/** painted is a strip of so many columns and rows of pixels: a letter for each ink. */
function painted(wide: number, high: number, column: (time: number) => number): string[] {
  const pixels = { wide, high, ink: new Uint32Array(wide * high) };
  const inks: Record<string, number> = { ba: 1, r0: 2, r1: 3, r2: 4, r3: 5 };
  paintCells(pixels, cellsOf(strip)!, 0, wide, 0, high, column, (paint) => inks[paint]!);
  return Array.from({ length: high }, (_, y) =>
    Array.from(pixels.ink.subarray(y * wide, (y + 1) * wide), (i) => " ?.oOX"[i]).join(""),
  );
}

test("a row is a rank, a cell a step where it was", () =>
  expect(painted(8, 2, (t) => t / 25_000)).toEqual(["........", "????XXXX"]));

test("a step narrower than a column is not lost beside others", () =>
  expect(painted(3, 2, (t) => (t < 100_000 ? 0 : t < 200_000 ? 0 : 1))).toEqual([".  ", "X  "]));

test("a window shows what is in it", () =>
  expect(painted(4, 2, (t) => (t - 100_000) / 50_000)).toEqual(["..  ", "XX  "]));

test("pointing finds the step of the rank", () => {
  const placed = { lane: { cells: cellsOf(strip) }, y0: 50, y1: 60 } as Placed;
  const at = (y: number, time: number) => {
    const cell = cellAt(placed, y, time);
    return cell && [cell.rank, cell.thread, cell.step, cell.row];
  };
  expect(at(52, 150_000)).toEqual(["rank 0", 4, 2, 0]);
  expect(at(57, 150_000)).toEqual(["rank 1", -1, 2, 1]);
  expect(at(57, 200_000)).toBe(undefined);
  expect(at(60, 150_000)).toBe(undefined);
});

test("a step in words has its own time, the waiting and the median rank's", () => {
  const cells = cellsOf(strip)!;
  expect(aboutCell(cells, cells.rows[1]![1]!)).toEqual([
    "rank 1, step 2",
    "",
    "90 ms its own, 10 ms waiting in collectives · the median rank's 30 ms, 3.0 times as long",
  ]);
  expect(aboutCell(cells, cells.rows[1]![0]!)[2]).toBe("0.10 s, of which is not known how much was its own");
  const lengths = cellsOf({ ...strip, by_length: true })!;
  expect(aboutCell(lengths, lengths.rows[1]![1]!)[2]).toBe("90 ms long · the median rank's 30 ms, 3.0 times as long");
});

test("what is no strip is none", () => {
  for (const v of [null, {}, [], { ...strip, first: [] }, { ...strip, at_us: 7 }]) expect(cellsOf(v)).toBe(null);
  expect(cellsOf({ ...strip, first: [0, 9, -4, 2], rank: ["x"] })!.rows.map((row) => row.length)).toEqual([4, 0, 0]);
});
