import { expect, test } from "vitest";
import { boxes, flameGrid, foldShort, gridOf, runAt, sameOf, type Grid } from "../src/grid.ts";
import { modelOf } from "../src/model.ts";
import { small } from "./samples.ts";

const row = (g: Grid, r: number): number[] => [...g.cells.subarray(r * g.columns, (r + 1) * g.columns)];

test("a column is one stack, outermost call first; neighbours with one caller and function are one box", () => {
  const m = modelOf(
    small([0, 0, 1, "a.py:user.f>a.py:user.g"], [0, 1, 2, "a.py:user.f>a.py:user.h", 2], [0, 3, 4, "a.py:user.f"]),
  )!;
  const g = flameGrid(m.tree(false), m.recording, new Int32Array([0, 0, 1, -1, 2]), 2, 2);
  expect(row(g, 0)).toEqual([1, 1, 1, 0, 1]);
  expect(row(g, 1)).toEqual([2, 2, 3, 0, 0]);
  expect([...g.leaf!]).toEqual([-1, -1, 1, -1, -1]);
  expect(runAt(g, 0, 1)).toEqual([0, 3]);
});

test("what calls deeper than there are rows is counted", () => {
  const m = modelOf(small([0, 0, 1, "a.py:user.a>a.py:user.b>a.py:user.c>a.py:user.d"]))!;
  const g = flameGrid(m.tree(false), m.recording, new Int32Array([0, 0]), 3, 2);
  expect(row(g, 1)).toEqual([2, 2]);
  expect(row(g, 2)).toEqual([-1, -1]);
  expect(g.marks).toEqual([{ node: 0, share: 0, others: 2 }]);
  expect(row(flameGrid(m.tree(false), m.recording, new Int32Array([0]), 3, 3), 2)).toEqual([3]);
});

/** barcode is a caller over all columns, and below it what cells says. */
function barcode(...cells: number[]): Grid {
  return sampled(true, cells);
}

/** sampled has neighbours of one function be one call, or each one of its own. */
function sampled(goesOn: boolean, cells: number[]): Grid {
  const g = gridOf(2, cells.length);
  g.cells.fill(1, 0, cells.length);
  g.cells.set(cells, cells.length);
  foldShort(g, 1, new Int32Array(cells.length).fill(goesOn ? 2 : 1));
  return g;
}

test("a barcode of short calls is one box that says what most of it is", () => {
  const g = barcode(2, 3, 2, 2, 4, 2, 0, 2, 3, 2, 2, 4, 2, 2, 0, 2);
  expect(new Set(row(g, 1)).size).toBe(1);
  expect(g.marks).toEqual([{ node: 2, share: 10 / 16, others: 2 }]);
});

test("chance makes some calls look longer; most are short", () => {
  const g = barcode(2, 3, 2, 2, 2, 2, 2, 2, 3, 2, 3, 2, 3, 2);
  expect(g.marks).toEqual([{ node: 2, share: 10 / 14, others: 1 }]);
});

test("columns that show one function by chance are told by what ran between them", () => {
  const cells = [2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 3, 2, 2, 2, 2, 2, 2, 2, 2, 2];
  expect(sampled(false, cells).marks).toEqual([{ node: 2, share: 0.95, others: 1 }]);
  expect(row(sampled(true, cells), 1)).toEqual(cells);
  const all = new Array<number>(20).fill(2);
  expect(row(sampled(false, all), 1)).toEqual(all);
});

test("what went on from column to column is the same call", () => {
  const [f, g] = ["a.py:user.main>a.py:user.f", "a.py:user.main>a.py:user.g"];
  const m = modelOf(
    small(
      ...[f, f, g, f, f, f, f, f, f, f].map((s, i): [number, number, number, string, number] => [
        0,
        i,
        i + 1,
        s,
        i % 2,
      ]),
    ),
  )!;
  expect([...sameOf(m.tree(true), m.recording, new Int32Array([0, 4, 8, 9, -1, 9]))]).toEqual([0, 1, 2, 2, 0, 0]);
});

test("numbers of deeper calls side by side are one of them", () => {
  const g = barcode(-1, -2, -1, -2, -1, -2, -1, -2, -1, -2, -1, -1, -2, -1);
  expect(new Set(row(g, 1))).toEqual(new Set([-1]));
});

test("what can be told apart stays as it is", () => {
  const long = [2, 2, 2, 2, 3, 3, 3, 3, 2, 2, 2, 2, 3, 3, 3, 3, 2, 2, 2, 2];
  expect(row(barcode(...long), 1)).toEqual(long);
  const few = [2, 3, 2, 3, 2];
  expect(row(barcode(...few), 1)).toEqual(few);
  const empty = new Array<number>(40).fill(0);
  expect(row(barcode(...empty), 1)).toEqual(empty);
});

test("long boxes end a barcode, and callers bound it", () => {
  const short = [2, 3, 2, 3, 2, 3, 2, 3, 2, 3, 2, 3, 2, 3];
  const g = barcode(...short, 5, 5, 5, 5, 5, 5, 5, 5, 5, ...short);
  expect(row(g, 1).slice(14, 23)).toEqual([5, 5, 5, 5, 5, 5, 5, 5, 5]);
  expect(g.marks.length).toBe(2);
  const two = gridOf(2, 28);
  two.cells.fill(1, 0, 14).fill(9, 14, 28);
  two.cells.set([...short, ...short], 28);
  foldShort(two, 1, new Int32Array(28).fill(2));
  expect(two.marks.length).toBe(2);
});

test("barcodes below a barcode fold, too", () => {
  const g = gridOf(3, 14);
  g.cells.fill(1, 0, 14);
  g.cells.set([2, 3, 2, 3, 2, 3, 2, 3, 2, 3, 2, 3, 2, 3], 14);
  g.cells.set([4, 0, 4, 0, 4, 0, 4, 0, 4, 0, 4, 0, 4, 0], 28);
  foldShort(g, 1, new Int32Array(14).fill(3));
  expect(g.marks.map((m) => [m.node, m.share])).toEqual([
    [2, 0.5],
    [4, 0.5],
  ]);
});

test("boxes come in order and are as wide as asked", () => {
  const g = gridOf(1, 6);
  g.cells.set([1, 1, 0, 2, 3, 3]);
  const seen: number[][] = [];
  boxes(g, 0, 2, (...box) => seen.push(box));
  expect(seen).toEqual([
    [1, 0, 2],
    [3, 4, 6],
  ]);
});
