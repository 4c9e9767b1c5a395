import { expect, test } from "vitest";
import { cellStep, firstAfter, instants, picksOf, scatter, within } from "../src/columns.ts";
import type { Spans } from "../src/recording.ts";

const spansOf = (pairs: [number, number][]): Spans => ({
  begin: new Float64Array(pairs.map((p) => p[0])),
  end: new Float64Array(pairs.map((p) => p[1])),
  node: new Int32Array(pairs.length),
  state: new Uint8Array(pairs.length),
});

test("a cell of time is the power of two nearest to a column", () => {
  for (const [column, step] of [
    [1, 1],
    [1.4, 1],
    [1.5, 2],
    [1000, 1024],
    [724, 512],
    [725, 1024],
    [0.7, 0.5],
    [1e9, 2 ** 30],
  ] as const)
    expect(cellStep(column), `${column}`).toBe(step);
});

test("scatter is even, and without a pattern between neighbours", () => {
  const bins = new Array<number>(10).fill(0);
  let near = 0;
  for (let c = 0; c < 100_000; c++) {
    const v = scatter(c);
    bins[Math.floor(v * 10)]!++;
    if (Math.abs(v - scatter(c + 1)) < 0.1) near++;
  }
  for (const n of bins) expect(Math.abs(n - 10_000)).toBeLessThan(500);
  expect(Math.abs(near - 19_000)).toBeLessThan(1000);
});

test("cells beyond 32 bits differ, too", () => {
  expect(new Set(Array.from({ length: 1000 }, (_, i) => scatter(2 ** 40 + i * 2 ** 32))).size).toBeGreaterThan(990);
});

test("panning does not flicker: a moment shows the same instant in every window", () => {
  const all = new Map<number, number>();
  let changes = 0;
  let seen = 0;
  for (let shift = 0; shift < 50; shift++) {
    const from = shift * 137;
    instants(from, from + 1_000_000, 1000).forEach((at, c) => {
      const cell = Math.floor((from + (c + 0.5) * 1000) / 1024);
      if (all.has(cell) && all.get(cell) !== at) changes++;
      all.set(cell, at);
      seen++;
    });
  }
  expect(changes).toBe(0);
  expect(seen).toBe(50_000);
});

test("a pick is what ran at the instant, or nothing", () => {
  const s = spansOf([
    [10, 20],
    [20, 30],
    [50, 60],
  ]);
  const at = [0, 9, 10, 19.9, 20, 35, 49, 50, 59, 60, 100];
  expect([...picksOf(s, 0, 3, new Float64Array(at))]).toEqual([-1, -1, 0, 0, 1, -1, -1, 2, 2, -1, -1]);
  expect([...picksOf(s, 1, 2, new Float64Array([15, 25, 55]))]).toEqual([-1, 1, -1]);
});

test("galloping finds what a plain search finds", () => {
  let at = 0;
  const pairs = Array.from({ length: 5000 }, (_, i): [number, number] => {
    const from = at + scatter(i) * 10;
    at = from + scatter(i + 7e6) * 30;
    return [from, at];
  });
  const s = spansOf(pairs);
  for (const width of [100, 5000, at]) {
    const times = instants(at / 3, at / 3 + width, 700);
    const plain = [...times].map((t) => pairs.findIndex(([a, b]) => a <= t && t < b));
    expect([...picksOf(s, 0, pairs.length, times)], `${width}`).toEqual(plain);
  }
});

test("a pixel knows how many spans it merges", () => {
  const s = spansOf([
    [0, 1],
    [1, 2],
    [2, 3],
    [5, 9],
  ]);
  expect(within(s, 0, 4, 0.5, 2.5)).toBe(3);
  expect(within(s, 0, 4, 3, 4.9)).toBe(0);
  expect(within(s, 0, 4, 6, 7)).toBe(1);
  expect(firstAfter(s.end, 0, 4, 100)).toBe(4);
});
