// Payloads that something happened to: the viewer reads what makes sense, and throws nothing. make fuzz feeds it
// a hundred thousand (OMNI_PERF_PAYLOADS).

import { expect, test } from "vitest";
import { documentOf, payloadOf } from "../src/decode.ts";
import { frameOf } from "../src/frame.ts";
import { callees, callers, graphGrid } from "../src/graph.ts";
import { layOut } from "../src/lanes.ts";
import { cellThread, everyThread, modelOf } from "../src/model.ts";
import { aboutCell, cellAt, paintCells } from "../src/ranks.ts";
import { labelsOf } from "../src/tree.ts";
import { matchedTime } from "../src/search.ts";
import { zoom } from "../src/state.ts";
import { mutate, pack, randomOf, scramble } from "./payloads.ts";
import { small } from "./samples.ts";

/** use does with a document what a reader would do: all lanes in two windows, all sums, graphs and searches. */
function use(document: unknown): boolean {
  const m = modelOf(document);
  if (!m) return false;
  const unfolded = new Map(
    m.chart.lanes.flatMap((l, i) => (l.kind === "flame" || l.kind === "thread" ? [[i, 5] as const] : [])),
  );
  for (const s of [m.initial, { ...zoom(m.initial, m.initial, m.recording.duration / 3, 0.2), folded: true }]) {
    for (const l of [layOut(m.chart, 1120, new Map()), layOut(m.chart, 390, unfolded)]) {
      for (const shown of frameOf(m, s, l, 60, 1, -1e9, 1e9)) {
        const g = shown?.grid;
        if (g && shown.placed.rows) for (const id of new Set(g.cells)) if (id > 0) labelsOf(m.tree(s.folded), id);
        const { cells } = shown?.placed.lane ?? {};
        if (cells) {
          const pixels = { wide: 60, high: 40, ink: new Uint32Array(60 * 40) };
          const column = (t: number) => Math.round(((t - s.from) / (s.to - s.from)) * 60);
          paintCells(pixels, cells, 0, 60, 2, 12, column, () => 1);
          for (const cell of cells.rows.flat()) aboutCell(cells, cell);
          cellAt(shown!.placed, shown!.placed.y0 + 1, s.from);
        }
        if (g && g.cells.length !== g.rows * g.columns) throw new Error("a grid of another size");
      }
    }
    for (const who of [cellThread, everyThread, 0]) {
      const sums = m.sums(s.folded, who, s.from, s.to);
      const t = m.tree(s.folded);
      for (const g of [callees(t, sums), callers(t, sums), callers(t, sums, 0)]) graphGrid(g, 0, 60, 50);
    }
    m.functions(s.from, s.to);
    for (const l of m.lines(s.from, s.to))
      if (!(l.self >= 0 && l.idle >= 0)) throw new Error(`a line of ${l.self}, ${l.idle}`);
    matchedTime(m.found("f|g", false)!, m.sums(false, cellThread, s.from, s.to).self);
  }
  m.recording.threads.forEach((_, i) => m.depth(i, false));
  return true;
}

/** rich is a document with something of everything, short. */
function rich(): Record<string, unknown> {
  const d = small(
    [
      0,
      0,
      4,
      "Cell [1]:cell.<module>@1>x/site-packages/torch/a.py:framework.f>x/site-packages/torch/b.py:framework.g",
      1,
    ],
    [0, 4, 9, "Cell [1]:cell.<module>@2>Cell [1]:cell.h@5", 2],
    [1, 2, 8, "a.py:user.work", 4],
    [1, 8, 9, "a.py:user.work>a.py:user.work", 0],
  );
  const place = { file: 0, line: 2 };
  return {
    ...d,
    document: "omni_perf.report",
    version: 2,
    tracks: [
      {
        id: "gpu.util",
        kind: "rate",
        unit: "%",
        device: 0,
        at_us: [3000, 6000, 9000],
        value: [10, null, 30],
        limit: 100,
      },
      { id: "rss", kind: "gauge", unit: "B", device: null, at_us: [0, 5000], value: [1e6, 2e6] },
    ],
    devices: [
      { name: "H100", used: true },
      { name: "H100", used: false },
    ],
    idle: {
      idle_ns: 3e6,
      causes: [
        {
          kind: "data",
          ns: 3e6,
          low_ns: null,
          high_ns: 4e6,
          text: "waiting",
          hint: "",
          evidence: [[1e6, 4e6]],
          ...place,
        },
      ],
      devices: [
        {
          device: 0,
          idle_ns: 3e6,
          causes: [],
          intervals: [
            [1e6, 4e6],
            [5e6, 6e6],
          ],
        },
      ],
    },
    steps: [{ start_ns: 0, end_ns: 4e6, data_wait_ns: 1e6, busy_ns: null }],
    lines: [{ self_ns: 4e6, total_ns: 4e6, idle_ns: 0, state_ns: [0, 4e6, 0, 0, 0, 0, 0], ...place }],
    findings: [{ severity: "warning", text: "x", hint: "y", cost_ns: 1e6, evidence: [[0, 1e6]], ...place }],
    kernels: [{ names: ["k"], name: [0, 0], count: [1, 3], gap_ns: [0, 1e6], length_ns: [2e6, 5e5] }],
    gaps: [{ process: 0, start_ns: 0, end_ns: 1e6, reason: "starting", text: "Python was not running yet" }],
    chart: {
      ...(d["chart"] as object),
      title: [["Cell [1]", "tp", "b"]],
      lanes: [
        { kind: "track", index: 0, y0: 100, y1: 140, paint: "gpu", top: 100 },
        { kind: "track", index: 1, y0: 140, y1: 160, paint: "mem", top: 1e7 },
        { kind: "lines", index: -1, y0: 160, y1: 180 },
        { kind: "flame", index: 0, y0: 180, y1: 240, rows: 4, limit: 3 },
        { kind: "thread", index: 1, y0: 240, y1: 250, by: "code" },
        { kind: "stream", index: 0, y0: 250, y1: 260 },
        {
          kind: "ranks",
          index: -1,
          y0: 260,
          y1: 270,
          cells: {
            ranks: ["rank 0", "rank 1"],
            threads: [0, -1],
            first: [0, 2, 3],
            at_us: [0, 4000, 0],
            length_us: [4000, 4000, 8000],
            level: [0, 3, -1],
            rank: [0, 0, 1],
            step: [1, 2, 1],
            step_us: [4000, 4000, 8000],
            own_us: [1000, 4000, -1],
            median_us: [1000, 1000, -1],
          },
        },
      ],
    },
  };
}

test("a whole document is used in all ways", () => expect(use(rich())).toBe(true));

/** breathe lets the runner say that it is alive. */
const breathe = (i: number) => i % 100 || new Promise((done) => setTimeout(done, 0));

/** PAYLOADS is how many, set where the tests are built. */
declare const PAYLOADS: number;

test("documents with other values in them", async () => {
  const random = randomOf(1);
  const document = rich();
  let used = 0;
  const most = PAYLOADS * 0.45;
  for (let i = 0; i < most; i++) {
    await breathe(i);
    used += use(mutate(document, random)) ? 1 : 0;
  }
  expect(used).toBeGreaterThan(most / 2);
});

test("documents with other letters in them", async () => {
  const random = randomOf(2);
  const text = JSON.stringify(rich());
  let read = 0;
  for (let i = 0; i < PAYLOADS * 0.45; i++) {
    await breathe(i);
    let document: unknown;
    try {
      document = JSON.parse(scramble(text, random));
    } catch {
      continue; // as documentOf refuses it
    }
    read++;
    use(document);
  }
  expect(read).toBeGreaterThan(PAYLOADS / 100);
});

test("packed payloads with other letters in them", async () => {
  const random = randomOf(3);
  const text = "omni_perf 2 timeline\n" + (await pack(JSON.stringify(rich())));
  let refused = 0;
  for (let i = 0; i < PAYLOADS * 0.1; i++) {
    const payload = payloadOf(scramble(text, random));
    if (payload) await documentOf(payload.data).then(use, () => refused++);
  }
  expect(refused).toBeGreaterThan(PAYLOADS * 0.05);
});
