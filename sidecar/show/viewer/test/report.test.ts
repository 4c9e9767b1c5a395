// Real documents, as the product writes them (sidecar/understand/report/testdata): the viewer reads what is in them.

import { expect, test } from "vitest";
import cell from "../../../understand/report/testdata/cell.json";
import kernel from "../../../understand/report/testdata/kernel.json";
import merged from "../../../understand/report/testdata/merged.json";
import script from "../../../understand/report/testdata/script.json";
import { frameOf } from "../src/frame.ts";
import { layOut } from "../src/lanes.ts";
import { modelOf } from "../src/model.ts";
import { recordingOf } from "../src/reading.ts";
import { small } from "./samples.ts";

const documents: Record<string, Record<string, any>> = { cell, kernel, merged, script };

/** picture gives a document the geometry of one: every thread, every track and every stream has a lane. */
function picture(d: Record<string, any>): Record<string, unknown> {
  let y = 100;
  const lanes: object[] = [];
  const lane = (kind: string, index: number, rows = 0) =>
    lanes.push({ kind, index, rows, y0: (y += 20), y1: y + 15, top: 100, paint: "gpu", name: kind });
  d["tracks"].forEach((_: unknown, i: number) => lane("track", i));
  lane("lines", -1);
  d["threads"].forEach((_: unknown, i: number) => lane(i ? "thread" : "flame", i, i ? 0 : 1));
  (d["kernels"] || []).forEach((_: unknown, i: number) => lane("stream", i));
  return {
    ...d,
    chart: { ...(small([0, 0, 1, "Cell [1]:cell.f"])["chart"] as object), plot: [120, 100, 1020, y + 20], lanes },
  };
}

test("each thread has its spans, which end where the columns say", () => {
  for (const [name, d] of Object.entries(documents)) {
    const r = recordingOf(d);
    const { first, gap_us, length_us } = d["spans"];
    expect(r.threads.length, name).toBe(d["threads"].length);
    r.threads.forEach((t, i) => {
      expect([t.begin, t.end], name).toEqual([first[i], first[i + 1]]);
      const sum = (v: number[]) => v.slice(t.begin, t.end).reduce((a, b) => a + b, 0);
      if (t.end > t.begin)
        expect(r.end[t.end - 1], `${name}, thread ${i}`).toBeCloseTo(
          Math.min(sum(gap_us) + sum(length_us), r.duration),
          6,
        );
    });
  }
});

test("every kind of code and every state that a document names is one of the viewer's own", () => {
  for (const [name, d] of Object.entries(documents)) {
    const r = recordingOf({
      ...d,
      functions: d["enumerations"].code.map((_: string, code: number) => ({
        file: 0,
        name: "f",
        label: null,
        first_line: 1,
        code,
      })),
    });
    expect(new Set(r.fns.slice(0, -1).map((f) => f.code)).size, name).toBe(d["enumerations"].code.length);
    expect(d["enumerations"].state, name).toEqual(["python", "native", "waiting", "io", "gil", "off", "unknown"]);
  }
});

test("functions go by their label", () => {
  const labelled = (label: string | null, name: string) =>
    recordingOf({ ...cell, functions: [{ file: 0, name, label, first_line: 3, code: 0 }] }).fns[0]!;
  expect(labelled("model.forward", "Module._call_impl").name).toBe("model.forward");
  expect(labelled(null, "work").name).toBe("work");
  expect(labelled(null, "<module>").place).toBe("");
});

test("kernels are nanoseconds", () => {
  const r = recordingOf(merged);
  const lanes = merged.kernels;
  expect(r.streams.length).toBe(lanes.length);
  r.streams.forEach((s, i) => {
    const { gap_ns, length_ns, name, names } = lanes[i]!;
    expect(s.begin[0]).toBeCloseTo(gap_ns[0]! / 1000, 6);
    expect(s.end[0]! - s.begin[0]!).toBeCloseTo(length_ns[0]! / 1000, 6);
    expect(s.kernels[s.node[0]!]).toBe(names[name[0]!]);
  });
});

test("lines are the target's process's, causes and findings are all there", () => {
  for (const [name, d] of Object.entries(documents)) {
    const r = recordingOf(d);
    const own = d["lines"].filter((l: any) => l.process === d["targets"][0].process);
    expect(
      r.lines.map((l) => l.self),
      name,
    ).toEqual(own.map((l: any) => l.self_ns / 1000));
    expect(r.causes.length, name).toBe(d["idle"]?.causes.length ?? 0);
    expect(
      r.findings.map((f) => f.text.length > 0),
      name,
    ).toEqual(d["findings"].map(() => true));
    expect(
      r.gaps.map((g) => g.text.length > 0),
      name,
    ).toEqual(d["gaps"].map(() => true));
    expect(r.steps.length, name).toBe(d["steps"].length);
  }
});

test("every lane has something to show", () => {
  for (const [name, d] of Object.entries(documents)) {
    const m = modelOf(picture(d))!;
    const ran = (thread: number) => d["spans"].first[thread + 1] > d["spans"].first[thread];
    for (const shown of frameOf(m, m.initial, layOut(m.chart, 1120, new Map()), 900, 1, -1e6, 1e6)) {
      const { kind, nth } = shown!.placed.lane;
      if (kind === "flame" && ran(nth))
        expect(
          shown!.grid!.cells.some((v) => v),
          `${name}, ${kind} ${nth}`,
        ).toBe(true);
      if (kind === "stream")
        expect(
          shown!.grid!.cells.some((v) => v),
          `${name}, ${kind} ${nth}`,
        ).toBe(true);
      if (kind === "track")
        expect(
          shown!.levels!.some((v) => v >= 0),
          `${name}, ${d["tracks"][nth].id}`,
        ).toBe(true);
    }
  }
});
