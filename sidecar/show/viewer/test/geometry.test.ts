// The static picture and the viewer come to the same numbers: testdata/geometry.json is what the other
// implementation (the picture's own, by synthetic/columns.go) makes of the same documents.

import { expect, test } from "vitest";
import { instants } from "../src/columns.ts";
import { emptyLanes, frameOf } from "../src/frame.ts";
import { State } from "../src/generated.ts";
import type { Grid } from "../src/grid.ts";
import { layOut, type Lane } from "../src/lanes.ts";
import { modelOf } from "../src/model.ts";
import { isUnread } from "../src/paint.ts";
import type { Recording } from "../src/recording.ts";
import { rowsOf } from "./boxes.ts";
import { fixtures, modelIn, small } from "./samples.ts";

test("each column shows the same instant", () => {
  for (const f of fixtures)
    expect([...instants(0, modelIn(f).recording.duration, f.columns)], f.name).toEqual(f.instants);
});

test("lanes are where the picture has them", () => {
  for (const f of fixtures) {
    const { chart } = modelIn(f);
    const l = layOut(chart, chart.wide, new Map());
    for (const { lane, y0, y1 } of l.lanes) expect([y0 + l.head, y1 + l.head], lane.name).toEqual([lane.y0, lane.y1]);
    expect([l.x0, l.x1, l.y0 + l.head, l.axis + l.head], f.name).toEqual([chart.x0, chart.x1, chart.y0, chart.axis]);
  }
});

test("a little narrower than the picture, lanes are scaled with it", () => {
  for (const f of fixtures) {
    const { chart } = modelIn(f);
    const less = layOut(chart, chart.wide * 0.97, new Map());
    less.lanes.forEach(({ lane, y0 }) => expect(y0 + less.head, lane.name).toBeCloseTo(lane.y0 * 0.97, 6));
    expect(less.x1).toBeCloseTo(chart.x1 * 0.97, 6);
  }
});

test("below 1,000 pixels no text is scaled, and a wide page is used", () => {
  for (const f of fixtures) {
    const { chart } = modelIn(f);
    for (const width of [390, 560, 900, 1400, 1800]) {
      const l = layOut(chart, width, new Map());
      expect(l.k, `${f.name}, ${width} px`).toBe(1);
      if (width < 720) continue;
      expect(l.x0, "names beside the lanes have the room they had").toBe(chart.x0);
      expect(width - l.x1, "figures, too").toBe(chart.wide - chart.x1);
    }
  }
});

test("a narrow one has lanes at full height, names above them", () => {
  for (const f of fixtures) {
    const { chart } = modelIn(f);
    const narrow = layOut(chart, 390, new Map());
    expect(narrow.narrow).toBe(true);
    narrow.lanes.forEach(({ lane, y0, y1 }, i) => {
      expect(y1 - y0, lane.name).toBeCloseTo(lane.y1 - lane.y0, 6);
      if (i) expect(y0 - narrow.lanes[i - 1]!.y1, lane.name).toBeGreaterThanOrEqual(14);
    });
  }
});

test("unfolding a lane moves those below it and no others", () => {
  const { chart } = modelIn(fixtures[0]!);
  const nth = chart.lanes.findIndex((l) => l.kind === "thread");
  const [a, b] = [layOut(chart, chart.wide, new Map()), layOut(chart, chart.wide, new Map([[nth, 7]]))];
  a.lanes.forEach((lane, i) => expect(b.lanes[i]!.y0 - lane.y0).toBeCloseTo(i > nth ? 7 * chart.pitch - 10 : 0, 6));
});

test("boxes of every lane are the same ones, column by column", () => {
  for (const f of fixtures) {
    const m = modelIn(f);
    const shown = frameOf(m, m.initial, layOut(m.chart, m.chart.wide, new Map()), f.columns, 1, -1e6, 1e6);
    m.chart.lanes.forEach((lane, i) => {
      const g = shown[i]!.grid;
      if (!g) return expect(f.boxes[i], lane.name).toBe(null);
      const own = m.own(lane.nth).places;
      expect(
        rowsOf(g, (id) => (lane.kind === "lines" ? own[id - 1]!.line : id)),
        `${f.name}, ${lane.name}`,
      ).toEqual(f.boxes[i]);
    });
  }
});

test("in a window, the flame chart of a thread without a box there is a strip", () => {
  const m = modelOf(small([0, 0, 10, "a.py:user.f"], [1, 0, 2, "a.py:user.g"], [1, 6, 7, "a.py:user.g"]))!;
  const lanes = [0, 1].map((nth) => ({ kind: "flame", nth, rows: 3 }) as Lane);
  const seen = { ...m, chart: { ...m.chart, lanes } };
  expect(emptyLanes(seen, 0, 10_000)).toEqual([]);
  expect(emptyLanes(seen, 3000, 5000)).toEqual([1]);
  expect(emptyLanes(seen, 3000, 6500)).toEqual([]);
});

test("a column is not known where no stack could be read, not where a thread waited without one", () => {
  const recording = { state: Uint8Array.of(State.unknown, State.waiting) } as unknown as Recording;
  const grid = { cells: Int32Array.of(0, 0, 7, 0) } as unknown as Grid;
  const spans = [0, 1, 0, -1];
  expect(spans.map((span, c) => isUnread(recording, span, grid, c))).toEqual([true, false, false, false]);
});
